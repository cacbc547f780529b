// SPDX-License-Identifier: Apache-2.0
@testable import RedisModel

/// The rules of each command, as redis-server tells them.
enum CommandRules {
    /// What differs, a line each.
    static func differences(_ real: RealServer) throws -> [String] {
        var found: [String] = []
        for name in CommandTable.names {
            guard let command = CommandTable.command(Array(name.utf8)), command.subcommands.isEmpty,
                let answer = try real.ask(["COMMAND", "INFO", name]).elements.first, !answer.elements.isEmpty
            else { continue }
            let flags = Set(answer.elements[2].elements.map(\.description))
            let wanted: [(String, Command.Flags)] = [
                ("+write", .write), ("+denyoom", .deniesOOM), ("+loading", .whileLoading), ("+stale", .whileStale),
                ("+noscript", .notInScripts), ("+no_auth", .beforeLogin),
            ]
            for (flag, own) in wanted where flags.contains(flag) != command.flags.contains(own) {
                found.append("\(name): \(flag) is \(flags.contains(flag)) in redis-server")
            }
            if answer.elements[1] != .line(Array(":\(command.arity)".utf8)) {
                found.append("\(name): arity is \(answer.elements[1]), not \(command.arity)")
            }
        }
        return found
    }
}

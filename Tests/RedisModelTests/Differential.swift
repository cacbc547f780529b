// SPDX-License-Identifier: Apache-2.0
import Support

@testable import RedisModel

/// The model and a real redis-server, given the same commands.
struct Differential {
    struct Difference: CustomStringConvertible {
        let index: Int
        let command: String
        let real: String
        let model: String
        /// Commands before it that name one of its keys.
        let before: [String]

        var description: String {
            "command \(index): \(command)\n  redis-server: \(real)\n  model:        \(model)\n  before:\n    "
                + before.joined(separator: "\n    ")
        }
    }

    private let real: RealServer
    private let model: Server
    private let client: ClientID
    private var sent: [[[UInt8]]] = []
    private let now: () -> Int64

    init(port: UInt16, now: @escaping () -> Int64) throws {
        real = try RealServer(port: port)
        self.now = now
        var options = ServerOptions(port: port)
        if case .bulk(let info) = try real.ask(["INFO", "server"]) {
            let line = String(decoding: info, as: UTF8.self).split(whereSeparator: \.isNewline)
                .first { $0.hasPrefix("redis_version:") }
            if let line { options.version = String(line.dropFirst("redis_version:".count)) }
        }
        model = Server(options)
        client = model.connect()
        // The two clocks differ, so scripts use the time that they are given.
        try start([["ACL", "SETUSER", "default", "-time"]])
    }

    var version: String { model.options.version }

    private mutating func start(_ commands: [[String]]) throws {
        if let difference = try run(commands.map { $0.map { Array($0.utf8) } }) { throw SetupFault("\(difference)") }
    }

    /// Sends a batch to both; the first difference, or nil.
    mutating func run(_ commands: [[[UInt8]]]) throws -> Difference? {
        let answers = try real.ask(commands)
        for (command, answer) in zip(commands, answers) {
            sent.append(command)
            let bytes = model.receive(Wire.command(command), from: client, nowMs: now())
            var place = 0
            let tree = ReplyTree(bytes, &place)
            if let tree, place == bytes.count, NormalForm.areEqual(command, real: answer, model: tree) { continue }
            return Difference(
                index: sent.count, command: Wire.text(command), real: answer.description,
                model: tree?.description ?? String(decoding: bytes, as: UTF8.self), before: history(of: command))
        }
        return nil
    }

    /// Both become a replica of a master that does not answer, or masters again.
    mutating func setReplica(_ isReplica: Bool) throws {
        _ = try real.ask(isReplica ? ["REPLICAOF", "127.0.0.1", "1"] : ["REPLICAOF", "NO", "ONE"])
        model.replication.master = isReplica ? ("127.0.0.1", 1) : nil
        model.link.isUp = !isReplica
    }

    private func history(of command: [[UInt8]]) -> [String] {
        let keys = Set(command.dropFirst().filter { $0.count > 1 && $0.count < 30 })
        return sent.dropLast().filter { $0.dropFirst().contains { keys.contains($0) } }.suffix(12).map { Wire.text($0) }
    }

    /// Commands that show all data, to end with.
    mutating func compareData() throws -> Difference? {
        guard case .array(let keys) = try real.ask(["KEYS", "*"]) else { return nil }
        for case .bulk(let key) in keys {
            guard case .line(let type) = try real.ask([[Array("TYPE".utf8), key]])[0] else { continue }
            let look: [[UInt8]] =
                switch String(decoding: type, as: UTF8.self) {
                case "+string": [Array("GET".utf8), key]
                case "+hash": [Array("HGETALL".utf8), key]
                case "+set": [Array("SMEMBERS".utf8), key]
                case "+zset": ["ZRANGE", "", "0", "-1", "WITHSCORES"].map { $0.isEmpty ? key : Array($0.utf8) }
                default: ["LRANGE", "", "0", "-1"].map { $0.isEmpty ? key : Array($0.utf8) }
                }
            if let difference = try run([[Array("TTL".utf8), key], look]) { return difference }
        }
        return try run([[Array("DBSIZE".utf8)]])
    }
}

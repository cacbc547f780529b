// SPDX-License-Identifier: Apache-2.0
internal import Telemetry

/// The expected role of a link's server. A server with another role is refused by name.
public enum RedisRole: Sendable {
    /// One server with all keys.
    case single
    /// One node of a cluster.
    case node
    case sentinel
}

/// The greeting of a connection: login, database, the server's properties, and a script that shows whether it executes
/// our calls. A machine without sockets: answers in, a verdict at the end.
///
/// All steps are sent in one write, so each gets an answer whatever the others give.
struct Greeting {
    enum Step: UInt64, CaseIterable {
        case login, database, info, clusterInfo
        /// The last one's answer decides.
        case script
    }

    enum Verdict: Equatable {
        case waiting
        case ready
        case refused(RedisFault)
    }

    /// Uses no keys and writes nothing, so that a full server and a replica run it too. Redis before 7.0 does not know
    /// this first line.
    static let script = "#!lua flags=no-writes\nreturn 1"

    private(set) var facts = RedisServerFacts()
    private var databaseFault: RedisFault?
    private let role: RedisRole

    init(_ role: RedisRole = .single) { self.role = role }

    /// The commands after the login, in order. A Sentinel runs no scripts.
    static func commands(_ endpoint: RedisEndpoint, _ role: RedisRole = .single) -> [(step: Step, words: [String])] {
        var commands: [(step: Step, words: [String])] = []
        if role == .sentinel { return [(.info, ["INFO", "server"])] }
        if endpoint.database != 0 { commands.append((.database, ["SELECT", String(endpoint.database)])) }
        commands.append((.info, ["INFO"]))
        commands.append((.clusterInfo, ["CLUSTER", "INFO"]))
        commands.append((.script, ["EVAL", script, "0"]))
        return commands
    }

    /// The answer of a step: its bytes, or the fault.
    mutating func answered(
        _ step: Step, _ bytes: UnsafeRawBufferPointer, _ fault: RedisFault?, nowMs: Int64
    ) -> Verdict {
        if let fault, let words = Self.farewell(fault) { return .refused(words) }
        switch step {
        case .login:
            if let fault { return .refused(fault) }
        // A Sentinel and a cluster node have no databases. Their role is the better error.
        case .database: databaseFault = fault
        // A refusal of only these two does not make the server unusable.
        case .info:
            if fault == nil { facts.take(info: bytes, nowMs: nowMs) }
            guard role == .sentinel else { return .waiting }
            if let fault, fault.code == .authentication { return .refused(fault) }
            return facts.refusal(as: role).map { .refused($0) } ?? .ready
        case .clusterInfo: if fault == nil { facts.take(clusterInfo: bytes) }
        case .script: return verdict(fault)
        }
        return .waiting
    }

    /// The words of a server that ends each connection at once, whatever it is asked. They quote nothing that was sent.
    private static func farewell(_ fault: RedisFault) -> RedisFault? {
        if fault.text.hasPrefix("ERR max number of clients") {
            return RedisFault(.unreachable, "the server says: \(fault.text); raise its maxclients or end other clients")
        }
        let isProtected = fault.text.hasPrefix("DENIED Redis is running in protected mode")
        return isProtected
            ? RedisFault(
                .unreachable,
                "the server says: DENIED Redis is running in protected mode; give it a password or a bind address")
            : nil
    }

    private func verdict(_ scriptFault: RedisFault?) -> Verdict {
        if let refusal = facts.refusal(as: role) ?? databaseFault { return .refused(refusal) }
        guard let scriptFault else { return .ready }
        switch scriptFault.code {
        case .noPermission:
            return .refused(
                RedisFault(.noPermission, "the user may run no scripts: grant it EVAL and EVALSHA"))
        case .refused, .scriptFailed:
            return .refused(
                RedisFault(
                    .unsupported,
                    "the server does not run scripts as Redis \(RedisServerFacts.leastMajorVersion).0 and newer do"))
        default: return .refused(scriptFault)
        }
    }
}

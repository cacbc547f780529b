internal import Telemetry

/// What a link's server is to be; another one is refused by name.
public enum RedisRole: Sendable {
    /// One server with all keys.
    case single
    /// One node of a cluster.
    case node
    case sentinel
}

/// The greeting of a connection: login, database, what the server is, and a script that shows whether it takes calls from
/// us at all. A machine without sockets: answers in, and at the end a verdict.
///
/// All steps leave in one write, so that an answer of each comes whatever the others say.
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

    /// Takes no keys and writes nothing, so that a full server and a replica run it as well; Redis before 7.0 knows no
    /// such first line.
    static let script = "#!lua flags=no-writes\nreturn 1"

    private(set) var facts = RedisServerFacts()
    private var databaseFault: RedisFault?
    private let role: RedisRole

    init(_ role: RedisRole = .single) { self.role = role }

    /// The commands after the login, in their order. A Sentinel runs no scripts.
    static func commands(_ endpoint: RedisEndpoint, _ role: RedisRole = .single) -> [(step: Step, words: [String])] {
        var commands: [(step: Step, words: [String])] = []
        if role == .sentinel { return [(.info, ["INFO", "server"])] }
        if endpoint.database != 0 { commands.append((.database, ["SELECT", String(endpoint.database)])) }
        commands.append((.info, ["INFO"]))
        commands.append((.clusterInfo, ["CLUSTER", "INFO"]))
        commands.append((.script, ["EVAL", script, "0"]))
        return commands
    }

    /// The answer of a step: its bytes, or why there is none.
    mutating func answered(_ step: Step, _ bytes: UnsafeRawBufferPointer, _ fault: RedisFault?) -> Verdict {
        switch step {
        case .login:
            if let fault { return .refused(fault) }
        // A Sentinel and a node of a cluster have no databases: what they are says more.
        case .database: databaseFault = fault
        // Whatever refuses these two alone is no reason not to work with the server.
        case .info:
            if fault == nil { facts.take(info: bytes) }
            guard role == .sentinel else { return .waiting }
            if let fault, fault.code == .authentication { return .refused(fault) }
            return facts.refusal(as: role).map { .refused($0) } ?? .ready
        case .clusterInfo: if fault == nil { facts.take(clusterInfo: bytes) }
        case .script: return verdict(fault)
        }
        return .waiting
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
                    "the server takes no scripts as Redis \(RedisServerFacts.leastMajorVersion).0 and newer do"))
        default: return .refused(scriptFault)
        }
    }
}

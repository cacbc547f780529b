// SPDX-License-Identifier: Apache-2.0
/// The reason why a command has no reply.
///
/// Equality is by code. `text` is for people and shortened. A server's error may quote arguments, so it must not go
/// into a log or a label; `publicText` may.
public struct RedisFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kinds of faults. `scope` gives the meaning for the caller.
    public enum Code: Sendable, Hashable {
        /// There is no usable connection; nothing was written.
        case notConnected
        /// The pipeline is full; nothing was written. Wait for replies.
        case overloaded
        /// No reply within the command's timeout. Redis may have executed it, or may do so later.
        case timeout
        /// The connection ended first. Unless `wasSent`, Redis cannot have received the whole command.
        case connectionLost(wasSent: Bool)
        /// The server's bytes are not RESP2.
        case protocolViolation
        /// TCP, TLS or name resolution failed.
        case unreachable
        /// The server answers but is unusable: too old, a Sentinel, one node of a cluster. `text` is this client's own,
        /// with the cure.
        case unsupported
        /// The reply is over `RedisLimits.replyBytesMax`. It was skipped, and the connection continues.
        case tooLarge

        // Server errors, by the first word of the reply.
        case authentication
        case noPermission
        case loading
        case masterDown
        case readOnly
        case moved
        case ask
        case clusterDown
        case tryAgain
        case crossSlot
        case noScript
        /// A script failed while running: its keys contain data that it cannot read.
        case scriptFailed
        case outOfMemory
        /// It cannot save its data, and takes no writes until it can.
        case misconfigured
        /// Fewer replicas copy from it than `min-replicas-to-write` wants.
        case noReplicas
        case busy
        case wrongType
        case refused

        /// Every kind once.
        static let all: [Code] = [
            .notConnected, .overloaded, .timeout, .connectionLost(wasSent: true), .protocolViolation, .unreachable,
            .unsupported, .tooLarge, .authentication, .noPermission, .loading, .masterDown, .readOnly, .moved, .ask,
            .clusterDown, .tryAgain, .crossSlot, .noScript, .scriptFailed, .outOfMemory, .misconfigured,
            .noReplicas, .busy, .wrongType, .refused,
        ]

        /// A short constant name for labels.
        public var name: String {
            switch self {
            case .notConnected: "not_connected"
            case .overloaded: "overloaded"
            case .timeout: "timeout"
            case .connectionLost: "connection_lost"
            case .protocolViolation: "protocol"
            case .unreachable: "unreachable"
            case .unsupported: "unsupported"
            case .tooLarge: "too_large"
            case .authentication: "authentication"
            case .noPermission: "no_permission"
            case .loading: "loading"
            case .masterDown: "master_down"
            case .readOnly: "read_only"
            case .moved: "moved"
            case .ask: "ask"
            case .clusterDown: "cluster_down"
            case .tryAgain: "try_again"
            case .crossSlot: "cross_slot"
            case .noScript: "no_script"
            case .scriptFailed: "script_failed"
            case .outOfMemory: "out_of_memory"
            case .misconfigured: "misconf"
            case .noReplicas: "noreplicas"
            case .busy: "busy"
            case .wrongType: "wrong_type"
            case .refused: "refused"
            }
        }

        /// Replaces the server's text if the name alone does not show the cure.
        var hint: String? {
            switch self {
            case .noPermission: "the user lacks a right; `carillon check` prints the line that grants them all"
            case .authentication: "the login is refused: redis.user and its password_file"
            case .misconfigured: "the server cannot save its data: INFO persistence says why"
            case .noReplicas: "too few replicas copy from the server: INFO replication names them"
            default: nil
            }
        }
    }

    /// The object of a fault, and so the party that must act.
    public enum Scope: Sendable, Equatable {
        /// This connection. The command may be sent again on the next one.
        case connection
        /// The server in its present state: it will refuse later commands too. The connection ends, no decision uses
        /// unread data, and the next greeting shows whether the server is usable.
        case server
        /// Writes: the server is full or a replica, and answers reads.
        case writes
        /// The form of this call. Another form is answered.
        case call
        /// This key, permanently. Others on the same connection work.
        case key
    }

    static let textMax = 200

    public let code: Code
    public let text: String
    /// The text is the server's, not this client's.
    private let isQuoted: Bool

    /// A fault of this kind, for tests and test servers.
    public init(_ code: Code, _ text: String = "") {
        self.code = code
        self.text = text
        isQuoted = false
    }

    /// The error of a command that fails because of another fault.
    init(_ code: Code, because cause: RedisFault) {
        self.code = code
        text = cause.text
        isQuoted = cause.isQuoted
    }

    /// Reads an error reply such as `WRONGTYPE Operation against a key …`, also inside an array.
    public init(errorReply bytes: UnsafeRawBufferPointer) {
        text = String(decoding: bytes.prefix(Self.textMax), as: UTF8.self)
        code = Self.code(of: bytes)
        isQuoted = true
    }

    public var scope: Scope {
        switch code {
        case .notConnected, .overloaded, .timeout, .connectionLost, .protocolViolation, .unreachable: .connection
        case .authentication, .noPermission, .loading, .masterDown, .moved, .ask, .clusterDown, .tryAgain, .busy,
            .unsupported, .refused:
            .server
        case .readOnly, .outOfMemory, .misconfigured, .noReplicas: .writes
        case .crossSlot, .noScript: .call
        case .wrongType, .scriptFailed, .tooLarge: .key
        }
    }

    /// False if Redis certainly did not execute the command, so that resending it is safe.
    public var mayHaveRun: Bool {
        switch code {
        case .notConnected, .overloaded, .unreachable, .connectionLost(wasSent: false), .unsupported: false
        case .authentication, .loading, .masterDown, .readOnly, .moved, .ask, .clusterDown, .tryAgain, .crossSlot,
            .noScript, .busy:
            false
        // A script may meet these while running, after it has written.
        case .noPermission, .outOfMemory, .misconfigured, .noReplicas, .wrongType, .scriptFailed, .refused: true
        case .timeout, .connectionLost(wasSent: true), .protocolViolation, .tooLarge: true
        }
    }

    /// The server answers and reads, but refused this write.
    public var refusesWrite: Bool { scope == .writes || scope == .key }

    /// Waiting does not help: the key has another type, or is too large to read.
    public var isLasting: Bool { scope == .key }

    /// For logs and pages: the code, and the text if it is this client's own.
    public var publicText: String {
        guard isQuoted else { return description }
        return code.hint.map { "\(code.name): \($0)" } ?? code.name
    }

    public var description: String { text.isEmpty ? code.name : "\(code.name): \(text)" }

    public static func == (left: RedisFault, right: RedisFault) -> Bool { left.code == right.code }

    private static func code(of reply: UnsafeRawBufferPointer) -> Code {
        switch String(decoding: reply.prefix(32).prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self) {
        case "NOAUTH", "WRONGPASS": .authentication
        case "NOPERM": .noPermission
        case "LOADING": .loading
        case "MASTERDOWN": .masterDown
        case "READONLY": .readOnly
        case "MOVED": .moved
        case "ASK": .ask
        case "CLUSTERDOWN": .clusterDown
        case "TRYAGAIN": .tryAgain
        case "CROSSSLOT": .crossSlot
        case "NOSCRIPT": .noScript
        case "OOM": .outOfMemory
        case "MISCONF": .misconfigured
        case "NOREPLICAS": .noReplicas
        case "BUSY": .busy
        case "WRONGTYPE": .wrongType
        case "ERR": codeOfScript(reply)
        default: .refused
        }
    }

    /// `ERR <what> script: <digest>, on @user_script:<line>.`: a script's own error. A right that only one of its
    /// commands lacks is reported like this too.
    private static func codeOfScript(_ reply: UnsafeRawBufferPointer) -> Code {
        guard contains(reply, "user_script:") else { return .refused }
        // The slot is moving to another node of the cluster, and the script's key may be there.
        if contains(reply, "Script attempted to access a non local key") { return .tryAgain }
        if contains(reply, "while the cluster is down") { return .clusterDown }
        // The second form is that of Redis 7.2 and newer.
        let isForbidden =
            contains(reply, "The user executing the script can't") || contains(reply, "ACL failure in script")
        return isForbidden ? .noPermission : .scriptFailed
    }

    private static func contains(_ reply: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
        let wanted = UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        // Redis limits its own errors to much less.
        let text = UnsafeRawBufferPointer(rebasing: reply.prefix(4096))
        guard text.count >= wanted.count else { return false }
        return (0...(text.count - wanted.count)).contains { start in
            text[start..<(start + wanted.count)].elementsEqual(wanted)
        }
    }
}

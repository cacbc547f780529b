/// Why a command has no reply.
///
/// Equality is by code. `text` is for people and cut short; a server's error may quote arguments, so it belongs
/// neither in a log nor in a label.
public struct RedisFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kinds of faults. Those below `server error` come from Redis: the command was seen there.
    public enum Code: Sendable, Hashable {
        /// There is no usable connection now; nothing was written.
        case notConnected
        /// The pipeline is full; nothing was written. Slow down until replies have come.
        case overloaded
        /// No reply within the command's time. Redis may have carried it out, or may yet.
        case timeout
        /// The connection ended first. Unless `wasSent`, Redis cannot have seen the whole command.
        case connectionLost(wasSent: Bool)
        /// The server spoke something that is not RESP2, or more than the limit allows.
        case protocolViolation
        /// TCP, TLS or name resolution failed.
        case unreachable

        // Server errors, by the first word of the reply.
        case authentication
        case loading
        case readOnly
        case moved
        case clusterDown
        case noScript
        case outOfMemory
        case busy
        case wrongType
        case refused

        /// A short constant name for labels.
        public var name: String {
            switch self {
            case .notConnected: "not_connected"
            case .overloaded: "overloaded"
            case .timeout: "timeout"
            case .connectionLost: "connection_lost"
            case .protocolViolation: "protocol"
            case .unreachable: "unreachable"
            case .authentication: "authentication"
            case .loading: "loading"
            case .readOnly: "read_only"
            case .moved: "moved"
            case .clusterDown: "cluster_down"
            case .noScript: "no_script"
            case .outOfMemory: "out_of_memory"
            case .busy: "busy"
            case .wrongType: "wrong_type"
            case .refused: "refused"
            }
        }
    }

    static let textMax = 200

    public let code: Code
    public let text: String

    /// A fault of this kind, as a test or a stand-in for a server makes one.
    public init(_ code: Code, _ text: String = "") {
        self.code = code
        self.text = text
    }

    /// Reads an error reply such as `WRONGTYPE Operation against a key …`.
    init(errorReply bytes: UnsafeRawBufferPointer) {
        let word = bytes.prefix { $0 != UInt8(ascii: " ") }
        code = Self.code(word: String(decoding: word.prefix(32), as: UTF8.self))
        text = String(decoding: bytes.prefix(Self.textMax), as: UTF8.self)
    }

    /// False where Redis provably did not carry the command out, so that sending it again is free.
    public var mayHaveRun: Bool {
        switch code {
        case .notConnected, .overloaded, .unreachable, .connectionLost(wasSent: false): false
        case .loading, .readOnly, .moved, .clusterDown, .noScript, .busy: false
        case .authentication: !isLoggedOut
        // A script may meet these, NOPERM too, in its midst, after it has written.
        case .outOfMemory, .wrongType, .refused: true
        case .timeout, .connectionLost(wasSent: true), .protocolViolation: true
        }
    }

    /// The server answers and reads, but took not this write: it is full, a replica, or refuses this very command.
    public var refusesWrite: Bool {
        switch code {
        case .outOfMemory, .readOnly, .wrongType, .refused: true
        case .authentication: !isLoggedOut
        default: false
        }
    }

    /// The server answers, and this very key or command is what it refuses: others of the same connection go well.
    public var isAboutOneKey: Bool {
        switch code {
        case .wrongType, .refused, .moved, .clusterDown: true
        case .authentication: !isLoggedOut
        default: false
        }
    }

    /// The server shares keys out over several places and takes no call that names keys of two of them.
    public var refusesManySlots: Bool { code == .clusterDown && text.hasPrefix("CROSSSLOT") }

    /// No waiting mends it: the key holds something of another kind, or the command is one that this server never takes.
    public var isLasting: Bool { code == .wrongType || code == .refused }

    /// NOAUTH: the connection counts as nobody's, and nothing at all was carried out.
    var isLoggedOut: Bool { code == .authentication && text.hasPrefix("NOAUTH") }

    public var description: String { text.isEmpty ? code.name : "\(code.name): \(text)" }

    public static func == (left: RedisFault, right: RedisFault) -> Bool { left.code == right.code }

    private static func code(word: String) -> Code {
        switch word {
        case "NOAUTH", "WRONGPASS", "NOPERM": .authentication
        case "LOADING", "MASTERDOWN": .loading
        case "READONLY": .readOnly
        case "MOVED", "ASK": .moved
        case "CLUSTERDOWN", "TRYAGAIN", "CROSSSLOT": .clusterDown
        case "NOSCRIPT": .noScript
        case "OOM", "MISCONF", "NOREPLICAS": .outOfMemory
        case "BUSY": .busy
        case "WRONGTYPE": .wrongType
        default: .refused
        }
    }
}

/// A record of `im.user-state` (contract section 2): it changes state and alerts nobody.
public struct UserState: Sendable {
    public var uid: String
    public var change: Change

    public enum Change: Sendable {
        case bind(Binding)
        case unbind(Unbinding)
        case settings(SettingsChange)
        case mute(conversation: String, level: MuteLevel, untilMs: Int64?)
        case read(conversation: String, upTo: ReadMark)
        case badgeReport(device: String, value: Int64, clientMs: Int64)
        case ack(device: String, connectionEpoch: Int64, msgIDs: [String])
        case openReport(device: String, pid: String, openedMs: Int64?)
    }

    /// How far a conversation was read.
    public struct ReadMark: Sendable, Equatable {
        public var seq: Int64?
        public var ms: Int64?

        public init(seq: Int64? = nil, ms: Int64? = nil) {
            self.seq = seq
            self.ms = ms
        }
    }

    public struct Binding: Sendable, Equatable {
        public var device: String
        public var token: TokenRecord
        public var version: Int64

        public init(device: String, token: TokenRecord, version: Int64) {
            self.device = device
            self.token = token
            self.version = version
        }
    }

    public struct Unbinding: Sendable, Equatable {
        public var device: String
        /// Lower-case hexadecimal.
        public var token: String
        public var version: Int64

        public init(device: String, token: String, version: Int64) {
            self.device = device
            self.token = token
            self.version = version
        }
    }

    /// Only given fields change, inside `dnd` too.
    public struct SettingsChange: Sendable, Equatable {
        public var dndOn: Bool?
        /// Minutes of the day.
        public var dndStart: Int?
        public var dndEnd: Int?
        public var dndZone: String?
        public var dndLevel: Int?
        public var showDetail: Bool?
        public var pushWhenDesktopOnline: Bool?
        /// 0-600.
        public var holdSeconds: Int?
        public var language: String?

        public init() {}
    }

    public init(uid: String, change: Change) {
        self.uid = uid
        self.change = change
    }
}

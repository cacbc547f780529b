/// All that is known of one recipient when a message about one conversation is decided.
public struct Recipient: Sendable {
    public var uid: String
    /// Presence as gateways wrote it; entries of a gateway without a lease of the same epoch are left out or `.off`.
    public var presence: [DevicePresence] = []
    public var settings = UserSettings()
    /// The user's own `mute` for this conversation.
    public var mute: Mute?
    /// The level that the group's `g:` hash gives this member.
    public var groupLevel: MuteLevel?
    /// How far this conversation was read.
    public var read: UserState.ReadMark?
    public var tokens: [BoundToken] = []
    /// Devices of which an earlier push is parked, each with its note; an empty name: all of them.
    public var parked: [(device: String, note: ParkedNote)] = []
    /// Whether this message is known as revoked.
    public var isRevoked = false

    public struct Mute: Sendable, Equatable {
        public var level: MuteLevel
        /// The mute ends then; nil: it does not.
        public var untilMs: Int64?

        public init(level: MuteLevel, untilMs: Int64? = nil) {
            self.level = level
            self.untilMs = untilMs
        }
    }

    public init(uid: String) {
        self.uid = uid
    }
}

/// RongCloud's six levels; NIM's mute is `.blocked` (contract section 2, `mute`).
public enum MuteLevel: Int, Sendable, CaseIterable {
    case all = -1
    /// Look further up the chain.
    case unset = 0
    /// Any mention, of me or of all.
    case mentions = 1
    case mentionsOfMe = 2
    case mentionsOfAll = 4
    case blocked = 5
}

/// A user's settings; what was never set stands at its default.
public struct UserSettings: Sendable, Equatable {
    public var dnd: DoNotDisturb?
    public var language: String?
    /// Where the SMS supplement goes, ≤ 20 bytes.
    public var phone: String?
    /// Seconds that a phone waits for the desktop, 0-600.
    public var holdSeconds = 0
    public var showDetail = true
    public var pushWhenDesktopOnline = true

    /// By reference: few users have one, and every recipient in work would hold room for it.
    public final class DoNotDisturb: Sendable, Equatable {
        public let on: Bool
        /// At least one, at most seven.
        public let windows: [QuietWindow]
        /// IANA name; nil: the token's, else the app's.
        public let zone: String?
        /// 1: mentions in groups come through. 5: nothing does.
        public let level: Int

        public init(on: Bool, windows: [QuietWindow], zone: String? = nil, level: Int = 5) {
            self.on = on
            self.windows = windows
            self.zone = zone
            self.level = level
        }

        public convenience init(
            on: Bool, start: Int, end: Int, days: QuietWindow.Days = .all, zone: String? = nil, level: Int = 5
        ) {
            self.init(on: on, windows: [QuietWindow(start: start, end: end, days: days)], zone: zone, level: level)
        }

        public static func == (one: DoNotDisturb, other: DoNotDisturb) -> Bool {
            one.on == other.on && one.windows == other.windows && one.level == other.level && one.zone == other.zone
        }
    }

    public init() {}
}

/// What a gateway wrote of one device (contract section 4, `p:{app:uid}`).
public struct DevicePresence: Sendable, Equatable {
    public var device: String
    public var state: State
    public var platform: Platform
    public var gateway: String
    public var gatewayEpoch: Int64
    public var connectionEpoch: Int64
    public var lastMs: Int64
    public var backgroundSinceMs: Int64?
    public var activeConversation: String?
    /// Flag `l`: the app can raise a local alert while in background.
    public var raisesLocalAlert: Bool
    /// A delivery over this very connection was not acknowledged in time.
    public var isSuspect = false

    public enum State: String, Sendable {
        case foreground = "fg"
        case background = "bg"
        case off
    }

    public enum Platform: String, Sendable {
        case ios, ipad, android, pc, mac, web

        public var isDesktop: Bool { self == .pc || self == .mac || self == .web }
    }

    public init(
        device: String, state: State, platform: Platform, gateway: String, gatewayEpoch: Int64, connectionEpoch: Int64,
        lastMs: Int64, backgroundSinceMs: Int64? = nil, activeConversation: String? = nil,
        raisesLocalAlert: Bool = false
    ) {
        self.device = device
        self.state = state
        self.platform = platform
        self.gateway = gateway
        self.gatewayEpoch = gatewayEpoch
        self.connectionEpoch = connectionEpoch
        self.lastMs = lastMs
        self.backgroundSinceMs = backgroundSinceMs
        self.activeConversation = activeConversation
        self.raisesLocalAlert = raisesLocalAlert
    }
}

// SPDX-License-Identifier: Apache-2.0
/// All facts about one recipient for a decision in one conversation.
public struct Recipient: Sendable {
    public var uid: String
    /// Presence as gateways wrote it. Entries of a gateway without a lease of the same epoch are left out or `.off`.
    public var presence: [DevicePresence] = []
    public var settings = UserSettings()
    /// The user's own `mute` for this conversation.
    public var mute: Mute?
    /// The member's level in the group's `g:` hash.
    public var groupLevel: MuteLevel?
    /// How far this conversation was read.
    public var read: UserState.ReadMark?
    public var tokens: [BoundToken] = []
    /// Devices of which an earlier push is parked, each with its note; an empty name: all of them.
    public var parked: [(device: String, note: ParkedNote)] = []
    /// Whether this message is known to be revoked.
    public var isRevoked = false

    public struct Mute: Sendable, Equatable {
        public var level: MuteLevel
        /// End of the mute; nil for no end.
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
    /// Passes to the next link of the chain.
    case unset = 0
    /// Any mention, of the recipient or of all.
    case mentions = 1
    case mentionsOfMe = 2
    case mentionsOfAll = 4
    case blocked = 5
}

/// A user's settings. Unset values have their defaults.
public struct UserSettings: Sendable, Equatable {
    public var dnd: DoNotDisturb?
    public var language: String?
    /// The number for the SMS supplement, ≤ 20 bytes.
    public var phone: String?
    /// Until this time every alert is denied, as by a DND window of level 5; 0 for none. Unix ms.
    public var snoozeUntilMs: Int64 = 0
    /// Seconds that a phone waits for the desktop, 0-600.
    public var holdSeconds: Int16 = 0
    /// The user's own level for each type of conversation.
    public var levels = TypeLevels()
    public var showDetail = true
    public var pushWhenDesktopOnline = true

    /// By reference, because few users have one, and every recipient would otherwise reserve room for it.
    public final class DoNotDisturb: Sendable, Equatable {
        public let on: Bool
        /// At least one, at most seven.
        public let windows: [DNDWindow]
        /// IANA name; nil for the token's, else the app's.
        public let zone: String?
        /// 1 allows mentions in groups. 5 allows nothing.
        public let level: Int

        public init(on: Bool, windows: [DNDWindow], zone: String? = nil, level: Int = 5) {
            self.on = on
            self.windows = windows
            self.zone = zone
            self.level = level
        }

        public convenience init(
            on: Bool, start: Int, end: Int, days: DNDWindow.Days = .all, zone: String? = nil, level: Int = 5
        ) {
            self.init(on: on, windows: [DNDWindow(start: start, end: end, days: days)], zone: zone, level: level)
        }

        public static func == (one: DoNotDisturb, other: DoNotDisturb) -> Bool {
            one.on == other.on && one.windows == other.windows && one.level == other.level && one.zone == other.zone
        }
    }

    public init() {}
}

/// A gateway's entry for one device (contract section 4, `p:{app:uid}`).
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
    /// Flag `l`: the app can raise a local alert in the background.
    public var raisesLocalAlert: Bool
    /// A delivery over this connection was not acknowledged in time.
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

// SPDX-License-Identifier: Apache-2.0
/// A record of `im.user-state` (contract section 2). It changes state and alerts nobody.
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
        /// - Parameter connectionEpoch: nil for any connection.
        case ack(device: String, connectionEpoch: Int64?, msgIDs: [String])
        /// A push was opened.
        case openReport(PushReport)
        /// A push reached the device, reported by its service extension.
        case arrivedReport(PushReport)
        /// Everything stored about the user goes.
        case forget

        /// The `kind` of its record.
        public var kind: String {
            switch self {
            case .bind: "bind"
            case .unbind: "unbind"
            case .settings: "settings"
            case .mute: "mute"
            case .read: "read"
            case .badgeReport: "badge_report"
            case .ack: "ack"
            case .openReport: "open_report"
            case .arrivedReport: "arrived_report"
            case .forget: "forget"
            }
        }
    }

    /// A device's report on one push.
    public struct PushReport: Sendable, Equatable {
        public var device: String
        /// Lower case.
        public var pid: String
        /// The push's message; nil if the pid cannot be checked.
        public var msgID: String?
        public var atMs: Int64?

        public init(device: String, pid: String, msgID: String? = nil, atMs: Int64? = nil) {
            self.device = device
            self.pid = pid
            self.msgID = msgID
            self.atMs = atMs
        }
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
        /// For `credential`, `contentKey`, `language` and `zone`, nil keeps the token's value, and an empty text clears
        /// it.
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

    /// Only the given fields change, inside `dnd` too.
    public struct SettingsChange: Sendable, Equatable {
        public var dndOn: Bool?
        /// Minutes of the day.
        public var dndStart: Int?
        public var dndEnd: Int?
        public var dndDays: DNDWindow.Days?
        /// In place of the three; never given with one of them.
        public var dndWindows: [DNDWindow]?
        public var dndZone: String?
        public var dndLevel: Int?
        public var showDetail: Bool?
        public var pushWhenDesktopOnline: Bool?
        /// 0-600.
        public var holdSeconds: Int?
        /// 0 ends the snooze. Unix ms.
        public var snoozeUntilMs: Int64?
        /// The levels of the given types; `unset` clears one.
        public var levels = TypeLevels()
        public var language: String?
        /// ≤ 20 bytes; empty clears it.
        public var phone: String?

        public init() {}

        /// The stored settings decide whether the change is right: it switches DND on or changes a window.
        public var touchesWindow: Bool {
            dndOn == true || dndStart != nil || dndEnd != nil || dndDays != nil || dndWindows != nil
        }
    }

    public init(uid: String, change: Change) {
        self.uid = uid
        self.change = change
    }
}

// SPDX-License-Identifier: Apache-2.0
public import Digits

/// The `push` object of a message: the sender's options for the alert (contract section 2).
public struct PushOptions: Sendable {
    // Large parts first, which saves padding and distinguishes the memberwise initialiser from the public one: see
    // there.

    public var force = Force()
    /// ≤ 100 characters.
    public var title: String?
    /// ≤ 500 characters; if absent, the built-in text of the type, else the app's generic text.
    public var content: String?
    /// ≤ 100 characters.
    public var subtitle: String?
    /// A URL of at most 512 bytes, for the app's service extension.
    public var image: String?
    /// ≤ 2048 characters as JSON, or as text.
    public var payload: CustomPayload?
    /// NIM's apsField, deep-merged into `aps`; an `.object` when present.
    public var aps: JSONValue?
    public var sound: String?
    public var threadID: String?
    public var category: String?
    public var interruption: String?
    /// Unchecked. `Payload` makes a header from it.
    public var collapseID: String?
    /// Title and content from one of the app's templates.
    public var template: Template?
    /// Statistics are also kept by it, ≤ 64 bytes.
    public var taskID: String?
    /// The message waits until this time and is decided then, Unix ms; nil: at once.
    public var sendAtMs: Int64?
    public var profile: PayloadProfile?
    public var strategy: Strategy?
    public var priority = Priority.high
    /// False is an absolute veto, which no force lifts.
    public var enabled: Bool
    /// `nick: ` before the body.
    public var prefix: Bool
    /// NIM's shouldBeCounted.
    public var badge: Bool
    /// Overrides the receiver's hidden details (RongCloud).
    public var forceDetail = false
    /// A background push, which shows nothing.
    public var silent = false
    /// Goes to voip tokens only.
    public var voip = false
    public var sms = false
    /// If false, the alert has no `mutable-content`, whatever `aps` says.
    public var isMutable = true

    /// Recipients that get the alert although they muted the conversation.
    public struct Force: Sendable, Equatable {
        public var mode = Mode.none
        /// ≤ 100 ids. With mode `list`, an empty list names nobody.
        public var uids: [String] = []
        /// The text for forced recipients, ≤ 500 characters; if absent, the ordinary content.
        public var content: String?
        /// False (NIM forcePush NO): the named recipients get the text, but their mute remains in effect.
        public var liftsMute = true

        public enum Mode: String, Sendable {
            case none, list, all
        }

        public init(mode: Mode = .none, uids: [String] = [], content: String? = nil, liftsMute: Bool = true) {
            self.mode = mode
            self.uids = uids
            self.content = content
            self.liftsMute = liftsMute
        }

        public func names(_ uid: String) -> Bool {
            switch mode {
            case .none: false
            case .all: true
            case .list: uids.containsSame(uid)
            }
        }
    }

    /// `push.interruption`.
    public enum Interruption: String, Sendable {
        case passive, active, critical
        case timeSensitive = "time-sensitive"
    }

    /// `push.template`: which one, and the values for its places.
    public struct Template: Sendable, Equatable {
        /// ≤ 256 bytes.
        public var id: String
        /// ≤ 500 characters each.
        public var args: [UTF8Key: String]

        public init(id: String, args: [UTF8Key: String] = [:]) {
            self.id = id
            self.args = args
        }
    }

    /// `push.priority`: 10, 5 and 1 in `apns-priority`.
    public enum Priority: String, Sendable {
        case high, normal, low

        public var apns: UInt8 {
            switch self {
            case .high: 10
            case .normal: 5
            case .low: 1
            }
        }
    }
}

extension PushOptions {
    /// Parameters in the contract's order. It calls the memberwise initialiser, which moves its arguments; assigning so
    /// many fields would end with a copy of them all.
    public init(
        enabled: Bool = true, title: String? = nil, content: String? = nil, prefix: Bool = true, badge: Bool = true,
        force: Force = Force(), forceDetail: Bool = false, payload: CustomPayload? = nil, aps: JSONValue? = nil,
        profile: PayloadProfile? = nil, sound: String? = nil, threadID: String? = nil, category: String? = nil,
        interruption: String? = nil, collapseID: String? = nil, silent: Bool = false, voip: Bool = false,
        priority: Priority = .high, strategy: Strategy? = nil, sms: Bool = false, subtitle: String? = nil,
        image: String? = nil, template: Template? = nil, taskID: String? = nil, isMutable: Bool = true,
        sendAtMs: Int64? = nil
    ) {
        self.init(
            force: force, title: title, content: content, subtitle: subtitle, image: image, payload: payload, aps: aps,
            sound: sound, threadID: threadID, category: category, interruption: interruption, collapseID: collapseID,
            template: template, taskID: taskID, sendAtMs: sendAtMs, profile: profile, strategy: strategy,
            priority: priority,
            enabled: enabled, prefix: prefix,
            badge: badge, forceDetail: forceDetail, silent: silent, voip: voip, sms: sms, isMutable: isMutable)
    }
}

/// The channel to a device (contract section 5, step 11; Getui's strategies).
public enum Strategy: Int, Sendable {
    /// Live devices by long connection, the others by APNs.
    case connectionElseAPNs = 1
    case apnsOnly = 2
    case connectionOnly = 3
    /// APNs first; live devices then get a copy.
    case apnsThenConnection = 4
}

/// The form of the keys next to `aps` (contract section 6).
public enum PayloadProfile: String, Sendable {
    case nim, rc, wps, raw
}

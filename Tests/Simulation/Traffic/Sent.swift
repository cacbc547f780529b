// SPDX-License-Identifier: Apache-2.0
/// An event that the world sent, as the judge knows it.
struct Sent {
    enum Kind { case message, revoke, probe, activity }

    var kind: Kind
    var app: String
    var eventID: String
    /// Of an activity's event, which has none: the event's id.
    var messageID: String
    var conversation: String
    var isGroup = false
    var seq: Int64
    /// Without the sender and the excluded users.
    var recipients: [String]
    /// The members of a group come from Redis.
    var isToGroup = false
    /// The producer wrote it twice.
    var isDoubled = false
    var atNanos: UInt64
    var sentMs: Int64
    var push = PushWords()
    /// Of a revoke.
    var target: String?
    var activity: Activity?
    var partition: Int32 = -1
    var offset: Int64 = -1

    struct Activity {
        enum Step: String { case start, update, end }
        var id: String
        var step: Step
    }

    /// The kind of token that its pushes go to.
    var tokenType: StateSent.TokenType {
        switch activity?.step {
        case .start: .start
        case .update, .end: .activity
        case nil: push.isVoip ? .voip : .alert
        }
    }
}

/// What an event asks of its push.
struct PushWords {
    var content: String?
    /// A custom type.
    var isCustom = false
    var isEnabled = true
    var isSilent = false
    var isVoip = false
    var isCounted = true
    var hasPrefix = true
    var forcesDetail = false
    var expireMs: Int64?
    var force: Force?
    var mentionsAll = false
    var mentioned: [String] = []
    var excluded: [String] = []

    struct Force {
        /// Nil: all.
        var uids: [String]?
        var content: String
        var liftsMute: Bool
    }

    func forces(_ uid: String) -> Bool { force.map { $0.uids?.contains(uid) ?? true } ?? false }

    /// The members of the record, each with a comma before it.
    var members: String {
        var push: [String] = []
        if let content { push.append("\"content\":\"\(content)\"") }
        if !isEnabled { push.append("\"enabled\":false") }
        if isSilent { push.append("\"silent\":true") }
        if isVoip { push.append("\"voip\":true") }
        if !isCounted { push.append("\"badge\":false") }
        if !hasPrefix { push.append("\"prefix\":false") }
        if forcesDetail { push.append("\"force_detail\":true") }
        if let force {
            let named = force.uids.map { ",\"uids\":\(Self.list($0))" } ?? ""
            push.append(
                "\"force\":{\"mode\":\"\(force.uids == nil ? "all" : "list")\"\(named),\"content\":\"\(force.content)\","
                    + "\"lift_mute\":\(force.liftsMute)}")
        }
        var members = ",\"push\":{\(push.joined(separator: ","))}"
        if isCustom { members += ",\"custom\":true" }
        if let expireMs { members += ",\"expire_at_ms\":\(expireMs)" }
        if mentionsAll || !mentioned.isEmpty {
            members += ",\"mention\":{\"all\":\(mentionsAll),\"uids\":\(Self.list(mentioned))}"
        }
        return members
    }

    static func list(_ texts: [String]) -> String { "[\(texts.map { "\"\($0)\"" }.joined(separator: ","))]" }
}

/// A user-state record that the world sent.
struct StateSent {
    enum TokenType: String { case alert, voip, activity, start }

    enum Kind {
        case bind(device: String, token: String, type: TokenType)
        case unbind(device: String, token: String)
        case read(conversation: String, upTo: Int64)
        case mute(conversation: String, level: Int, untilMs: Int64?)
        case quiet(QuietHours)
        case showsDetail(Bool)
        /// `push_when_desktop_online` and `hold_s`.
        case desktopPolicy(pushes: Bool, holdSeconds: Int)
        case report(value: Int64, clientMs: Int64)
        case ack(device: String, messageID: String)
        /// `open_report`, or `arrived_report`.
        case pushReport(device: String, pid: String, messageID: String, isOpened: Bool)
    }

    /// A DND window in minutes of the day.
    struct QuietHours: Equatable {
        var isOn: Bool
        var start: Int
        var end: Int
        var level: Int
    }

    var kind: Kind
    var app: String
    var eventID: String
    var uid: String
    var atNanos: UInt64
    var sentMs: Int64
    var partition: Int32 = -1
    var offset: Int64 = -1

    /// Of a bind or unbind.
    var token: String? {
        switch kind {
        case .bind(_, let token, _), .unbind(_, let token): token
        default: nil
        }
    }

    /// Of a bind.
    var tokenType: TokenType? { if case .bind(_, _, let type) = kind { type } else { nil } }
}

/// A user of the world.
struct Person {
    var app: String
    var uid: String
    var devices: [Device]
    /// `app` and `uid`, as Redis' hash tags have them.
    var tag: String { "\(app):\(uid)" }

    struct Device {
        var name: String
        /// Empty on a desktop.
        var token: String
        var voip: String?
        var start: String?
        var platform = "ios"
    }
}

/// A change of a device's connection, as a gateway wrote it to Redis.
struct Move {
    var app: String
    var uid: String
    var device: String
    var atNanos: UInt64
    var state: String
    var isDesktop: Bool
    /// It can raise a local alert in the background.
    var hasLocal: Bool
    var openConversation: String?
}

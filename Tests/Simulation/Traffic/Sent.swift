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
    var isOfSystem = false
    var seq: Int64
    /// Without the sender and the excluded users.
    var recipients: [String]
    var sender = "u2"
    /// `to.devices`; empty: all.
    var toDevices: [String] = []
    /// The members of a group come from Redis.
    var isToGroup = false
    /// The producer wrote it twice.
    var isDoubled = false
    /// The producer wrote the second record at about the same time, and to another partition if there is one.
    var isCopied = false
    var atNanos: UInt64
    var sentMs: Int64
    var push = PushWords()
    /// Of a revoke.
    var target: String?
    /// Of a revoke: `decrease`, `keep` or `count`.
    var revokeBadge = "decrease"
    var activity: Activity?
    var partition: Int32 = -1
    var offset: Int64 = -1
    /// As its producer wrote it.
    var record = ""

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
    var title: String?
    var subtitle: String?
    var image: String?
    var typeName: String?
    /// The template `hello`, with these arguments.
    var template: [String: String]?
    var taskID: String?
    var collapseID: String?
    /// A custom key `k`.
    var key: String?
    /// A string as payload.
    var payloadText: String?
    var sound: String?
    var threadID: String?
    var category: String?
    var interruption: String?
    var isMutable = true
    var priority: String?
    var strategy: Int?
    var profile: String?
    var wantsSMS = false
    /// `push.aps.badge`.
    var givenBadge: Int64?
    /// `content` repeated so often: a payload near its limit.
    var contentCount = 1

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
        func add(_ name: String, _ text: String?) {
            if let text { push.append("\"\(name)\":\"\(text)\"") }
        }
        add("content", content)
        add("title", title)
        add("subtitle", subtitle)
        add("image", image)
        add("task_id", taskID)
        add("collapse_id", collapseID)
        add("payload", payloadText)
        add("sound", sound)
        add("thread_id", threadID)
        add("category", category)
        add("interruption", interruption)
        add("priority", priority)
        add("profile", profile)
        if let key { push.append("\"payload\":{\"k\":\"\(key)\"}") }
        if let strategy { push.append("\"strategy\":\(strategy)") }
        if let givenBadge { push.append("\"aps\":{\"badge\":\(givenBadge)}") }
        if !isMutable { push.append("\"mutable\":false") }
        if wantsSMS { push.append("\"sms\":true") }
        if let template {
            let arguments = template.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\"\($0.value)\"" }
            push.append("\"template\":{\"id\":\"hello\",\"args\":{\(arguments.joined(separator: ","))}}")
        }
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
        if let typeName { members += ",\"type_name\":\"\(typeName)\"" }
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
        /// `dnd.on` alone, or `dnd.level` alone: the rest stays.
        case quietSwitch(Bool)
        case quietLevel(Int)
        /// `levels` of one type.
        case typeLevel(type: String, level: Int)
        /// `snooze_until_ms`; 0 ends it.
        case snooze(untilMs: Int64)
        case showsDetail(Bool)
        /// `lang`; empty clears it.
        case language(String)
        case phone(String)
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
        /// Monday is 1; empty: all days.
        var days: [Int] = []
        /// Nil: not in the record.
        var zone: String?
    }

    /// What a bind says beside its token. Nil: not in the record; empty: cleared.
    struct BindWords: Equatable {
        var version: Int64 = 0
        var language: String?
        var zone: String?
        var contentKey: String?
        var alerts: Bool?
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
    var words = BindWords()
    /// The Live Activity of a bind.
    var activity: String?
    /// The `kind` of its record.
    var name = ""

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
        var isDesktop: Bool { ["pc", "mac", "web"].contains(platform) }
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
    var gateway = "gw-1"
    var epoch: Int64 = 1
    var connection: Int64 = 1
    /// How long it has been in the background.
    var ageNanos: UInt64 = 0
    /// A worker may have an older lease in its cache for that long.
    var isOfNewLease = false
}

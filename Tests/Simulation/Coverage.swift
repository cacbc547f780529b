// SPDX-License-Identifier: Apache-2.0
/// How often each combination occurred in worlds. One that never occurs is a defect of the world.
public struct Coverage: Sendable {
    /// By subject and combination.
    public private(set) var counts: [String: [String: Int]] = [:]

    public init() {}

    public mutating func add(_ other: Coverage) {
        for (subject, names) in other.counts { counts[subject, default: [:]].merge(names) { $0 + $1 } }
    }

    mutating func add(_ subject: String, _ name: String) { counts[subject, default: [:]][name, default: 0] += 1 }

    /// What every large number of worlds must have.
    public static let wanted: [(subject: String, names: [String])] = [
        ("reason", reasons), ("options of a message", options), ("state result", results),
        ("profile, strategy, badge", combinations), ("fault", FaultKind.allCases.map(\.rawValue)),
        ("traffic", Plan.Kind.allCases.map(\.rawValue)), ("answer of APNs", answers),
        ("delivery", ["with alert, ack awaited", "without alert", "pushed before"]),
        ("side record", ["SMS no_token", "SMS all_failed", "feedback 410", "feedback 400"]),
        ("episode", Episode.all.map(\.name)),
        ("Redis", ["single", "sentinel", "cluster"]), ("group", Plan.Group.allCases.map(\.rawValue)),
    ]

    /// The combinations that never occurred.
    public var missing: [(subject: String, names: [String])] {
        Self.wanted.compactMap { subject, names in
            let left = names.filter { counts[subject]?[$0] == nil }
            return left.isEmpty ? nil : (subject, left)
        }
    }

    private static let reasons = [
        "accepted ok", "accepted forced", "online ok", "online acked", "expired expired", "suppressed no_recipients",
        "suppressed connection_only", "suppressed already_read", "suppressed msg_push_off", "suppressed conv_muted",
        "suppressed dnd", "suppressed desktop_online", "suppressed no_token", "suppressed payload_too_large",
        "suppressed revoked", "suppressed token_moved", "suppressed activity_over", "suppressed coalesced",
        "suppressed alerts_off",
        "rejected Unregistered", "rejected BadDeviceToken", "rejected DeviceTokenNotForTopic", "rejected Unanswered",
    ]
    private static let options = [
        "title", "subtitle", "image", "type_name", "template", "task_id", "collapse_id", "payload", "text as payload",
        "sound", "thread_id", "category", "interruption", "not mutable", "priority", "strategy", "profile", "sms",
        "aps.badge", "near the limit", "silent", "voip", "custom", "not counted", "without prefix", "force_detail",
        "force", "@me", "@all", "expire_at_ms", "exclude", "to.devices", "system", "revoke decrease", "revoke keep",
        "revoke count", "twice", "in two partitions",
    ]
    private static let results = [
        "bind applied", "bind stale", "bind repeat", "unbind applied", "settings applied", "mute applied",
        "read applied",
        "read stale", "badge_report applied", "badge_report stale", "ack applied", "push report applied",
        "push report repeat", "push report ignored",
    ]
    private static let answers = [
        "200", "400 BadDeviceToken", "400 DeviceTokenNotForTopic", "410 Unregistered", "429 TooManyRequests",
        "500 InternalServerError", "503 ServiceUnavailable", "late",
    ]
    private static let combinations = ["nim", "raw", "rc", "wps"].flatMap { profile in
        (1...4).flatMap { strategy in ["server", "none", "sender"].map { "\(profile) \(strategy) \($0)" } }
    }
}

extension Coverage {
    /// Of one world.
    init(_ plan: Plan, _ evidence: World.Evidence) {
        for kind in plan.kinds { add("traffic", kind.rawValue) }
        for fault in Set(plan.faults) where plan.faultCount > 0 { add("fault", fault.rawValue) }
        add("group", plan.group.rawValue)
        switch plan.redis {
        case .single: add("Redis", "single")
        case .sentinel: add("Redis", "sentinel")
        case .cluster: add("Redis", "cluster")
        }
        for event in evidence.sources.sent { add(event, plan) }
        for state in evidence.sources.states {
            let outcome = evidence.observed.results[state.eventID]?.outcome ?? "none"
            add("state result", "\(Self.name(state.kind)) \(outcome)")
        }
        // With the app of the episodes, which other rules leave out.
        let observed = evidence.episodes?.observed ?? evidence.observed
        for outcome in observed.outcomes where outcome.isFinal {
            add("reason", "\(outcome.verdict) \(outcome.reason)")
        }
        for push in observed.pushes {
            if push.delayMs > 0 { add("answer of APNs", "late") }
            guard let status = push.status else { continue }
            add("answer of APNs", push.reason.isEmpty ? "\(status)" : "\(status) \(push.reason)")
        }
        for delivery in evidence.observed.deliveries {
            if delivery.isPushed {
                add("delivery", "pushed before")
            } else {
                add("delivery", delivery.wantsAck ? "with alert, ack awaited" : "without alert")
            }
        }
        for episode in evidence.episodes?.claims ?? [] { add("episode", episode.name) }
        for sms in observed.sms { add("side record", "SMS \(sms.reason)") }
        for feedback in evidence.observed.feedback {
            add("side record", "feedback \(feedback.cause == "Unregistered" ? 410 : 400)")
        }
    }

    private mutating func add(_ event: Sent, _ plan: Plan) {
        guard event.kind != .activity, let app = plan.apps.first(where: { $0.id == event.app }) else { return }
        let words = event.push
        let (profile, strategy) = (words.profile ?? app.profile, words.strategy ?? app.strategy)
        add("profile, strategy, badge", "\(profile) \(strategy) \(app.badge.rawValue)")
        let has: [(String, Bool)] = [
            ("title", words.title != nil), ("subtitle", words.subtitle != nil), ("image", words.image != nil),
            ("type_name", words.typeName != nil), ("template", words.template != nil),
            ("task_id", words.taskID != nil), ("collapse_id", words.collapseID != nil), ("payload", words.key != nil),
            ("text as payload", words.payloadText != nil), ("sound", words.sound != nil),
            ("thread_id", words.threadID != nil), ("category", words.category != nil),
            ("interruption", words.interruption != nil), ("not mutable", !words.isMutable),
            ("priority", words.priority != nil), ("strategy", words.strategy != nil),
            ("profile", words.profile != nil), ("sms", words.wantsSMS), ("aps.badge", words.givenBadge != nil),
            ("near the limit", words.contentCount > 1), ("silent", words.isSilent), ("voip", words.isVoip),
            ("custom", words.isCustom), ("not counted", !words.isCounted), ("without prefix", !words.hasPrefix),
            ("force_detail", words.forcesDetail), ("force", words.force != nil), ("@me", !words.mentioned.isEmpty),
            ("@all", words.mentionsAll), ("expire_at_ms", words.expireMs != nil), ("exclude", !words.excluded.isEmpty),
            ("to.devices", !event.toDevices.isEmpty), ("system", event.isOfSystem), ("twice", event.isDoubled),
            ("in two partitions", event.isCopied && plan.partitions > 1),
            ("revoke \(event.revokeBadge)", event.kind == .revoke),
        ]
        for (name, isThere) in has where isThere { add("options of a message", name) }
    }

    private static func name(_ kind: StateSent.Kind) -> String {
        switch kind {
        case .bind: "bind"
        case .unbind: "unbind"
        case .read: "read"
        case .mute: "mute"
        case .quiet, .quietSwitch, .quietLevel, .typeLevel, .snooze, .showsDetail, .language, .phone, .desktopPolicy:
            "settings"
        case .report: "badge_report"
        case .ack: "ack"
        case .pushReport: "push report"
        }
    }
}

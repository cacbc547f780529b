// SPDX-License-Identifier: Apache-2.0
internal import Digits

/// How one field is scrubbed, by its place in the record.
///
/// A field that no table names is treated as `free`. So a field added to the contract is scrubbed until it is named
/// here.
enum ScrubRule {
    /// A number, a Boolean, or a word of the protocol.
    case word
    /// Identifies a user, conversation, device or message: kept, or replaced with the other identifiers.
    case id
    case text
    case token
    /// A telephone number. Its digits become 0.
    case phone
    case url
    /// An object, or a list of objects, with its own fields.
    case part(Part)
    /// Content of an app or client. Texts and long numbers are replaced at every depth; field names remain.
    case free

    enum Part {
        case root, conversation, sender, audience, mention, push, force, aps, revoke, activity, token, quiet, levels
    }
}

extension ScrubRule.Part {
    func rule(for name: String) -> ScrubRule {
        let key = UTF8Key(name)
        return switch self {
        case .root: Self.rootFields[key] ?? .free
        case .conversation: Self.conversationFields[key] ?? .free
        case .sender: Self.senderFields[key] ?? .free
        case .audience: Self.audienceFields[key] ?? .free
        case .mention: Self.mentionFields[key] ?? .free
        case .push: Self.pushFields[key] ?? .free
        case .force: Self.forceFields[key] ?? .free
        case .aps: Self.apsFields[key] ?? .free
        case .revoke: Self.revokeFields[key] ?? .free
        case .activity: Self.activityFields[key] ?? .free
        case .token: Self.tokenFields[key] ?? .free
        case .quiet: Self.quietFields[key] ?? .free
        case .levels: Self.levelFields[key] ?? .free
        }
    }

    private static func table(
        words: [String], ids: [String] = [], _ others: KeyValuePairs<String, ScrubRule> = [:]
    ) -> [UTF8Key: ScrubRule] {
        var table: [UTF8Key: ScrubRule] = [:]
        for (name, rule) in others { table[UTF8Key(name)] = rule }
        for name in words { table[UTF8Key(name)] = .word }
        for name in ids { table[UTF8Key(name)] = .id }
        return table
    }

    /// Records of every topic except the worker's internal ones, in and out (contract sections 2 and 3).
    private static let rootFields = table(
        words: [
            "v", "kind", "app", "sent_ms", "server_seq", "expire_at_ms", "type_name", "custom", "up_to_seq", "up_to_ms",
            "level", "until_ms", "value", "client_ms", "conn_epoch", "pid", "opened_ms", "arrived_ms", "show_detail",
            "push_when_desktop_online", "hold_s", "lang", "verdict", "reason", "apns_id", "status", "badge",
            "credential", "attempts", "latency_ms", "at_ms", "env", "topic", "cause", "timestamp_ms", "bound_ms",
            "outcome", "lane", "snooze_until_ms",
        ],
        ids: ["event_id", "msg_id", "msg_ids", "uid", "device", "conv_id", "gateway"],
        [
            "conv": .part(.conversation), "from": .part(.sender), "to": .part(.audience), "mention": .part(.mention),
            "push": .part(.push), "revoke": .part(.revoke), "la": .part(.activity), "token": .part(.token),
            "dnd": .part(.quiet), "levels": .part(.levels), "event": .part(.root), "phone": .phone, "title": .text,
            "body": .text,
        ])

    private static let conversationFields = table(words: ["type"], ids: ["id"], ["name": .text])
    private static let senderFields = table(words: [], ids: ["uid", "device"], ["nick": .text, "avatar": .url])
    /// Fields of an event's audience and of a delivery's entries.
    private static let audienceFields = table(
        words: ["conn_epoch", "alert", "pushed", "pid", "ack_by_ms"],
        ids: ["uids", "exclude", "uid", "device", "devices"],
        ["tokens": .token])
    private static let mentionFields = table(words: ["all"], ids: ["uids"])
    private static let pushFields = table(
        words: [
            "enabled", "prefix", "badge", "force_detail", "profile", "sound", "category", "interruption", "silent",
            "voip", "priority", "strategy", "sms", "mutable", "send_at_ms",
        ],
        ids: ["thread_id", "collapse_id", "task_id"],
        [
            "title": .text, "content": .text, "subtitle": .text, "image": .url, "force": .part(.force),
            "payload": .free, "aps": .part(.aps),
        ])
    private static let forceFields = table(words: ["mode", "lift_mute"], ids: ["uids"], ["content": .text])
    private static let apsFields = table(
        words: ["sound", "category", "interruption-level", "content-available", "mutable-content", "badge"],
        ids: ["thread-id"])
    private static let revokeFields = table(words: ["badge"], ids: ["target_msg_id"])
    private static let activityFields = table(
        words: [
            "event", "attributes_type", "stale_ms", "dismissal_ms", "relevance", "priority", "input_push_token",
            "input_push_channel", "channel",
        ],
        ids: ["activity_id"], ["state": .free, "attributes": .free, "alert": .free])
    private static let tokenFields = table(
        words: ["env", "topic", "type", "bind_ver", "cert", "content_key", "lang", "tz", "attributes_type", "alerts"],
        ids: ["device", "activity_id"], ["token": .token])
    private static let quietFields = table(
        words: ["on", "start", "end", "tz", "level", "days"], ["windows": .part(.quiet)])
    private static let levelFields = table(words: ["p2p", "group", "ultra", "system", "custom"])
}

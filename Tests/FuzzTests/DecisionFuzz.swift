// SPDX-License-Identifier: Apache-2.0
import JSON
import Payload
import PushCore
import Worker

/// A record of hostile words for a receiver of hostile language, key and id: decided and rendered in every profile, it is
/// JSON within Apple's limit, or too large, and nothing else.
enum DecisionFuzz {
    static let zones = NoZones()

    /// UTC everywhere: what a zone's file says is not asked here.
    struct NoZones: ZoneTable {
        func offset(of zone: String, at ms: Int64) -> Int? { 0 }
    }

    private static let templates = Templates(
        languages: [
            "zh-Hans": .init(
                generic: "新消息", types: ["t": "[图片]"], contentKeys: ["k": "银行"], merged: ["other": "{count}条"]),
            "en": .init(generic: "A message", merged: ["one": "{count} message", "other": "{count} messages"]),
        ], defaultLanguage: "zh-Hans")

    /// A byte of choices; language, content key and id of the receiver, each after its length; the record.
    static func run(_ bytes: UnsafeRawBufferPointer) -> [String] {
        var script = Script(bytes)
        let modes = script.byte()
        let words = (0..<3).map { _ in String(decoding: script.take(Int(script.word() & 0xFFFFF)), as: UTF8.self) }
        let record = script.take(1 << 20)
        guard let event = try? EventReader(apps: ["im"]).read(record, of: .events) else { return [] }
        switch event.body {
        case .message(let shared): return play(shared.value, event.sentMs, modes, words)
        case .liveActivity(let activity): return play(activity, event.sentMs)
        case .userState: return ["user state among events"]
        }
    }

    private static func play(_ message: Message, _ sentMs: Int64, _ modes: UInt8, _ words: [String]) -> [String] {
        var recipient = Recipient(uid: words[2])
        recipient.settings.showDetail = modes & 1 == 0
        let token = TokenRecord(
            hex: "ab", environment: .production, topic: "t", type: message.push.voip ? .voip : .alert,
            contentKey: words[1], language: words[0], boundMs: 0)
        recipient.tokens = [BoundToken(device: "d", record: token, version: 1)]
        let policy = AppPolicy(id: "im", topic: "t")
        _ = decide(message, sentMs: sentMs, for: recipient, policy: policy, zones: zones, now: sentMs)
        var complaints = bounds(of: message)
        var variant = PayloadVariant(
            message, token: token, settings: recipient.settings, isForced: modes & 2 != 0, defaultLanguage: "en")
        variant.mergedCount = modes & 4 == 0 ? 0 : Int(modes)
        for profile in [PayloadProfile.nim, .rc, .wps, .raw] {
            var rules = PayloadRules(profile: profile)
            rules.communication = modes & 8 != 0
            rules.badge = [.server, .client, .sender, .server][Int(modes >> 5 & 3)]
            let template = PayloadTemplate(message, variant: variant, rules: rules, templates: templates)
            let badge: Int64? = modes & 16 == 0 ? nil : 7
            let pid = PushID(high: 1, low: 2)
            let payload = template?.render(badge: badge, pid: pid, receiver: words[2])
            let alone = PayloadTemplate.payload(
                message, variant: variant, rules: rules, templates: templates, badge: badge, pid: pid,
                receiver: words[2])
            if payload != alone { complaints.append("another payload for one device alone") }
            if let payload { complaints += check(payload, limit: PayloadTemplate.limit(voip: message.push.voip)) }
            let shown = ShownText(message, variant: variant, rules: rules, templates: templates)
            if shown.title?.utf8.count ?? 0 > 464 || shown.body?.utf8.count ?? 0 > 2064 {
                complaints.append("a long SMS")
            }
        }
        let headers = EventHeaders(message, profile: .nim)
        if let id = headers.collapseID, id.count > 64 || id.contains(where: { !(0x20...0x7E).contains($0) }) {
            complaints.append("a collapse id that is no header")
        }
        return complaints
    }

    private static func bounds(of message: Message) -> [String] {
        let texts: [(String?, Int)] = [
            (message.push.title, 464), (message.push.content, 2064), (message.push.force.content, 2064),
            (message.from.nick, 320), (message.conversation.name, 464), (message.from.uid, 128),
            (message.typeName, 256),
            (message.push.threadID, 256), (message.push.collapseID, 256),
        ]
        return texts.filter { $0.0?.utf8.count ?? 0 > $0.1 }.map { "a text of \($0.0?.utf8.count ?? 0) bytes" }
    }

    private static func play(_ activity: LiveActivity, _ sentMs: Int64) -> [String] {
        _ = decide(activity, sentMs: sentMs, for: Recipient(uid: "u"), state: ActivityState(), now: sentMs)
        guard let payload = ActivityPayload.encode(activity, sentMs: sentMs) else { return [] }
        return check(payload, limit: PayloadTemplate.limit(voip: false))
    }

    private static func check(_ payload: [UInt8], limit: Int) -> [String] {
        if payload.count > limit { return ["a payload of \(payload.count) bytes"] }
        guard let tree = try? JSONTree(parsing: payload, maxDepth: 64), case .object? = tree["aps"] else {
            return ["a payload that is no JSON: \(String(decoding: payload, as: UTF8.self))"]
        }
        return []
    }
}

// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import Payload
import PushCore
import Testing

/// A message from Anna to Ben, and the words of an app that knows Chinese and English.
enum PayloadWorld {
    static let pid = PushID.make(app: "im", uid: "ben", msgID: "m1", kind: "message", tokenHex: "aa")
    static let english = PayloadVariant(language: "en")

    static var templates: Templates {
        Templates(
            languages: [
                "zh-Hans": .init(
                    generic: "新消息", types: ["RC:ImgMsg": "[图片]", "RC:VcMsg": "[语音]"], contentKeys: ["bank": "银行通知"],
                    templates: [UTF8Key("order"): .init(title: "订单", content: "{name}的订单")]),
                "en": .init(
                    generic: "You have a message", types: ["RC:ImgMsg": "[Photo]"],
                    contentKeys: ["work": "Work is calling"],
                    templates: [
                        UTF8Key("order"): .init(title: "Order {no}", content: "{name}, your order {no} left {place}."),
                        UTF8Key("title"): .init(title: "Only a title"), UTF8Key("blank"): .init(content: "{none}"),
                    ]),
            ], defaultLanguage: "zh-Hans")
    }

    static func message(_ change: (inout Message) -> Void = { _ in }) -> Message {
        var message = Message(
            msgID: "m1", serverSeq: 7, expireAtMs: 1_700_086_400_000, conversation: .init(id: "anna-ben", type: .p2p),
            from: .init(uid: "anna", nick: "Anna"), to: .init(uids: ["ben"]), typeName: "RC:TxtMsg")
        message.push.content = "hello"
        change(&message)
        return message
    }

    static func template(
        _ message: Message, _ variant: PayloadVariant = english, profile: PayloadProfile = .raw
    ) -> PayloadTemplate? {
        PayloadTemplate(message, variant: variant, rules: PayloadRules(profile: profile), templates: templates)
    }

    /// The payload as text, with the pid's place shown as `PID`.
    static func text(
        _ message: Message, _ variant: PayloadVariant = english, profile: PayloadProfile = .raw, badge: Int64? = nil
    ) throws -> String {
        let bytes = try bytes(message, variant, profile: profile, badge: badge)
        let text = try #require(String(validating: bytes, as: UTF8.self))
        return text.split(separator: pid.description, omittingEmptySubsequences: false).joined(separator: "PID")
    }

    static func tree(
        _ message: Message, _ variant: PayloadVariant = english, profile: PayloadProfile = .raw, badge: Int64? = nil
    ) throws -> JSONTree {
        try JSONTree(parsing: bytes(message, variant, profile: profile, badge: badge))
    }

    /// Checked for being one valid JSON object within Apple's limit.
    static func bytes(
        _ message: Message, _ variant: PayloadVariant = english, profile: PayloadProfile = .raw, badge: Int64? = nil
    ) throws -> [UInt8] {
        let template = try #require(PayloadWorld.template(message, variant, profile: profile))
        let bytes = try #require(template.render(badge: badge, pid: pid, receiver: "ben"))
        let tree = try JSONTree(parsing: bytes)
        #expect(tree["aps"] != nil)
        #expect(bytes.count <= PayloadTemplate.limit(voip: message.push.voip))
        let alone = PayloadTemplate.payload(
            message, variant: variant, rules: PayloadRules(profile: profile), templates: templates,
            badge: badge, pid: pid, receiver: "ben")
        #expect(alone == bytes, "written for one device alone, it is the same")
        return bytes
    }

    static func body(_ message: Message, _ variant: PayloadVariant = english) throws -> String? {
        try tree(message, variant)["aps"]?["alert"]?["body"]?.string
    }

    /// `title|body` of the alert under these rules.
    static func alert(
        _ variant: PayloadVariant = english, templates: Templates = templates,
        rules change: (inout PayloadRules) -> Void = { _ in }, _ message: (inout Message) -> Void
    ) throws -> String {
        var rules = PayloadRules(profile: .raw)
        change(&rules)
        let template = PayloadTemplate(
            PayloadWorld.message(message), variant: variant, rules: rules, templates: templates)
        let bytes = try #require(template?.render(badge: nil, pid: pid, receiver: "ben"))
        let alert = try JSONTree(parsing: bytes)["aps"]?["alert"]
        return "\(alert?["title"]?.string ?? "-")|\(alert?["body"]?.string ?? "-")"
    }
}

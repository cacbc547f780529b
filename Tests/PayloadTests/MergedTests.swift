// SPDX-License-Identifier: Apache-2.0
import JSON
import Payload
import PushCore
import Testing

/// One push that tells of several messages.
@Suite struct MergedTests {
    private static func alert(
        _ message: Message, count: Int, isHidden: Bool = false, contentKey: String? = nil, language: String = "en"
    ) throws -> JSONTree {
        var variant = PayloadVariant(language: language, isHidden: isHidden, contentKey: contentKey)
        variant.mergedCount = count
        var templates = Templates(defaultLanguage: "en")
        templates.languages["en"] = .init(
            generic: "A message", contentKeys: ["work": "Work calls"],
            merged: ["one": "{count} message", "other": "{count} messages"])
        templates.languages["ru"] = .init(
            merged: ["one": "{count} сообщение", "few": "{count} сообщения", "other": "{count} сообщений"])
        var payloads = EventPayloads(message, policy: AppPolicy(id: "im", topic: "t"))
        let made = payloads.template(variant, of: message, templates: templates)
        let template = try #require(made)
        let id = PushID(high: 1, low: 2)
        let bytes = try #require(template.render(badge: 9, pid: id, receiver: "bob"))
        return try #require(try JSONTree(parsing: bytes)["aps"]?["alert"])
    }

    @Test func theNumberHasTheReceiversPluralForm() throws {
        let message = PayloadWorld.message { $0.conversation.type = .group }
        for (count, language, text) in [
            (3, "en", "3 messages"), (21, "ru", "21 сообщение"), (3, "ru", "3 сообщения"), (7, "fr", "7 messages"),
        ] {
            let alert = try Self.alert(message, count: count, language: language)
            #expect(alert["body"]?.string == text && alert["title"] == nil, "\(count) \(language)")
        }
    }

    @Test func theTitleStaysAndInP2PTheNameIsOne() throws {
        let titled = PayloadWorld.message { $0.push.title = "Team" }
        #expect(try Self.alert(titled, count: 2)["title"]?.string == "Team")
        #expect(
            try Self.alert(PayloadWorld.message { $0.conversation.type = .p2p }, count: 2)["title"]?.string == "Anna")
        let nameless = PayloadWorld.message {
            $0.conversation.type = .p2p
            $0.push.prefix = false
        }
        #expect(try Self.alert(nameless, count: 2)["title"] == nil)
    }

    @Test func theSendersAlertIsOfOneMessageAndIsLeftOut() throws {
        let message = PayloadWorld.message {
            $0.push.aps = .object([
                .init("alert", .object([.init("body", .string("one")), .init("subtitle", .string("s"))]))
            ])
        }
        let alert = try Self.alert(message, count: 2)
        #expect(alert["body"]?.string == "2 messages" && alert["subtitle"] == nil)
    }

    @Test func hiddenDetailsLeaveTheNumberOrTheContentKeysText() throws {
        let message = PayloadWorld.message { $0.push.title = "Secret" }
        #expect(try Self.alert(message, count: 2, isHidden: true)["body"]?.string == "2 messages")
        #expect(try Self.alert(message, count: 2, isHidden: true)["title"] == nil)
        #expect(try Self.alert(message, count: 2, isHidden: true, contentKey: "work")["body"]?.string == "Work calls")
        #expect(try Self.alert(message, count: 1, isHidden: true)["body"]?.string == "A message")
    }

    @Test func itsCollapseIDIsNoMessages() {
        let id = CollapseID.merged(conversation: "c", oldest: "m-1")
        let message = PayloadWorld.message { $0.msgID = "m-1" }
        #expect(id != EventHeaders(message, profile: .raw).collapseID && id.count <= 64)
        #expect(id == CollapseID.merged(conversation: "c", oldest: "m-1"))
        #expect(id != CollapseID.merged(conversation: "d", oldest: "m-1"))
    }
}

// SPDX-License-Identifier: Apache-2.0
import JSON
import Payload
import PushCore
import Testing

/// `im`, for the extension that makes a communication notification of an alert.
@Suite struct CommunicationTests {
    private static func tree(
        _ variant: PayloadVariant = PayloadWorld.english, _ change: (inout Message) -> Void = { _ in }
    ) throws -> JSONTree {
        let message = PayloadWorld.message { message in
            message.from.avatar = "https://a.example/anna.png"
            message.push.payload = .object([.init("im", .string("forged")), .init("k", .number("1"))])
            change(&message)
        }
        var policy = AppPolicy(id: "im", topic: "t")
        policy.profile = .raw
        policy.communication = true
        var payloads = EventPayloads(message, policy: policy)
        let made = payloads.template(variant, of: message, templates: PayloadWorld.templates)
        let template = try #require(made)
        return try JSONTree(parsing: try #require(template.render(badge: 1, pid: PayloadWorld.pid, receiver: "ben")))
    }

    @Test func anAlertNamesSenderAndConversation() throws {
        let tree = try Self.tree()
        let sender = tree["im"]?["sender"]
        #expect(sender?["id"]?.string == "anna" && sender?["name"]?.string == "Anna")
        #expect(sender?["avatar"]?.string == "https://a.example/anna.png")
        #expect(tree["im"]?["conv"]?["id"]?.string == "anna-ben" && tree["im"]?["conv"]?["name"] == nil)
        #expect(tree["im"]?["conv"]?["group"] == .bool(false) && tree["im"]?["msg_id"]?.string == "m1")
        #expect(tree["k"] == .number("1"))
    }

    /// Hidden details, and what shows nothing or tells of several senders; nor may the sender put one there.
    @Test func hiddenSilentAndCallPushesNameNoSender() throws {
        #expect(try Self.tree(PayloadVariant(language: "en", isHidden: true))["im"] == nil)
        #expect(try Self.tree { $0.push.silent = true }["im"] == nil)
        #expect(try Self.tree { $0.push.voip = true }["im"] == nil)
        var merged = PayloadWorld.english
        merged.mergedCount = 3
        #expect(try Self.tree(merged)["im"]?["sender"]?["id"]?.string == "anna")
        #expect(try Self.tree(merged) { $0.conversation.type = .group }["im"] == nil)
        #expect(try Self.tree { $0.from.uid = "" }["im"] == nil)
    }

    @Test func whereItIsOffTheKeyIsTheSenders() throws {
        let message = PayloadWorld.message { $0.push.payload = .object([.init("im", .string("own"))]) }
        #expect(try PayloadWorld.tree(message)["im"]?.string == "own")
    }
}

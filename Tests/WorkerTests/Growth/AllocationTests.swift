// SPDX-License-Identifier: Apache-2.0
import JSON
import Payload
import PushCore
import Support
import Testing

@testable import Redis
@testable import Worker

/// What the operations of a push ask of the allocator, one by one; a whole push is in `PushCostTests`.
@Suite(.serialized) struct AllocationTests {
    private static let text = """
        {"v":1,"kind":"message","app":"im","event_id":"e1","sent_ms":1700000000000,"msg_id":"m1","server_seq":7,\
        "conv":{"id":"p2p-a-b","type":"p2p"},"from":{"uid":"a","nick":"小明"},"to":{"uids":["b"]},\
        "type_name":"RC:TxtMsg","push":{"content":"Are we still meeting at seven?","payload":{"jump":"chat","room":17}}}
        """
    private static let nowMs: Int64 = 1_700_000_001_000
    private static let policy = AppPolicy(id: "im", topic: "com.example.im")
    private static let templates = Templates(languages: ["en": .init(generic: "You have a new message")])

    private static func message() throws -> Message {
        let event = try EventReader(apps: ["im"]).read(Array(text.utf8), of: .events)
        guard case .message(let message) = event.body else { throw SetupFault("no message") }
        return message.value
    }

    private static let recipient: Recipient = {
        var recipient = Recipient(uid: "b")
        let token = TokenRecord(
            hex: String(repeating: "ab", count: 32), environment: .production, topic: "com.example.im", type: .alert,
            language: "en", boundMs: 0)
        recipient.tokens = [BoundToken(device: "phone", record: token, version: 1)]
        return recipient
    }()

    /// What one of a hundred costs, after the first ten.
    private func expect(
        _ name: String, _ work: () throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        for _ in 0..<10 { try work() }
        let counted = try CountedWork.of { for _ in 0..<100 { try work() } }
        let each = Double(counted.allocations) / 100
        let limit = try Limits.limit("allocations: " + name)
        print("\(name): \(each) allocations")
        #expect(each <= limit, "\(name)", sourceLocation: sourceLocation)
    }

    @Test func reading() throws {
        let (reader, bytes) = (EventReader(apps: ["im"]), Array(Self.text.utf8))
        try expect("a message is read") { _ = try reader.read(bytes, of: .events) }
        let fields = [
            "la", "1 en", "ta5:phone", "1 09223372036854775815 5 \(String(repeating: "ab", count: 32)) p 1:t----",
        ]
        let reply = Array(("*4\r\n" + fields.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()).utf8)
        var replies = try ReplyReader(replyBytesMax: 1 << 20)
        try expect("a reply of Redis is read") {
            reply.withUnsafeBytes { replies.feed($0) }
            guard replies.next() == .reply else { throw SetupFault("no reply") }
            replies.release()
        }
        reply.withUnsafeBytes { replies.feed($0) }
        guard replies.next() == .reply else { throw SetupFault("no reply") }
        try expect("a user's settings and tokens") {
            var recipient = Recipient(uid: "b")
            RecipientReplies.user(RedisReply(replies.arena, 0), into: &recipient)
        }
    }

    @Test func deciding() throws {
        let (message, zones) = (try Self.message(), SystemZones())
        try expect("a decision") {
            let decision = PushCore.decide(
                message, sentMs: Self.nowMs - 1_000, for: Self.recipient, policy: Self.policy, zones: zones,
                now: Self.nowMs)
            guard decision.routes.count == 1 else { throw SetupFault("no route") }
        }
    }

    @Test func rendering() throws {
        let (message, token) = (try Self.message(), Self.recipient.tokens[0].record)
        func id() -> PushID {
            PushID.make(app: "im", uid: "b", msgID: message.msgID, kind: message.kind.rawValue, tokenHex: token.hex)
        }
        try expect("a push id") { _ = id() }
        try expect("headers are made") { _ = EventHeaders(message, profile: Self.policy.profile) }
        let made = id()
        try expect("a payload is made") {
            var payloads = EventPayloads(message, policy: Self.policy)
            let variant = PayloadVariant(
                message, token: token, settings: Self.recipient.settings, isForced: false,
                defaultLanguage: Self.policy.defaultLanguage)
            let template = payloads.template(variant, of: message, templates: Self.templates)
            let badge = BadgeRule.besideAlert(3, cap: 99)
            guard template?.render(badge: badge, pid: made, receiver: "b") != nil else {
                throw SetupFault("no payload")
            }
        }
    }

    @Test func recording() throws {
        var writer = JSONWriter(reservingCapacity: 4096)
        try expect("an outcome record") {
            writer.clear()
            OutcomeRecord.begin(in: &writer, app: "im", eventID: "e1", msgID: "m1")
            OutcomeRecord(uid: "b", device: "phone", verdict: .accepted, reason: "ok").finish(
                in: &writer, atMs: Self.nowMs)
        }
    }
}

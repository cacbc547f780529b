// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

/// Identifiers are compared in bytes of UTF-8 (contract section 0): two spellings of one accent are two users, as they are
/// two keys in Redis.
@Suite struct ByteIdentityTests {
    private static let composed = "caf\u{e9}"
    private static let decomposed = "cafe\u{301}"

    private static func message(_ change: (inout Message) -> Void = { _ in }) -> Message {
        var message = Message(
            msgID: "m", expireAtMs: .max, conversation: .init(id: "c", type: .group), from: .init(uid: composed),
            to: .init(uids: [decomposed]))
        change(&message)
        return message
    }

    @Test func anotherSpellingIsNotTheSender() {
        #expect(Self.message().isMeant(for: Self.decomposed) && !Self.message().isMeant(for: Self.composed))
    }

    @Test(arguments: [1, 40]) func anotherSpellingIsNotExcludedMentionedOrForced(count: Int) {
        let named = (1..<count).map { "u\($0)" } + [Self.composed]
        let message = Self.message {
            $0.from.uid = "a"
            $0.to.exclude = named
            $0.mention = .init(uids: named)
            $0.push.force = .init(mode: .list, uids: named)
        }
        for (uid, isNamed) in [(Self.composed, true), (Self.decomposed, false)] {
            #expect(message.to.excludes(uid) == isNamed)
            #expect(message.mention?.names(uid) == isNamed)
            #expect(message.push.force.names(uid) == isNamed)
        }
    }

    @Test func anotherSpellingIsAnotherDevice() {
        var recipient = Recipient(uid: "me")
        recipient.tokens = [Self.composed, Self.decomposed].enumerated().map { index, device in
            BoundToken(
                device: device,
                record: TokenRecord(
                    hex: "0\(index)", environment: .production, topic: "t", type: .alert, boundMs: 0),
                version: Int64(index))
        }
        recipient.presence = [
            DevicePresence(
                device: Self.decomposed, state: .foreground, platform: .ios, gateway: "g", gatewayEpoch: 1,
                connectionEpoch: 1, lastMs: 0)
        ]
        var message = Self.message { $0.from.uid = "a" }
        message.push.content = "hello"
        let decision = decide(
            message, sentMs: 0, for: recipient, policy: AppPolicy(id: "im", topic: "t"), zones: TestZones(), now: 1000)
        #expect(
            decision.routes.map { Array($0.device.utf8) } == [Self.composed, Self.decomposed].map { Array($0.utf8) })
        guard decision.routes.count == 2 else { return }
        #expect(decision.routes[0].way == .apns(token: 0, copyTo: nil))
        #expect(decision.routes[1].way == .connection(presence: 0, alert: true, ackWithinMs: 8_000))
    }

    @Test func anotherSpellingIsAnotherKey() {
        let object = JSONValue.object([.init(Self.composed, .bool(true)), .init(Self.decomposed, .bool(false))])
        #expect(object[Self.decomposed] == .bool(false))
    }
}

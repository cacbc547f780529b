// SPDX-License-Identifier: Apache-2.0
import Crypto
import Payload
import PushCore
import Testing

@Suite struct HeaderTests {
    @Test func anAlert() {
        let headers = EventHeaders(PayloadWorld.message(), profile: .raw)
        #expect(headers.pushType == .alert)
        #expect(headers.priority == 10)
        #expect(headers.expirationSeconds == 1_700_086_400)
    }

    @Test(arguments: [
        (PushOptions.Priority.high, false, UInt8(10)), (.normal, false, 5), (.low, false, 1), (.high, true, 5),
        (.normal, true, 5), (.low, true, 5),
    ])
    func aBackgroundPushHasPriorityFiveWhateverTheEventSays(
        priority: PushOptions.Priority, silent: Bool, expected: UInt8
    ) {
        let headers = EventHeaders(
            PayloadWorld.message {
                $0.push.priority = priority
                $0.push.silent = silent
            }, profile: .raw)
        #expect(headers.priority == expected)
        #expect(headers.pushType == (silent ? .background : .alert))
    }

    @Test(arguments: [PushOptions.Priority.high, .normal, .low])
    func aSilentCallHasPriorityFiveToo(priority: PushOptions.Priority) {
        let headers = EventHeaders(
            PayloadWorld.message {
                $0.push.priority = priority
                $0.push.silent = true
                $0.push.voip = true
            }, profile: .raw)
        #expect(headers.priority == 5)
        #expect(headers.pushType == .voip)
    }

    @Test func aCallIsTriedOnce() {
        let headers = EventHeaders(PayloadWorld.message { $0.push.voip = true }, profile: .raw)
        #expect(headers.pushType == .voip)
        #expect(headers.expirationSeconds == 0)
    }

    @Test(arguments: [Int64.min, -1, 0, 999])
    func noExpiryBecomesOneAttempt(expireAtMs: Int64) {
        #expect(EventHeaders(PayloadWorld.message { $0.expireAtMs = expireAtMs }, profile: .raw).expirationSeconds == 1)
    }

    @Test func aLiveActivity() {
        let activity = LiveActivity(uids: [], activityID: "a", action: .update, state: .object([]), priority: .normal)
        let headers = EventHeaders(activity, expireAtMs: 5000)
        #expect(headers.pushType == .liveactivity)
        #expect(headers.priority == 5)
        #expect(headers.expirationSeconds == 5)
        #expect(headers.collapseID == nil)
    }

    private static func chosen(_ message: Message, original: CollapseID.Original = .known(nil)) -> String {
        String(decoding: CollapseID.choose(message, profile: .raw, original: original), as: UTF8.self)
    }

    @Test func theCollapseIDsOrder() {
        func choose(_ change: (inout Message) -> Void) -> String { Self.chosen(PayloadWorld.message(change)) }
        let payload = CustomPayload.object([.init("apns-collapse-id", .string("lifted"))])
        #expect(
            choose {
                $0.push.collapseID = "own"
                $0.push.payload = payload
            } == "own")
        #expect(choose { $0.push.payload = payload } == "lifted")
        #expect(
            choose {
                $0.push.collapseID = ""
                $0.push.payload = payload
            } == "lifted")
        let hashed = choose { _ in }
        #expect(hashed.utf8.count == 32)
        #expect(hashed == choose { _ in })
        #expect(hashed != choose { $0.msgID = "m2" })
    }

    /// Only profile `nim` reads a text as the object that it spells.
    @Test(arguments: [(PayloadProfile.nim, true), (.rc, false), (.wps, false), (.raw, false)])
    func aCollapseIDWithinATextIsLiftedOnlyByNIM(profile: PayloadProfile, isLifted: Bool) {
        let message = PayloadWorld.message {
            $0.push.payload = .text(
                #"{"apns-collapse-id":"lifted"}"#, members: [.init("apns-collapse-id", .string("lifted"))])
        }
        let id = String(decoding: CollapseID.choose(message, profile: profile), as: UTF8.self)
        #expect((id == "lifted") == isLifted)
    }

    @Test func aRevokeReplacesItsOriginal() {
        let revoke = PayloadWorld.message {
            $0.kind = .revoke
            $0.msgID = "m2"
            $0.revoke = .init(targetMsgID: "m1")
        }
        #expect(Self.chosen(revoke) == Self.chosen(PayloadWorld.message()))
        #expect(Self.chosen(revoke, original: .known("known")) == "known")
        // Its original had none of its own choosing, so it was sent with the one that follows from its id.
        var own = revoke
        own.push.collapseID = "own"
        own.push.payload = .object([.init("apns-collapse-id", .string("lifted"))])
        #expect(Self.chosen(own) == Self.chosen(PayloadWorld.message()))
        #expect(Self.chosen(own, original: .known("")) == Self.chosen(PayloadWorld.message()))
        #expect(Self.chosen(own, original: .known("known")) == "known")
        // Of a message that is unknown it has its own, if it names one.
        #expect(Self.chosen(own, original: .unknown) == "own")
        #expect(Self.chosen(revoke, original: .unknown) == Self.chosen(PayloadWorld.message()))
        #expect(Self.chosen(PayloadWorld.message(), original: .known("known")) != "known")
    }

    @Test(arguments: [
        String(repeating: "x", count: 65), "a\r\nb: c", "a\u{0}b", " a", "a ", "ü", "\u{7f}",
        String(repeating: "汉", count: 22),
    ])
    func aValueUnfitForAHeaderIsHashed(text: String) {
        let id = Self.chosen(PayloadWorld.message { $0.push.collapseID = text })
        #expect(id == SHA256.hex(Array(text.utf8)))
    }

    @Test(arguments: ["a", "a b", String(repeating: "x", count: 64), "~!@"])
    func aFittingTextIsUnchanged(text: String) {
        #expect(Self.chosen(PayloadWorld.message { $0.push.collapseID = text }) == text)
    }
}

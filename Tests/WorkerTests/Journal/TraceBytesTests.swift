// SPDX-License-Identifier: Apache-2.0
import PushCore
import Support
import Testing

@testable import Worker

struct TraceBytesTests {
    private static let entries: [Journal.Entry] = [
        Journal.Entry(
            verdict: .suppressed, reason: "conv_muted", atMs: 1_763_600_000_123, traits: [.isTraced, .isResumed]),
        Journal.Entry(unrecorded: "bob-watch", .online, atMs: 1_763_600_000_124),
        Journal.Entry(
            device: "bob-iphone", verdict: .accepted, reason: "ok", atMs: 1_763_600_000_160,
            pushID: PushID(high: 0x0123_4567_89ab_cdef, low: 0x8000_0000_0000_0001), badge: 7, status: 200,
            attempts: 2, latencyMs: 31, traits: [.isTraced, .counts]),
        Journal.Entry(
            device: "bob-ipad", verdict: .rejected, reason: "Unregistered", atMs: 1_763_600_000_161, status: 410,
            traits: .isTraced),
    ]

    private static func write(
        _ entries: [Journal.Entry] = entries, sentMs: Int64 = 1_763_600_000_100, id: String = "m-1",
        msgID: String = "m-1",
        eventID: String = "消息", facts: DecisionFacts = [.decided, .counted, .mentionsMe]
    ) -> [UInt8] {
        var journal = Journal()
        for entry in entries { journal.append(entry) }
        var bytes: [UInt8] = []
        TraceBytes.write(journal, from: 0, sentMs: sentMs, id: id, msgID: msgID, eventID: eventID, facts: facts) {
            bytes += $0
        }
        return bytes
    }

    private static func wait(atMs: Int64, isResumed: Bool = false) -> Journal.Entry {
        Journal.Entry(
            verdict: .parked, reason: "rate", atMs: atMs, traits: isResumed ? [.isTraced, .isResumed] : .isTraced)
    }

    @Test func writtenRecordsAreRead() throws {
        let record = try #require(
            Self.write().withUnsafeBytes { TraceRecord($0, kind: .revoke, id: "m-1") })
        #expect(record.atMs == 1_763_600_000_123 && record.sentMs == 1_763_600_000_100)
        #expect(record.kind == .revoke && record.msgID == "m-1" && record.eventID == "消息" && record.isResumed)
        #expect(record.facts == [.decided, .counted, .mentionsMe])
        #expect(
            record.devices == [
                .init(verdict: .suppressed, reason: "conv_muted", atMs: 1_763_600_000_123),
                .init(
                    device: "bob-iphone", verdict: .accepted, reason: "ok",
                    pushID: PushID(high: 0x0123_4567_89ab_cdef, low: 0x8000_0000_0000_0001), status: 200,
                    badge: 7,
                    attempts: 2, latencyMs: 31, atMs: 1_763_600_000_160),
                .init(
                    device: "bob-ipad", verdict: .rejected, reason: "Unregistered", status: 410,
                    atMs: 1_763_600_000_161),
            ])
    }

    @Test func everyBitOfTheFactsIsKept() throws {
        let facts = DecisionFacts(rawValue: .max)
        let bytes = Self.write([Self.wait(atMs: 1)], sentMs: 1, id: "m", msgID: "m", eventID: "m", facts: facts)
        let record = try #require(bytes.withUnsafeBytes { TraceRecord($0, kind: .message, id: "m") })
        #expect(record.facts == facts && facts.deniedUntilMs == 4_294_967_295_000)
    }

    @Test func anOrdinaryPushTakesAboutAHundredBytes() {
        let bytes = Self.write([Self.entries[2]])
        #expect(bytes.count < 80)
    }

    @Test(arguments: [Int64.min, -1, 0, 63, 64, 1 << 40, .max]) func anyTimeSurvives(_ ms: Int64) throws {
        let bytes = Self.write([Self.wait(atMs: ms)], sentMs: 5, msgID: "", eventID: "", facts: [])
        let record = try #require(bytes.withUnsafeBytes { TraceRecord($0, kind: .revoke, id: "m-1") })
        #expect(record.atMs == ms && record.sentMs == 5 && !record.isResumed)
    }

    @Test func idsThatTheKeyHasAreLeftOut() throws {
        let bytes = Self.write(
            [Self.wait(atMs: 9, isResumed: true)], sentMs: 5, id: "e-1", msgID: "", eventID: "e-1", facts: [])
        let activity = try #require(bytes.withUnsafeBytes { TraceRecord($0, kind: .liveActivity, id: "e-1") })
        #expect(activity.msgID.isEmpty && activity.eventID == "e-1" && activity.isResumed)
    }

    @Test func noCutAndNoWrongByteTraps() {
        let whole = Self.write()
        for count in 0..<whole.count {
            let record = whole[..<count].withUnsafeBytes { TraceRecord($0, kind: .revoke, id: "m-1") }
            if let record { #expect(record.devices.count < 3, "\(count)") }
        }
        for seed in UInt64(1)...200 {
            var random = SeededGenerator(seed: seed)
            var broken = whole
            for _ in 0..<3 {
                broken[Int.random(in: 0..<broken.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            _ = broken.withUnsafeBytes { TraceRecord($0, kind: .revoke, id: "m-1") }
        }
    }

    @Test func anotherVersionIsNotRead() {
        var bytes = Self.write()
        bytes[0] = 2
        #expect(bytes.withUnsafeBytes { TraceRecord($0, kind: .revoke, id: "m-1") } == nil)
    }
}

struct TracePlanTests {
    private static func plan(_ sample: Double) -> TracePlan {
        var settings = Configuration.Trace()
        settings.sample = sample
        return TracePlan(settings)
    }

    @Test func aSampleIsThatShareOfUsersAndAlwaysTheSameOnes() {
        let plan = Self.plan(0.1)
        let covered = (0..<10_000).filter { plan.covers(app: "im", uid: "u\($0)") }
        #expect((850...1150).contains(covered.count), "\(covered.count) of 10000")
        #expect(covered.allSatisfy { Self.plan(0.2).covers(app: "im", uid: "u\($0)") }, "more share, the same users")
        #expect(!plan.isOff && Self.plan(0).isOff && !Self.plan(1).isOff)
        #expect(!Self.plan(0).covers(app: "im", uid: "u") && Self.plan(1).covers(app: "im", uid: "u"))
    }
}

struct DecisionFactsTests {
    @Test func levelsAndLinksAreKept() {
        for level in MuteLevel.allCases {
            var recipient = Recipient(uid: "bob")
            recipient.mute = .init(level: level, untilMs: nil)
            let facts = Self.facts(recipient)
            #expect(facts.level == (level == .unset ? .all : level))
            #expect(facts.link == (level == .unset ? .none : .user))
        }
    }

    @Test func aMutedMessagesStepsSayWhy() {
        var recipient = Recipient(uid: "bob")
        recipient.mute = .init(level: .blocked, untilMs: nil)
        let steps = Self.facts(recipient).steps
        #expect(steps.map(\.step) == [.expiry, .read, .veto, .mute, .dnd, .badge])
        #expect(steps.first { !$0.passes }?.outcome == "conv_muted")
        #expect(steps.first { !$0.passes }?.input == "level 5 of the user, no mention")
        #expect(steps.last?.outcome == "not counted")
    }

    @Test func anExpiredOnesEndWithTheFirst() {
        let facts = Self.facts(Recipient(uid: "bob"), now: 10_000)
        #expect(facts.steps.map(\.outcome) == ["expired"])
    }

    private static func facts(_ recipient: Recipient, now: Int64 = 1_000) -> DecisionFacts {
        let message = Message(
            msgID: "m", expireAtMs: 9_000, conversation: Conversation(id: "c", type: .group),
            from: .init(uid: "al"), to: .init(uids: ["bob"]))
        var facts: DecisionFacts = []
        let told = decide(
            message, sentMs: 500, for: recipient, policy: AppPolicy(id: "im", topic: "t"), zones: SystemZones(),
            now: now, facts: &facts)
        let untold = decide(
            message, sentMs: 500, for: recipient, policy: AppPolicy(id: "im", topic: "t"), zones: SystemZones(),
            now: now)
        #expect(told == untold)
        return facts
    }
}

// SPDX-License-Identifier: Apache-2.0
import PushCore
import Support
import Testing

@testable import Worker

struct TraceBytesTests {
    private static func outcome(
        _ device: String?, _ verdict: Verdict, _ reason: String, _ fill: (inout OutcomeRecord) -> Void = { _ in }
    ) -> OutcomeRecord {
        var record = OutcomeRecord(uid: "bob", device: device, verdict: verdict, reason: reason)
        fill(&record)
        return record
    }

    private static func write(_ outcomes: [(OutcomeRecord, Int64)]) -> [UInt8] {
        var bytes = TraceBytes(
            atMs: 1_763_600_000_123, sentMs: 1_763_600_000_100, id: "m-1", msgID: "m-1", eventID: "消息",
            facts: [.decided, .counted, .mentionsMe], isResumed: true)
        for (outcome, atMs) in outcomes { bytes.append(outcome, nowMs: atMs) }
        return bytes.bytes
    }

    private static let outcomes: [(OutcomeRecord, Int64)] = [
        (outcome(nil, .suppressed, "conv_muted"), 1_763_600_000_123),
        (
            outcome("bob-iphone", .accepted, "ok") {
                $0.pushID = PushID(high: 0x0123_4567_89ab_cdef, low: 0x8000_0000_0000_0001)
                $0.status = 200
                $0.badge = 7
                $0.attempts = 2
                $0.latencyMs = 31
            }, 1_763_600_000_160
        ),
        (outcome("bob-ipad", .rejected, "Unregistered") { $0.status = 410 }, 1_763_600_000_161),
    ]

    @Test func writtenRecordsAreRead() throws {
        let record = try #require(
            Self.write(Self.outcomes).withUnsafeBytes { TraceRecord($0, kind: .revoke, id: "m-1") })
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
        let bytes = TraceBytes(
            atMs: 1, sentMs: 1, id: "m", msgID: "m", eventID: "m", facts: facts, isResumed: false
        ).bytes
        let record = try #require(bytes.withUnsafeBytes { TraceRecord($0, kind: .message, id: "m") })
        #expect(record.facts == facts && facts.deniedUntilMs == 4_294_967_295_000)
    }

    @Test func anOrdinaryPushTakesAboutAHundredBytes() {
        let bytes = Self.write([Self.outcomes[1]])
        #expect(bytes.count < 80)
    }

    @Test(arguments: [Int64.min, -1, 0, 63, 64, 1 << 40, .max]) func anyTimeSurvives(_ ms: Int64) throws {
        let bytes = TraceBytes(
            atMs: ms, sentMs: 5, id: "m-1", msgID: "", eventID: "", facts: [], isResumed: false
        ).bytes
        let record = try #require(bytes.withUnsafeBytes { TraceRecord($0, kind: .revoke, id: "m-1") })
        #expect(record.atMs == ms && record.sentMs == 5 && record.devices.isEmpty && !record.isResumed)
    }

    @Test func idsThatTheKeyHasAreLeftOut() throws {
        let bytes = TraceBytes(
            atMs: 9, sentMs: 5, id: "e-1", msgID: "", eventID: "e-1", facts: [], isResumed: true
        ).bytes
        let activity = try #require(bytes.withUnsafeBytes { TraceRecord($0, kind: .liveActivity, id: "e-1") })
        #expect(activity.msgID.isEmpty && activity.eventID == "e-1" && activity.isResumed)
    }

    @Test func noCutAndNoWrongByteTraps() {
        let whole = Self.write(Self.outcomes)
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
        var bytes = Self.write(Self.outcomes)
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

// SPDX-License-Identifier: Apache-2.0
import Kafka
import PushCore
import Telemetry
import Testing

@testable import Worker

@Suite struct ClockTests {
    private static let second: UInt64 = 1_000_000_000
    private static let day: Int64 = 86_400_000

    private static func watch(redisMs: Int64, atNanos nanos: UInt64 = second) -> ClockWatch {
        var watch = ClockWatch()
        watch.answered(ms: redisMs, askedNanos: nanos, nowNanos: nanos)
        return watch
    }

    @Test func aMinuteIsOffAndFiveMinutesAreWrong() {
        let watch = Self.watch(redisMs: Self.day)
        let verdicts: [(skewMs: Int64, verdict: ClockWatch.Verdict)] = [
            (0, .right), (60_000, .right), (-60_000, .right), (60_001, .off), (-60_001, .off), (300_000, .off),
            (300_001, .wrong), (-300_001, .wrong), (Self.day, .wrong), (.max - Self.day, .wrong),
        ]
        for one in verdicts {
            #expect(
                watch.verdict(wallMs: Self.day &+ one.skewMs, nowNanos: Self.second) == one.verdict, "\(one.skewMs)")
        }
    }

    @Test func aJumpIsSeenWithoutAnotherAnswer() {
        let watch = Self.watch(redisMs: 5_000)
        #expect(watch.verdict(wallMs: 65_000, nowNanos: 61 * Self.second) == .right, "a minute later")
        #expect(watch.verdict(wallMs: 65_000 + Self.day, nowNanos: 61 * Self.second) == .wrong)
    }

    @Test func theTimeIsUnknownUntilRedisSaysItOrRefusesTo() {
        var watch = ClockWatch()
        #expect(watch.verdict(wallMs: 0, nowNanos: 0) == .unknown)
        watch.refused()
        #expect(watch.verdict(wallMs: 0, nowNanos: 0) == .right)
    }

    @Test func aSlowAnswerIsNoSkew() {
        var watch = ClockWatch()
        watch.answered(ms: 200_000, askedNanos: 0, nowNanos: 200 * Self.second)
        #expect(watch.verdict(wallMs: 200_000, nowNanos: 200 * Self.second) == .right)
    }

    @Test func appendTimesShowAClockThatIsBehindAndNeverOneThatIsAhead() {
        var watch = Self.watch(redisMs: 0, atNanos: 0)
        watch.appended(ms: -Self.day, nowNanos: 0)
        #expect(watch.verdict(wallMs: 0, nowNanos: 0) == .right, "an old record is lag")
        watch.appended(ms: 400_000, nowNanos: 0)
        watch.appended(ms: 1, nowNanos: 0)
        #expect(watch.verdict(wallMs: 0, nowNanos: 0) == .off, "Redis agrees with the worker")
        #expect(watch.worst(wallMs: 0, nowNanos: 0)?.reference == .kafka)
        #expect(watch.skewMs(.kafka, wallMs: 0, nowNanos: 299 * Self.second) == -699_000)
        #expect(watch.skewMs(.kafka, wallMs: 0, nowNanos: 300 * Self.second) == nil, "no later one confirms it")
    }

    @Test func aBrokersClockStopsReadingWhereRedisDoesNotAgreeWithTheWorkers() {
        var watch = Self.watch(redisMs: 61_000, atNanos: 0)
        watch.appended(ms: 400_000, nowNanos: 0)
        #expect(watch.verdict(wallMs: 0, nowNanos: 0) == .wrong)
        watch.refused()
        #expect(watch.verdict(wallMs: 0, nowNanos: 0) == .wrong, "Redis does not say the time")
        watch.answered(ms: 60_000, askedNanos: 0, nowNanos: 0)
        #expect(watch.verdict(wallMs: 0, nowNanos: 0) == .off)
    }

    @Test func theShardsTimeFollowsTheMonotonicClockUntilTheWallClockIsTaken() {
        var clock = ShardClock(wallMs: 1_000, nowNanos: Self.second)
        #expect(clock.ms(nowNanos: 3 * Self.second) == 3_000)
        clock.take(wallMs: 9_000, nowNanos: 3 * Self.second)
        #expect(clock.ms(nowNanos: 4 * Self.second) == 10_000)
    }

    // MARK: Delays of parked work

    private static func record(dueMs: Int64, writtenMs: Int64, holdUntilMs: Int64? = nil) -> ParkedRecord {
        var record = ParkedRecord(
            app: "im", uid: "u", raw: [], cause: .retryAfter, dueMs: dueMs, writtenMs: writtenMs, id: "m1")
        record.holdUntilMs = holdUntilMs
        return record
    }

    @Test func aDelayIsAtMostTheDelayAtTheTimeOfWriting() {
        let hour: Int64 = 3_600_000
        let cases: [(due: Int64, written: Int64, now: Int64, left: Int64)] = [
            (15_000, 10_000, 10_000, 5_000), (15_000, 10_000, 12_000, 3_000), (15_000, 10_000, 99_000, 0),
            // The writer's clock was an hour ahead; the reader's is an hour behind.
            (hour + 15_000, hour + 10_000, 10_000, 5_000), (15_000, 10_000, 10_000 - hour, 5_000),
            (.max, .min, 0, 0), (0, 10_000, 5_000, 0),
        ]
        for one in cases {
            let read = Self.record(dueMs: one.due, writtenMs: one.written, holdUntilMs: one.due)
                .taken(nowMs: one.now, steadyMs: 700)
            #expect(read.dueMs == 700 + one.left && read.holdUntilMs == 700 + one.left, "\(one)")
            let note = ParkedNote(dueMs: one.due, writtenMs: one.written, untilMs: .max)
            #expect(note.leftMs(nowMs: one.now) == one.left, "\(one)")
        }
    }

    @Test func writtenTimesAreOnTheWallClock() {
        let record = Self.record(dueMs: 5_700, writtenMs: 700, holdUntilMs: 6_700).leaving(nowMs: 90_000, steadyMs: 700)
        #expect(record.dueMs == 95_000 && record.writtenMs == 90_000 && record.holdUntilMs == 96_000)
    }

    @Test func aNoteExpiresWithItsEvent() {
        let note = ParkedNote(dueMs: 5_000, writtenMs: 0, untilMs: 10_000)
        #expect(note.leftMs(nowMs: 9_999) == 0 && note.leftMs(nowMs: 10_000) == nil)
    }

    @Test func notesOfEarlierVersionsAreLookedAtNow() {
        func note(_ text: String) -> ParkedNote? { Array(text.utf8).withUnsafeBytes { ParkedNote($0) } }
        #expect(note("2 15 10 99 mabc") == ParkedNote(dueMs: 15, writtenMs: 10, untilMs: 99))
        #expect(note("1790000000000 mabc")?.leftMs(nowMs: 5) == 0)
        #expect(note("2 15 10") == nil && note("") == nil && note("x") == nil)
    }

    // MARK: /readyz

    @Test func aClockThatIsOffIsDegradedAndAWrongOneIsDown() {
        func line(_ skewMs: Int64, isStopped: Bool) -> String? {
            let shard = ReadinessTests.shard([ReadinessTests.client("im")]) {
                $0.clock = ShardStatus.ClockNote(reference: "Redis", skewMs: skewMs, isStopped: isStopped)
            }
            return ProcessSnapshot(shards: [shard]).lines.first
        }
        #expect(line(-90_000, isStopped: false) == "clock: degraded: this machine's clock is 90 s behind Redis")
        #expect(
            line(86_400_000, isStopped: true)
                == "clock: down: this machine's clock is 86400 s ahead of Redis: reading has stopped, and nothing expires"
        )
    }
}

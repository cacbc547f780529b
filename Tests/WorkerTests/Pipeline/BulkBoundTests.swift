// SPDX-License-Identifier: Apache-2.0
import APNs
import Testing

@testable import Worker

/// How much large groups may have of Redis, beside others and alone.
@Suite struct BulkBoundTests {
    private static let second: UInt64 = 1_000_000_000

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var lane: PushLane?
        var ageNanos: UInt64 = 0
        var undecided = 0
        var started = 0
        var bulk = 15
        let room: Int

        init(
            _ name: String, _ lane: PushLane?, ageNanos: UInt64 = 0, undecided: Int = 0, started: Int = 0,
            bulk: Int = 15,
            room: Int
        ) {
            (testDescription, self.lane, self.ageNanos, self.bulk) = (name, lane, ageNanos, bulk)
            (self.undecided, self.started, self.room) = (undecided, started, room)
        }
    }

    // Of 512 commands, three for each member.
    @Test(arguments: [
        Row("nobody else, ever", nil, undecided: 500, started: 500, room: .max),
        Row("a 1:1 message in this turn", .direct, room: 25),
        Row("a call in this turn", .urgent, room: 25),
        Row("almost five seconds ago", .direct, ageNanos: 5 * second - 1, room: 25),
        Row("five seconds ago", .direct, ageNanos: 5 * second, room: .max),
        Row("an ordinary group holds nobody back", .group, room: .max),
        Row("another large one", .bulk, room: .max),
        Row("background pushes", .silent, room: .max),
        Row("some of this turn have started", .direct, started: 20, room: 5),
        Row("all of this turn have", .direct, started: 25, room: 0),
        Row("more than that had, before the message came", .direct, started: 128, room: 0),
        Row("others wait for their claims", .direct, undecided: 60, room: 15),
        Row("three turns' worth do", .direct, undecided: 75, room: 0),
        Row("more do, since before the message", .direct, undecided: 300, room: 0),
        Row("a larger share", .direct, bulk: 100, room: 92),
        Row("the smallest share", .direct, bulk: 1, room: 8),
    ])
    func membersThatMayStart(row: Row) {
        var limits = PipelineLimits()
        limits.lanes.bulk = row.bulk
        var bound = BulkBound()
        let began = 5 * Self.second
        if let lane = row.lane { bound.note(lane, nowNanos: began) }
        bound.start(row.started, nowNanos: began + row.ageNanos)
        #expect(bound.room(undecided: row.undecided, limits, nowNanos: began + row.ageNanos) == row.room)
    }

    @Test func eachTurnHasItsOwn() {
        var bound = BulkBound()
        let limits = PipelineLimits()
        bound.note(.direct, nowNanos: 1)
        for turn in 1...3 as ClosedRange<UInt64> {
            // It is asked several times in a turn.
            for started in [10, 15, 0] {
                #expect(bound.room(undecided: 0, limits, nowNanos: turn) == [10: 25, 15: 15, 0: 0][started])
                bound.start(started, nowNanos: turn)
            }
        }
    }

    @Test func aFrequentSampleKeepsTheBound() {
        var bound = BulkBound()
        let limits = PipelineLimits()
        for step in 1...20 as ClosedRange<UInt64> {
            let now = step * 4 * Self.second
            bound.note(.direct, nowNanos: now)
            bound.note(.group, nowNanos: now + 1)
            #expect(bound.room(undecided: 0, limits, nowNanos: now + 4 * Self.second) == 25)
        }
    }
}

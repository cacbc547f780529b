// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore
import Redis
import Support
import Testing

@testable import Worker

/// What is counted, in memory and in marks.
struct CountTableTests {
    private let subject = CountedSubject(app: "im", name: "RC:TxtMsg", task: "t")

    private func outcome(_ hour: Int64 = 500_000, reason: UInt8 = 0) -> CountedOutcome {
        CountedOutcome(hour: hour, .accepted, .alert, .direct, reason: reason, credential: 3, isSent: true)
    }

    @Test func anOutcomeKeepsItsParts() {
        for kind in CountedOutcome.Kind.allCases {
            for push in CountedOutcome.PushKind.allCases {
                for lane in PushLane.allCases {
                    let outcome = CountedOutcome(
                        hour: 500_123, kind, push, lane, reason: 52, credential: 255, isSent: true)
                    #expect(outcome.kind == kind && outcome.push == push && outcome.lane == lane)
                    #expect(outcome.reason == 52 && outcome.credential == 255 && outcome.isSent)
                    #expect(outcome.reported(.opened).kind == .opened && outcome.reported(.opened).push == push)
                    #expect(outcome.with(credential: 1).credential == 1 && outcome.with(credential: 1).lane == lane)
                }
            }
        }
    }

    @Test func itsHourIsTheNearestOneOfThreeWeeks() {
        for now in [Int64(500_000), 500_223, 500_736] {
            for hour in (now - 900)...(now + 20) { #expect(outcome(hour).hour(now: now) == hour) }
        }
    }

    @Test func equalOutcomesOfAPartitionShareARow() {
        var table = CountTable()
        let place = CountedPlace(.events, 7)
        for _ in 0..<3 { table.add(2, outcome(), subject, place) }
        table.add(1, outcome(reason: 1), subject, place)
        table.add(1, outcome(), subject, CountedPlace(.chunks, 7))
        #expect(table.rows.map(\.count) == [6, 1, 1])
        #expect(table.places == [place, CountedPlace(.chunks, 7)])
        table.drop(place)
        #expect(table.rows.map(\.place) == [CountedPlace(.chunks, 7)])
        table.removeAll()
        #expect(table.isEmpty && table.places.isEmpty)
        table.add(5, outcome(), subject, place)
        #expect(table.rows.map(\.count) == [5])
    }

    @Test func itGrowsAndLosesNothing() {
        var table = CountTable()
        for round in 0..<3 {
            for partition in 0..<20_000 {
                table.add(1, outcome(), subject, CountedPlace(.events, Int32(partition)))
            }
            #expect(table.rows.count == 20_000 && table.rows.allSatisfy { $0.count == UInt64(round + 1) })
        }
    }

    @Test func aTallyAddsUpItsKinds() {
        var tally = OutcomeTally()
        #expect(tally.isEmpty)
        for reason in [UInt8(0), 1, 0, 2, 1, 0] { tally.add(outcome(reason: reason)) }
        var sum = OutcomeTally()
        sum.add(tally)
        sum.add(tally)
        var counts: [UInt8: UInt32] = [:]
        sum.forEach { counts[$0.reason] = $1 }
        #expect(counts == [0: 6, 1: 4, 2: 2])
    }

    @Test func oneSubjectServesAllEventsOfItsKind() {
        #expect(CountedSubject.hash("") == 0 && CountedSubject.hash("a") != CountedSubject.hash("b"))
        #expect(subject.name != 0 && subject.task != 0)
    }

    @Test func everyReasonHasANumberOfItsOwn() {
        let labels = Reason.allCases.map(\.rawValue) + NoAnswer.allCases.map(\.rawValue)
        for label in labels {
            #expect(CountedReason.label(CountedReason.code(label)) == label)
        }
        #expect(Set(CountedReason.labels).count == CountedReason.labels.count)
        #expect(CountedReason.label(CountedReason.code("Unheard")) == "other")
    }

    @Test func aTallyKeepsTheKindsApartAndTheirNumbers() {
        var tally = OutcomeTally()
        #expect(tally.isEmpty)
        for (reason, count) in [(1, 1), (0, 500_000), (1, 2_000_000), (255, 1)] as [(UInt8, UInt32)] {
            tally.add(outcome(reason: reason), count)
        }
        var counts: [CountedOutcome: UInt32] = [:]
        tally.forEach { counts[$0, default: 0] += $1 }
        #expect(
            counts == [outcome(reason: 1): 2_000_001, outcome(reason: 0): 500_000, outcome(reason: 255): 1])
    }
}

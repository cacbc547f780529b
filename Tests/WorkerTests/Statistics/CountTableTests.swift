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

    @Test func aTallyGivesAnOutcomeBackOfWhicheverCredential() {
        var tally = OutcomeTally()
        for reason in [UInt8(0), 1, 0, 1] { tally.add(outcome(reason: reason)) }
        for reason in [UInt8(0), 7, 0, 1] { tally.remove(outcome(reason: reason).with(credential: 9)) }
        var counts: [UInt8: UInt32] = [:]
        tally.forEach { counts[$0.reason] = $1 }
        #expect(counts == [1: 1])
        tally.remove(outcome(reason: 1))
        #expect(tally.isEmpty)
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

    @Test func aMarkKeepsWhatItsOutcomesCountAs() throws {
        for (name, task) in [("", ""), ("RC:TxtMsg", ""), ("", "t"), ("order", "spring")] {
            for count in 1...20 {
                var counts = RecipientCounts()
                for number in 0..<count {
                    counts.add(
                        outcome(reason: UInt8(number)), credential: 9,
                        device: number == 0 ? 0 : MarkCounts.short("d\(number)"))
                }
                let subject = CountedSubject(app: "im", name: name, task: task)
                let read = try #require(Self.read(counts, subject, record: 0xABCD, rest: [1, 2]))
                #expect(read.counts.record == 0xABCD && read.rest == [1, 2])
                #expect(read.counts.name == subject.name && read.counts.task == subject.task)
                #expect(read.counts.outcomes.count == min(count, MarkCounts.outcomesMax))
                for (number, one) in read.counts.outcomes.enumerated() {
                    #expect(one.reason == number && one.credential == 9 && one.isSent)
                    #expect(one.device == (number == 0 ? 0 : MarkCounts.short("d\(number)")))
                    #expect(read.counts.counted(one).hour(now: 500_010) == 500_000)
                }
            }
        }
    }

    @Test func theOutcomesOfAMarkAreThoseThatItsTryCounted() throws {
        for count in 1...MarkCounts.outcomesMax {
            var counts = RecipientCounts()
            for number in 0..<count { counts.add(outcome(reason: UInt8(number)), credential: 9, device: UInt8(number)) }
            let read = try #require(Self.read(counts, subject, record: 7, rest: []))
            var tallies = (OutcomeTally(), OutcomeTally())
            counts.forEach { tallies.0.add($0) }
            RecipientCounts(read.counts).forEach { tallies.1.add($0) }
            var kinds: ([UInt64: UInt32], [UInt64: UInt32]) = ([:], [:])
            tallies.0.forEach { kinds.0[$0.bits] = $1 }
            tallies.1.forEach { kinds.1[$0.bits] = $1 }
            #expect(kinds.0 == kinds.1 && kinds.0.count == count)
        }
    }

    /// A device here stands for one outcome of the same device in the mark. The short names of devices are not unique.
    @Test(
        arguments: [
            ([], [], [1, 2]), ([1], [], [2]), ([], [2], [1]), ([1], [2], []), ([3], [4], [1, 2]), ([0], [], [1, 2]),
        ] as [([UInt8], [UInt8], [UInt8])])
    func theOutcomesOfAnotherTrysMarkCountForTheDevicesThatDidNotEndHere(
        ended: [UInt8], open: [UInt8], counted: [UInt8]
    ) throws {
        let mark = try self.mark(devices: [1, 2])
        var counts = RecipientCounts()
        for device in ended { counts.add(outcome(reason: 9), credential: 9, device: device) }
        // The mark is read in each round.
        for _ in 0..<2 { counts.takeEarlier(mark) }
        var reasons: [UInt8] = []
        counts.forEachEarlier(besides: open) { reasons.append($0.reason) }
        #expect(reasons == counted)
        counts.takeEarlier(nil)
        counts.forEachEarlier(besides: open) { _ in Issue.record("there is no mark any more") }
    }

    @Test func ofTwoDevicesWithOneShortNameEachCountsOnce() throws {
        let mark = try self.mark(devices: [1, 1])
        var counts = RecipientCounts()
        counts.add(outcome(reason: 1), credential: 9, device: 1)
        counts.takeEarlier(mark)
        var number = 0
        counts.forEachEarlier(besides: []) { _ in number += 1 }
        #expect(number == 1)
    }

    /// Each device's outcome has its number as the reason.
    private func mark(devices: [UInt8]) throws -> MarkCounts {
        var counts = RecipientCounts()
        for device in devices { counts.add(outcome(reason: device), credential: 9, device: device) }
        return try #require(Self.read(counts, subject, record: 7, rest: [])).counts
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

    @Test func bytesOfAnotherVersionAreNoCounts() {
        for bytes: [UInt8] in [
            [], [1, 2, 3], [0x80], [0x81, 0, 0, 0], [0x81, 0, 0, 0, 0, 7, 0, 0, 0], Array("d1:x".utf8),
        ] {
            let read = bytes.withUnsafeBytes { raw -> (MarkCounts?, [UInt8]) in
                var rest = raw[...]
                let counts = MarkCounts.take(&rest)
                return (counts, Array(rest))
            }
            if read.0 == nil { #expect(read.1 == bytes) } else { #expect(read.0?.outcomes.isEmpty ?? false) }
        }
    }

    private static func read(
        _ counts: RecipientCounts, _ subject: CountedSubject, record: UInt16, rest: [UInt8]
    ) -> (counts: MarkCounts, rest: [UInt8])? {
        var bytes: [UInt8] = []
        counts.withBytes(record: record, subject) { bytes.append(contentsOf: $0) }
        bytes += rest
        return bytes.withUnsafeBytes { raw in
            var slice = raw[...]
            guard let found = MarkCounts.take(&slice) else { return nil }
            return (found, Array(slice))
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import Kafka

@Suite("Offset ledger")
struct OffsetLedgerTests {
    let one = TopicPartition(topic: 0, partition: 0)
    let two = TopicPartition(topic: 1, partition: 7)

    private func slot(_ receipt: OffsetLedger.Receipt) throws -> OffsetLedger.Slot {
        guard case .tracked(let slot) = receipt else { throw Broken("\(receipt)") }
        return slot
    }

    @Test func anOldRecordHoldsTheWatermarkUntilItSettles() throws {
        let ledger = Ledger()
        ledger.assign(one)
        let a = try slot(ledger.receive(one, offset: 10, bytes: 1, nowNanos: 0))
        let b = try slot(ledger.receive(one, offset: 11, bytes: 2, nowNanos: 1))
        let c = try slot(ledger.receive(one, offset: 12, bytes: 3, nowNanos: 2))
        #expect(ledger.unsettledCount == 3)
        #expect(ledger.unsettledBytes == 6)
        #expect(ledger.settle(c) == .waiting)
        #expect(ledger.settle(b) == .waiting)
        #expect(ledger.next(one) == nil)
        #expect(ledger.oldestUnsettledAgeNanos(nowNanos: 5) == 5)
        #expect(ledger.settle(a) == .advanced(one, next: 13))
        #expect(ledger.unsettledCount == 0)
        #expect(ledger.unsettledBytes == 0)
        #expect(ledger.oldestUnsettledAgeNanos(nowNanos: 5) == nil)
    }

    @Test func gapsInOffsetsDoNotHoldTheWatermark() throws {
        let ledger = Ledger()
        ledger.assign(one)
        let a = try slot(ledger.receive(one, offset: 3, bytes: 1, nowNanos: 0))
        let b = try slot(ledger.receive(one, offset: 90, bytes: 1, nowNanos: 0))
        #expect(ledger.settle(a) == .advanced(one, next: 4))
        #expect(ledger.settle(b) == .advanced(one, next: 91))
    }

    @Test func aLateSettleAfterRevocationCountsForNothing() throws {
        let ledger = Ledger()
        ledger.assign(one)
        let old = try slot(ledger.receive(one, offset: 5, bytes: 4, nowNanos: 0))
        #expect(ledger.revoke(one) == nil)
        #expect(ledger.unsettledCount == 0)
        #expect(ledger.unsettledBytes == 0)
        #expect(ledger.settle(old) == .stale)
        #expect(ledger.receive(one, offset: 6, bytes: 1, nowNanos: 0) == .unassigned)
        // Back again at once: the same offset is a new record, the old handle must not settle it.
        ledger.assign(one)
        let new = try slot(ledger.receive(one, offset: 5, bytes: 4, nowNanos: 0))
        #expect(ledger.settle(old) == .stale)
        #expect(ledger.settle(new) == .advanced(one, next: 6))
        #expect(ledger.settle(new) == .stale)
        #expect(ledger.staleCount == 3)
        #expect(ledger.revoke(one) == 6)
    }

    @Test func aRewindIsNotTrackedTwice() throws {
        let ledger = Ledger()
        ledger.assign(one)
        let a = try slot(ledger.receive(one, offset: 5, bytes: 1, nowNanos: 0))
        #expect(ledger.receive(one, offset: 5, bytes: 1, nowNanos: 0) == .repeated)
        #expect(ledger.settle(a) == .advanced(one, next: 6))
        #expect(ledger.receive(one, offset: 5, bytes: 1, nowNanos: 0) == .repeated)
        #expect(ledger.unsettledCount == 0)
    }

    @Test func partitionsDoNotTouchEachOther() throws {
        let ledger = Ledger()
        ledger.assign(one)
        ledger.assign(two)
        _ = try slot(ledger.receive(one, offset: 0, bytes: 1, nowNanos: 0))
        let b = try slot(ledger.receive(two, offset: 0, bytes: 1, nowNanos: 9))
        #expect(ledger.settle(b) == .advanced(two, next: 1))
        ledger.revoke(two)
        #expect(ledger.unsettled(in: one) == 1)
        #expect(ledger.oldestUnsettledAgeNanos(in: one, nowNanos: 4) == 4)
    }

    @Test func numbersNoClusterHasAreRefused() {
        let ledger = Ledger()
        for partition in [
            TopicPartition(topic: -1, partition: 0), TopicPartition(topic: 0, partition: -1),
            TopicPartition(topic: 0, partition: .max), TopicPartition(topic: .max, partition: 0),
        ] {
            #expect(!ledger.assign(partition))
            #expect(ledger.receive(partition, offset: 0, bytes: 0, nowNanos: 0) == .unassigned)
            #expect(ledger.revoke(partition) == nil)
        }
        ledger.assign(one)
        #expect(ledger.receive(one, offset: .max, bytes: 0, nowNanos: 0) == .unassigned)
        #expect(ledger.receive(one, offset: -1, bytes: 0, nowNanos: 0) == .unassigned)
    }

    @Test(arguments: [true, false]) func pausesAtEightyAndResumesAtFiftyPercent(byCount: Bool) throws {
        let limits =
            byCount
            ? OffsetLedger.Limits(records: 10, bytes: 1 << 40, minimumPauseNanos: 100)
            : OffsetLedger.Limits(records: 1 << 40, bytes: 100, minimumPauseNanos: 100)
        let ledger = Ledger(limits)
        ledger.assign(one)
        var slots: [OffsetLedger.Slot] = []
        for offset in 0..<7 {
            slots.append(try slot(ledger.receive(one, offset: Int64(offset), bytes: 10, nowNanos: 0)))
            #expect(ledger.pressure(on: one, nowNanos: 0) == .unchanged)
        }
        slots.append(try slot(ledger.receive(one, offset: 7, bytes: 10, nowNanos: 0)))
        #expect(ledger.pressure(on: one, nowNanos: 1000) == .pause)
        #expect(ledger.pressure(on: one, nowNanos: 1000) == .unchanged)
        #expect(ledger.windowUsed(one) == 0.8)
        for index in 0..<3 { _ = ledger.settle(slots[index]) }
        #expect(ledger.pressure(on: one, nowNanos: 2000) == .unchanged)
        _ = ledger.settle(slots[3])
        #expect(ledger.pressure(on: one, nowNanos: 1099) == .unchanged)
        #expect(ledger.pressure(on: one, nowNanos: 1100) == .resume)
        #expect(ledger.pressure(on: one, nowNanos: 1100) == .unchanged)
    }

    @Test func recordsSettledBehindAnOldOneDoNotFillTheWindow() throws {
        let ledger = Ledger(OffsetLedger.Limits(records: 10, span: 100, minimumPauseNanos: 100))
        ledger.assign(one)
        _ = try slot(ledger.receive(one, offset: 0, bytes: 1, nowNanos: 0))
        for offset in 1..<79 {
            _ = ledger.settle(try slot(ledger.receive(one, offset: Int64(offset), bytes: 1, nowNanos: 0)))
            #expect(ledger.pressure(on: one, nowNanos: 0) == .unchanged)
        }
        _ = ledger.settle(try slot(ledger.receive(one, offset: 79, bytes: 1, nowNanos: 0)))
        #expect(ledger.pressure(on: one, nowNanos: 0) == .pause, "a commit can name only so many as settled")
        #expect(OffsetLedger.Limits(records: 10).span == 10)
    }

    @Test func partitionsShareTheBoundOnBytes() throws {
        let ledger = Ledger(OffsetLedger.Limits(records: 1 << 40, bytes: 100, minimumPauseNanos: 100))
        ledger.assign(one)
        ledger.assign(two)
        _ = try slot(ledger.receive(two, offset: 0, bytes: 30, nowNanos: 0))
        #expect(ledger.pressure(on: two, nowNanos: 0) == .unchanged)
        _ = try slot(ledger.receive(one, offset: 0, bytes: 60, nowNanos: 0))
        #expect(ledger.pressure(on: two, nowNanos: 0) == .unchanged, "the other holds more")
        #expect(ledger.pressure(on: one, nowNanos: 0) == .pause)
        #expect(ledger.windowUsed(two) == 0.9)
        _ = try slot(ledger.receive(two, offset: 1, bytes: 10, nowNanos: 0))
        #expect(ledger.pressure(on: two, nowNanos: 0) == .pause, "the bound itself holds for all")
    }

    @Test func recordsReadAtTheByteBoundAreReported() throws {
        let ledger = Ledger(OffsetLedger.Limits(records: 1 << 40, bytes: 100, minimumPauseNanos: 100))
        let three = TopicPartition(topic: 0, partition: 3)
        for partition in [one, two, three] { ledger.assign(partition) }
        let most = try slot(ledger.receive(one, offset: 0, bytes: 85, nowNanos: 0))
        #expect(ledger.pressure(on: one, nowNanos: 0) == .pause)
        _ = try slot(ledger.receive(two, offset: 0, bytes: 5, nowNanos: 0))
        #expect(ledger.pressure(on: two, nowNanos: 0) == .pause, "it holds most of those that are read")
        #expect(!ledger.isReadAtByteBound)
        _ = try slot(ledger.receive(two, offset: 1, bytes: 10, nowNanos: 0))
        #expect(ledger.isReadAtByteBound, "the third is read, though nothing changes for the second")
        #expect(ledger.pressure(on: three, nowNanos: 0) == .pause)
        #expect(!ledger.isReadAtByteBound)
        ledger.revoke(three)
        ledger.assign(three)
        #expect(ledger.isReadAtByteBound, "it begins anew")
        ledger.assign(three)
        ledger.revoke(three)
        #expect(!ledger.isReadAtByteBound)
        _ = ledger.settle(most)
        #expect(ledger.pressure(on: one, nowNanos: 200) == .resume)
        _ = try slot(ledger.receive(one, offset: 1, bytes: 85, nowNanos: 200))
        #expect(ledger.isReadAtByteBound)
        ledger.revoke(one)
        #expect(!ledger.isReadAtByteBound)
    }

    @Test func stuckBytesOfOnePartitionDoNotStopTheOthers() throws {
        let ledger = Ledger(OffsetLedger.Limits(records: 1 << 40, bytes: 100, minimumPauseNanos: 100))
        ledger.assign(one)
        ledger.assign(two)
        let stuck = try slot(ledger.receive(one, offset: 0, bytes: 70, nowNanos: 0))
        let small = try slot(ledger.receive(two, offset: 0, bytes: 30, nowNanos: 0))
        #expect(ledger.pressure(on: one, nowNanos: 0) == .pause)
        #expect(ledger.pressure(on: two, nowNanos: 0) == .pause)
        _ = ledger.settle(small)
        #expect(ledger.pressure(on: one, nowNanos: 200) == .unchanged)
        #expect(ledger.pressure(on: two, nowNanos: 200) == .resume)
        _ = ledger.settle(stuck)
        #expect(ledger.pressure(on: one, nowNanos: 200) == .resume)
    }

    // MARK: - Offsets without a record

    @Test func `offsets without a record are settled with the record before them`() throws {
        let ledger = Ledger()
        ledger.assign(one)
        let slot = try slot(ledger.receive(one, offset: 4, bytes: 1, nowNanos: 0))
        ledger.pass(one, from: 5, to: 7)
        #expect(ledger.next(one) == nil)
        #expect(ledger.settle(slot) == .advanced(one, next: 7))
        ledger.pass(one, from: 7, to: 9)
        #expect(ledger.next(one) == 9 && ledger.progress(of: one)?.offset == 9)
        let last = try self.slot(ledger.receive(one, offset: 9, bytes: 1, nowNanos: 0))
        #expect(ledger.settle(last) == .advanced(one, next: 10))
    }

    @Test func `offsets without a record behind the group's offset are settled`() {
        let ledger = Ledger()
        ledger.assign(one)
        ledger.pass(one, from: 0, to: 3)
        #expect(ledger.progress(of: one) == nil, "a group without offsets begins with its first record")
        ledger.noteCommitted(one, offset: 6)
        ledger.pass(one, from: 6, to: 6)
        #expect(ledger.progress(of: one) == nil)
        ledger.pass(one, from: 6, to: 8)
        #expect(ledger.progress(of: one)?.offset == 8)
    }

    @Test func `nothing is passed behind a record that did not come`() throws {
        let ledger = Ledger()
        ledger.assign(one)
        let slot = try slot(ledger.receive(one, offset: 4, bytes: 1, nowNanos: 0))
        ledger.pass(one, from: 6, to: 8)
        #expect(ledger.settle(slot) == .advanced(one, next: 5))
    }

    // MARK: - What is settled beyond the watermark

    @Test func recordsSettledBehindAnOpenOneAreNamedAndNotRepeated() throws {
        let ledger = Ledger()
        ledger.assign(one)
        #expect(ledger.progress(of: one) == nil)
        let slots = try (10..<15).map { try slot(ledger.receive(one, offset: $0, bytes: 1, nowNanos: 0)) }
        #expect(ledger.progress(of: one) == nil, "nothing is settled")
        _ = ledger.settle(slots[2])
        _ = ledger.settle(slots[4])
        #expect(ledger.progress(of: one) == told(10, [12, 14]))
        _ = ledger.settle(slots[0])
        let committed = try #require(ledger.progress(of: one))
        #expect(committed == told(11, [12, 14]))
        // The next owner reads from there.
        ledger.assign(one)
        ledger.noteCommitted(one, offset: committed.offset, settled: committed.settled)
        #expect(ledger.progress(of: one) == nil, "nothing was read yet")
        let eleven = try slot(ledger.receive(one, offset: 11, bytes: 1, nowNanos: 0))
        #expect(ledger.progress(of: one) == committed, "what was not read again is not forgotten")
        #expect(ledger.receive(one, offset: 12, bytes: 1, nowNanos: 0) == .settledBefore)
        let thirteen = try slot(ledger.receive(one, offset: 13, bytes: 1, nowNanos: 0))
        #expect(ledger.unsettledCount == 2)
        #expect(ledger.settle(eleven) == .advanced(one, next: 13))
        #expect(ledger.progress(of: one) == told(13, [14]))
        #expect(ledger.receive(one, offset: 14, bytes: 1, nowNanos: 0) == .settledBefore)
        #expect(ledger.settle(thirteen) == .advanced(one, next: 15))
        #expect(ledger.progress(of: one) == told(15, []))
        #expect(ledger.receive(one, offset: 15, bytes: 1, nowNanos: 0) != .settledBefore)
    }

    @Test func aSettledRecordAtTheFrontMovesTheWatermark() throws {
        let ledger = Ledger()
        ledger.assign(one)
        ledger.noteCommitted(one, offset: 3, settled: told(3, [4, 5]).settled)
        // Offset 3 is no record: a transaction's marker, or compacted.
        #expect(ledger.receive(one, offset: 4, bytes: 1, nowNanos: 0) == .settledBefore)
        #expect(ledger.next(one) == 5)
        #expect(ledger.receive(one, offset: 5, bytes: 1, nowNanos: 0) == .settledBefore)
        #expect(ledger.progress(of: one) == told(6, []))
        #expect(ledger.unsettledCount == 0 && ledger.windowUsed(one) == 0)
    }

    /// Owners come and go; each reads from what the one before had committed last.
    @Test(arguments: [11, 12, 13, 14] as [UInt64]) func noOwnerDoesAgainWhatWasCommittedAsSettled(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let end: Int64 = 2000
        var exists = Set<Int64>()
        for offset in 0..<end where random.next() % 8 != 0 { exists.insert(offset) }
        var committed = PartitionOffset(partition: one, offset: 0)
        var done = Set<Int64>()
        for owner in 0..<60 {
            let ledger = Ledger()
            ledger.assign(one)
            ledger.noteCommitted(one, offset: committed.offset, settled: committed.settled)
            let begin = committed.offset ?? 0
            var open: [(OffsetLedger.Slot, Int64)] = []
            var settled = Set(exists.filter { $0 < begin || committed.settled?.contains($0) ?? false })
            #expect(settled == done, "seed \(seed) owner \(owner)")
            for offset in begin..<min(end, begin + Int64(random.next() % 400)) where exists.contains(offset) {
                switch ledger.receive(one, offset: offset, bytes: 1, nowNanos: 0) {
                case .settledBefore:
                    #expect(done.contains(offset), "seed \(seed) owner \(owner) offset \(offset)")
                case .tracked(let slot):
                    #expect(!done.contains(offset), "seed \(seed) owner \(owner) offset \(offset)")
                    open.append((slot, offset))
                case .repeated, .otherEpoch, .unassigned: Issue.record("seed \(seed) owner \(owner) offset \(offset)")
                }
                while !open.isEmpty, random.next() % 3 == 0 {
                    // The oldest waits long.
                    let index =
                        open.count > 1 && random.next() % 16 != 0 ? 1 + Int(random.next() % UInt64(open.count - 1)) : 0
                    let (slot, offset) = open.remove(at: index)
                    _ = ledger.settle(slot)
                    settled.insert(offset)
                }
            }
            guard let progress = ledger.progress(of: one) else { continue }
            // Through the text, as the next owner gets it.
            let text = progress.settled?.metadata() ?? []
            committed = PartitionOffset(
                partition: one, offset: progress.offset,
                settled: text.withUnsafeBytes { SettledOffsets(metadata: $0, committed: progress.offset ?? -1) })
            #expect(committed == progress, "seed \(seed) owner \(owner)")
            done = settled
        }
    }

    private func told(_ offset: Int64, _ beyond: [Int64]) -> PartitionOffset {
        var settled = SettledOffsets(base: offset)
        for offset in beyond { settled.insert(offset) }
        return PartitionOffset(partition: one, offset: offset, settled: beyond.isEmpty ? nil : settled)
    }

    @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64]) func agreesWithANaiveModel(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var model = NaiveLedger()
        let ledger = Ledger()
        let partitions = (0..<3).map { TopicPartition(topic: Int($0) % 2, partition: $0) }
        var open: [(OffsetLedger.Slot, Int)] = []
        var offsets: [TopicPartition: Int64] = [:]
        for step in 0..<20_000 {
            let partition = partitions[Int(random.next() % 3)]
            switch random.next() % 100 {
            case 0:
                ledger.assign(partition)
                model.assign(partition)
                // Another owner may have gone back or forth.
                offsets[partition] = Int64(random.next() % 1000)
            case 1:
                #expect(ledger.revoke(partition) == model.revoke(partition), "seed \(seed) step \(step)")
            case 2..<50:
                let offset = offsets[partition, default: 0] + (random.next() % 10 == 0 ? Int64(random.next() % 50) : 0)
                offsets[partition] = offset + (random.next() % 50 == 0 ? 0 : 1)
                let size = Int(random.next() % 500)
                let receipt = ledger.receive(partition, offset: offset, bytes: size, nowNanos: UInt64(step))
                let expected = model.receive(partition, offset: offset, bytes: size, at: UInt64(step))
                switch (receipt, expected) {
                case (.tracked(let slot), .tracked(let id)): open.append((slot, id))
                case (.repeated, .repeated), (.unassigned, .unassigned): break
                default: Issue.record("seed \(seed) step \(step): \(receipt) but \(expected)")
                }
            default:
                if open.isEmpty { continue }
                // Mostly near the front, sometimes anywhere; now and then twice.
                let reach = random.next() % 20 == 0 ? open.count : min(open.count, 8)
                let index = Int(random.next() % UInt64(reach))
                let (slot, id) = open[index]
                if random.next() % 30 != 0 { open.remove(at: index) }
                #expect(ledger.settle(slot) == model.settle(id), "seed \(seed) step \(step)")
            }
            let agrees =
                ledger.unsettledCount == model.unsettled.count && ledger.unsettledBytes == model.unsettledBytes
                && ledger.oldestUnsettledAgeNanos(nowNanos: UInt64(step)) == model.oldest.map { UInt64(step) - $0 }
                && partitions.allSatisfy { ledger.next($0) == model.next($0) }
            #expect(agrees, "seed \(seed) step \(step)")
            if !agrees { return }
        }
    }
}

/// The same rules with lists and searches.
private struct NaiveLedger {
    struct Record {
        var partition: TopicPartition, offset: Int64, bytes: Int, at: UInt64, epoch: Int, settled = false
    }
    enum Receipt { case tracked(Int), repeated, unassigned }

    var records: [Record] = []
    var epochs: [TopicPartition: Int] = [:]
    var assigned: Set<TopicPartition> = []
    var live: [TopicPartition: [Int]] = [:]
    var newest: [TopicPartition: Int64] = [:]
    var nexts: [TopicPartition: Int64] = [:]

    var unsettled: [Record] { live.values.flatMap { $0 }.map { records[$0] }.filter { !$0.settled } }
    var unsettledBytes: Int { unsettled.map(\.bytes).reduce(0, +) }
    var oldest: UInt64? { unsettled.map(\.at).min() }

    mutating func assign(_ partition: TopicPartition) {
        _ = revoke(partition)
        assigned.insert(partition)
    }

    mutating func revoke(_ partition: TopicPartition) -> Int64? {
        let last = assigned.contains(partition) ? nexts[partition] : nil
        epochs[partition, default: 0] += 1
        assigned.remove(partition)
        live[partition] = nil
        newest[partition] = nil
        nexts[partition] = nil
        return last
    }

    mutating func receive(_ partition: TopicPartition, offset: Int64, bytes: Int, at: UInt64) -> Receipt {
        guard assigned.contains(partition) else { return .unassigned }
        if let newest = newest[partition], offset <= newest { return .repeated }
        newest[partition] = offset
        records.append(
            Record(partition: partition, offset: offset, bytes: bytes, at: at, epoch: epochs[partition, default: 0]))
        live[partition, default: []].append(records.count - 1)
        return .tracked(records.count - 1)
    }

    mutating func settle(_ id: Int) -> OffsetLedger.Settlement {
        let partition = records[id].partition
        guard records[id].epoch == epochs[partition, default: 0], assigned.contains(partition), !records[id].settled
        else { return .stale }
        records[id].settled = true
        let settledPrefix = (live[partition] ?? []).prefix { records[$0].settled }
        guard let last = settledPrefix.last else { return .waiting }
        live[partition]?.removeFirst(settledPrefix.count)
        nexts[partition] = records[last].offset + 1
        return .advanced(partition, next: records[last].offset + 1)
    }

    func next(_ partition: TopicPartition) -> Int64? { nexts[partition] }
}

/// `#expect` takes no noncopyable values, so the machine under test sits in a class.
private final class Ledger {
    var inner: OffsetLedger

    init(_ limits: OffsetLedger.Limits = OffsetLedger.Limits()) { inner = OffsetLedger(limits: limits) }

    @discardableResult func assign(_ partition: TopicPartition) -> Bool { inner.assign(partition) }
    @discardableResult func revoke(_ partition: TopicPartition) -> Int64? { inner.revoke(partition) }
    func noteCommitted(_ partition: TopicPartition, offset: Int64?, settled: SettledOffsets? = nil) {
        inner.noteCommitted(partition, offset: offset, settled: settled)
    }
    func progress(of partition: TopicPartition) -> PartitionOffset? { inner.progress(of: partition) }
    func receive(_ partition: TopicPartition, offset: Int64, bytes: Int, nowNanos: UInt64) -> OffsetLedger.Receipt {
        inner.receive(partition, offset: offset, bytes: bytes, nowNanos: nowNanos)
    }
    func settle(_ slot: OffsetLedger.Slot) -> OffsetLedger.Settlement { inner.settle(slot) }
    func pressure(on partition: TopicPartition, nowNanos: UInt64) -> OffsetLedger.Pressure {
        inner.pressure(on: partition, nowNanos: nowNanos)
    }
    var isReadAtByteBound: Bool { inner.isReadAtByteBound }
    func unsettled(in partition: TopicPartition) -> Int { inner.unsettled(in: partition) }
    func next(_ partition: TopicPartition) -> Int64? { inner.next(partition) }
    func windowUsed(_ partition: TopicPartition) -> Double { inner.windowUsed(partition) }
    func oldestUnsettledAgeNanos(nowNanos: UInt64) -> UInt64? { inner.oldestUnsettledAgeNanos(nowNanos: nowNanos) }
    func oldestUnsettledAgeNanos(in partition: TopicPartition, nowNanos: UInt64) -> UInt64? {
        inner.oldestUnsettledAgeNanos(in: partition, nowNanos: nowNanos)
    }
    func pass(_ partition: TopicPartition, from start: Int64, to end: Int64) {
        inner.pass(partition, from: start, to: end)
    }
    var unsettledCount: Int { inner.unsettledCount }
    var unsettledBytes: Int { inner.unsettledBytes }
    var staleCount: UInt64 { inner.staleCount }
}

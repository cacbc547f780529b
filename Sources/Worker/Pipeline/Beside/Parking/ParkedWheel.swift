// SPDX-License-Identifier: Apache-2.0
import Digits
import Kafka
import PushCore
import Queues

/// Records read from `carillon.parked` that wait for their due time, or for the end of their app's problem.
///
/// A machine without clock and server. Records of one user, or of one conversation, begin in the order of their events:
/// an event that was parked on arrival may be in the topic before an earlier one that was parked later. The due records
/// of a user begin together, and later ones after the end of all of them. Held ones are separate, because a message
/// that comes after the desktop left does not wait for them. The topic's ledger bounds the wheel, because its records
/// are unsettled.
struct ParkedWheel {
    /// The hash of app and user, or app and conversation. After a collision two would only wait for each other.
    typealias Key = UInt64

    private struct Line {
        /// Waiting records, in the order of their events.
        var waiting: [ParkedWork] = []
        /// Begun records that have not ended.
        var begun = 0
        /// When they were begun, in ms of the steady clock.
        var begunMs: Int64 = 0
        /// When it is looked at next, in ms of the steady clock; nil: nothing of it waits.
        var plannedMs: Int64?

        /// Within a partition of the events topic the offsets give the order. The brokers' times, which depend on
        /// different producers' clocks, only order records of different partitions.
        mutating func insert(_ work: ParkedWork) {
            if let last = waiting.last, last.isOfPartition(of: work), !work.isBeforeInPartition(last) {
                return waiting.append(work)
            }
            var (lowest, highest) = (0, waiting.count)
            for (index, other) in waiting.enumerated() where other.isOfPartition(of: work) {
                if work.isBeforeInPartition(other) {
                    highest = index
                    break
                }
                lowest = index + 1
            }
            let place = waiting[lowest..<highest].firstIndex { work.isBeforeInTime($0) } ?? highest
            waiting.insert(work, at: place)
        }
    }

    private var lines: [Key: Line] = [:]
    private var due = DueQueue<Int64, Key>()
    private var nextNumber: UInt64 = 0
    private(set) var count = 0
    /// Lines that were rewritten for lack of room, by the mark of their first record: records read before it come after
    /// it.
    private var moved: [Key: Move] = [:]

    private let onTheWay: ParkedOnTheWay

    /// - Parameter onTheWay: of all shards that may read records of the same users.
    init(_ onTheWay: ParkedOnTheWay = ParkedOnTheWay()) { self.onTheWay = onTheWay }

    private struct Move {
        var mark: String
        /// In `carillon.parked`.
        var partition: TopicPartition
    }

    static func key(_ record: ParkedRecord) -> Key {
        key(
            record.app, record.uid ?? record.conversation,
            (record.uid == nil ? 2 : 0) | (record.cause == .desktopFirst ? 1 : record.cause == .unclaimed ? 4 : 0))
    }

    private static func key(_ app: String, _ name: String, _ kind: UInt64) -> Key {
        var hash = SipHash128(key0: 0x6361_7269_6c6c_6f6e, key1: 0x7061_726b_6564_3031)
        hash.update(lengthThen: app)
        hash.update(lengthThen: name)
        hash.update(word: kind)
        return hash.finish().0
    }

    /// APNs takes pushes of the device again: records that wait for it are due now.
    mutating func release(_ device: ReleasedDevice, nowMs: Int64) {
        let key = Self.key(device.app, device.uid, 0)
        guard let line = lines[key] else { return }
        for work in line.waiting
        where work.record.dueMs > nowMs && work.record.cause.waitsForDevice
            && work.record.devices.containsSame(device.device)
        {
            work.record.dueMs = nowMs
        }
        plan(key)
    }

    /// A recipient was parked: records of later events of the user do not begin before this one is read.
    func expect(_ record: ParkedRecord, nowMs: Int64) { onTheWay.add(record, Self.key(record), nowMs: nowMs) }

    /// Once a second.
    func sweep(nowMs: Int64) { onTheWay.sweep(nowMs: nowMs) }

    /// A record was read. Returns false if records before it were rewritten, so that it must be too.
    mutating func read(_ work: ParkedWork) -> Bool {
        let key = Self.key(work.record)
        if let move = moved[key] {
            guard work.record.mover == move.mark else { return false }
            moved[key] = nil
        }
        work.number = nextNumber
        nextNumber &+= 1
        onTheWay.remove(work.record, key)
        insert(work, key)
        return true
    }

    /// A begun record parks again: it keeps its place.
    mutating func putBack(_ work: ParkedWork) {
        let key = Self.key(work.record)
        // Its cause may differ from the one at its start.
        leave(work.line)
        insert(work, key)
    }

    /// The broker refuses a record that was to be rewritten: it stays.
    mutating func didNotMove(_ work: ParkedWork) {
        let key = Self.key(work.record)
        if let move = moved[key], move.mark == work.record.mover { moved[key] = nil }
        insert(work, key)
    }

    /// A begun record has ended.
    mutating func ended(_ work: ParkedWork) { leave(work.line) }

    private mutating func leave(_ key: Key) {
        lines[key]?.begun -= 1
        if lines[key]?.begun == 0 { plan(key) }
        drop(key)
    }

    private mutating func drop(_ key: Key) {
        if let line = lines[key], line.waiting.isEmpty, line.begun <= 0 { lines[key] = nil }
    }

    private mutating func insert(_ work: ParkedWork, _ key: Key) {
        work.line = key
        lines[key, default: Line()].insert(work)
        count += 1
        plan(key)
    }

    private mutating func plan(_ key: Key, notBefore floorMs: Int64 = 0) {
        guard let line = lines[key], let first = line.waiting.first else { return }
        let dueMs = max(0, first.record.dueMs, floorMs)
        if let plannedMs = line.plannedMs, plannedMs <= dueMs { return }
        lines[key]?.plannedMs = dueMs
        due.insert(key, due: dueMs)
    }

    /// The next due record. If its app's state still prevents it, it is checked again a second later.
    ///
    /// - Parameter mayBegin: called once for each due record.
    mutating func next(nowMs: Int64, mayBegin: (ParkedRecord) -> Bool) -> ParkedWork? {
        while let key = due.popDue(nowMs) {
            lines[key]?.plannedMs = nil
            guard let line = lines[key], let work = line.waiting.first else {
                drop(key)
                continue
            }
            // Records begun earlier may park again in their place: the next ones of the user begin when none of them is
            // in progress.
            if line.begun > 0, line.begunMs != nowMs, work.record.uid != nil { continue }
            guard work.record.dueMs <= nowMs else {
                plan(key)
                continue
            }
            if onTheWay.hasEarlier(than: work.record, key, nowMs: nowMs) {
                plan(key, notBefore: nowMs &+ Self.earlierMs)
                continue
            }
            guard mayBegin(work.record) else {
                plan(key, notBefore: nowMs &+ Self.lookMs)
                continue
            }
            lines[key]?.waiting.removeFirst()
            lines[key]?.begun += 1
            lines[key]?.begunMs = nowMs
            count -= 1
            plan(key)
            return work
        }
        return nil
    }

    private static let lookMs: Int64 = 1000
    private static let earlierMs: Int64 = 100
    /// A record is rewritten at most once in this time.
    static let moveAfterMs: Int64 = 30_000

    /// Removes whole lines of these partitions, oldest first, to rewrite them behind newer records: nothing of them has
    /// begun, and all of them have been in the topic for long enough.
    ///
    /// - Parameter mark: identifies this call among all workers' calls.
    mutating func move(
        from partitions: Set<TopicPartition>, atMost limit: Int, nowMs: Int64, mark: String
    ) -> [ParkedWork] {
        let old = lines.filter { _, line in
            guard line.begun == 0, let first = line.waiting.first, partitions.contains(first.partition) else {
                return false
            }
            return line.waiting.allSatisfy { nowMs &- $0.record.writtenMs >= Self.moveAfterMs }
        }
        let order = old.sorted { ($0.value.waiting.first?.number ?? 0) < ($1.value.waiting.first?.number ?? 0) }
        var taken: [ParkedWork] = []
        for (key, line) in order where taken.count < limit {
            lines[key]?.waiting = []
            drop(key)
            count -= line.waiting.count
            for work in line.waiting { work.record.mover = nil }
            line.waiting.first?.record.mover = mark
            if let first = line.waiting.first { moved[key] = Move(mark: mark, partition: first.partition) }
            taken += line.waiting
        }
        return taken
    }

    /// These partitions go to another owner, which reads from the committed offset.
    mutating func forget(_ partitions: (TopicPartition) -> Bool) {
        // The next owner of the partition reads the first moved record.
        moved = moved.filter { !partitions($0.value.partition) }
        for (key, line) in lines where line.waiting.contains(where: { partitions($0.partition) }) {
            let before = line.waiting.count
            lines[key]?.waiting.removeAll { partitions($0.partition) }
            count -= before - (lines[key]?.waiting.count ?? 0)
            drop(key)
        }
    }
}

/// A record of `carillon.parked` in memory, from its read to the settled offset.
final class ParkedWork {
    var record: ParkedRecord
    let partition: TopicPartition
    let place: RecordPlace
    /// Its number among all records that this shard read from the topic.
    var number: UInt64 = 0
    var line: ParkedWheel.Key = 0
    /// The outcomes of its tries with their subject. They count when the record is settled.
    var counted = RecordCounts()
    /// Its begun work parks again.
    var parksAgain = false
    /// Its partition goes to another owner, which continues from the record in the topic.
    var isHandedBack = false

    /// - Returns: whether both events came through the same partition.
    func isOfPartition(of other: ParkedWork) -> Bool {
        record.source.offset >= 0 && record.source.partition == other.record.source.partition
    }

    func isBeforeInPartition(_ other: ParkedWork) -> Bool {
        (record.source.offset, number) < (other.record.source.offset, other.number)
    }

    func isBeforeInTime(_ other: ParkedWork) -> Bool {
        (record.source.kafkaMs, number) < (other.record.source.kafkaMs, other.number)
    }

    init(_ record: ParkedRecord, partition: TopicPartition, place: RecordPlace) {
        self.record = record
        self.partition = partition
        self.place = place
    }
}

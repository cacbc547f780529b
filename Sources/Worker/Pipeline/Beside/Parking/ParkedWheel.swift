// SPDX-License-Identifier: Apache-2.0
import Digits
import Kafka
import PushCore
import Queues

/// Recipients read from `carillon.parked` that wait for their due time, or for the end of their app's problem.
///
/// A machine without clock and server. Work of one user and conversation begins in the order of its events: an event that was
/// parked on arrival may be in the topic before an earlier one that was parked later. Recipients of a line that are due begin together,
/// and later ones after the end of all of these; an event with all its recipients does not wait. Held, unclaimed, scheduled and
/// background work has lines of its own (`kind`): other work does not wait for it. Apps take turns, so that nobody's backlog delays
/// another's. The topic's ledger bounds the records; if several apps share, `ParkedShares` bounds those of each.
struct ParkedWheel {
    /// The hash of app, conversation, user (if it is one recipient) and kind of wait. After a collision two would only wait for each other.
    typealias Key = UInt64

    private struct Line {
        let app: String
        /// Its user, if it may wait for a device.
        var user: UInt64?
        /// Waiting records, in the order of their events.
        var waiting: [ParkedWork] = []
        /// Begun records that have not ended.
        var begun = 0
        /// When they were begun, in ms of the steady clock.
        var begunMs: Int64 = 0
        /// When it is looked at next, in ms of the steady clock; nil: nothing of it waits, or its next work waits
        /// for the end of begun work.
        var plannedMs: Int64?

        /// Within a partition of the events topic the offsets give the order. The brokers' times, which depend on
        /// different producers' clocks, only order records of different partitions.
        mutating func insert(_ work: ParkedWork) {
            guard work.record.cause.keepsOrder else { return insertByTime(work) }
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

        /// Two of the same time keep the order in which they came.
        private mutating func insertByTime(_ work: ParkedWork) {
            var (lowest, highest) = (0, waiting.count)
            while lowest < highest {
                let middle = (lowest + highest) / 2
                if work.record.dueMs < waiting[middle].record.dueMs { highest = middle } else { lowest = middle + 1 }
            }
            waiting.insert(work, at: lowest)
        }
    }

    private var lines: [Key: Line] = [:]
    /// Lines that may wait for a device, by user.
    private var linesOfUser: [UInt64: Set<Key>] = [:]
    /// Lines with waiting work, by app.
    private var due: [String: DueQueue<Int64, Key>] = [:]
    private var apps: [String] = []
    /// The place of the app that began work last.
    private var turn = 0
    private var nextNumber: UInt64 = 0
    private(set) var count = 0
    /// How many of them are scheduled messages.
    private(set) var scheduledCount = 0

    private let onTheWay: ParkedOnTheWay

    /// - Parameter onTheWay: of all shards that may read records of the same users.
    init(_ onTheWay: ParkedOnTheWay = ParkedOnTheWay()) { self.onTheWay = onTheWay }

    static func key(_ record: ParkedRecord) -> Key {
        key(
            record.app, record.conversation, record.uid,
            (record.uid == nil ? 2 : 0) | kind(record.cause))
    }

    private static func kind(_ cause: ParkCause) -> UInt64 {
        switch cause {
        case .desktopFirst: 1
        case .unclaimed: 4
        case .scheduled: 8
        case .background: 16
        default: 0
        }
    }

    private static func key(_ app: String, _ conversation: String, _ uid: String?, _ kind: UInt64) -> Key {
        var hash = SipHash128(key0: 0x6361_7269_6c6c_6f6e, key1: 0x7061_726b_6564_3031)
        hash.update(lengthThen: app)
        hash.update(lengthThen: conversation)
        hash.update(lengthThen: uid ?? "")
        hash.update(word: kind)
        return hash.finish().0
    }

    /// APNs takes pushes of the device again: work that waits for it is due now, of whichever conversation.
    mutating func release(_ device: ReleasedDevice, nowMs: Int64) {
        // A set's order differs from run to run.
        for key in (linesOfUser[Self.user(device.app, device.uid)] ?? []).sorted() {
            for work in lines[key]?.waiting ?? []
            where work.record.dueMs > nowMs && work.record.cause.waitsForDevice
                && work.record.devices.containsSame(device.device)
            {
                work.record.dueMs = nowMs
            }
            plan(key)
        }
    }

    private static func user(_ app: String, _ uid: String) -> UInt64 { DeviceKey.make(app: app, uid: uid, device: "") }

    /// A record is on its way to the topic: its recipients' later work does not begin before it is read.
    ///
    /// - Parameter from: the partition that it comes from, if it is written again.
    func expect(_ record: Deferred, from partition: TopicPartition? = nil, nowMs: Int64) {
        onTheWay.add(record, from: partition, nowMs: nowMs)
    }

    /// A recipient waits in memory for the record of its event.
    func expect(_ record: ParkedRecord, nowMs: Int64) { onTheWay.add(record, nowMs: nowMs) }

    /// Whether the recipient waits in memory for the record of an earlier event of the conversation.
    func hasEarlierInMemory(than record: ParkedRecord, nowMs: Int64) -> Bool {
        onTheWay.hasEarlier(than: record, onlyInMemory: true, nowMs: nowMs)
    }

    /// The recipients of an event that wait in memory are left to another owner.
    func forget(_ open: [ParkedRecord]) {
        if let first = open.first { onTheWay.forget(first.source, of: first) }
    }

    /// Later work waits here for this record: it must not be written behind it.
    func isAwaited(_ record: ParkedRecord) -> Bool {
        guard record.cause.keepsOrder else { return false }
        return lines[Self.key(record)]?.waiting.contains {
            $0.record.source.partition == record.source.partition && $0.record.source.offset > record.source.offset
        } ?? false
    }

    /// It was read.
    func arrived(_ record: Deferred) { onTheWay.remove(record) }

    /// Once a second.
    func sweep(nowMs: Int64) { onTheWay.sweep(nowMs: nowMs) }

    /// The work of a record that was read begins when it is due.
    mutating func read(_ work: ParkedWork) {
        work.number = nextNumber
        nextNumber &+= 1
        work.batch.open += 1
        insert(work)
    }

    /// Begun work parks again, as one recipient or several: they keep its place.
    mutating func putBack(_ record: ParkedRecord, from begun: ParkedWork) {
        let work = ParkedWork(record, of: begun.batch)
        work.number = begun.number
        work.batch.open += 1
        insert(work)
    }

    /// Begun work has ended.
    mutating func ended(_ work: ParkedWork) {
        work.batch.begun -= 1
        leaveLine(work)
    }

    /// The recipients of begun work have ended and do not park again: the next work of the line may begin, whatever else the event
    /// waits for. A second call changes nothing.
    mutating func leaveLine(_ work: ParkedWork) {
        guard let line = work.line else { return }
        work.line = nil
        lines[line]?.begun -= 1
        if lines[line]?.begun == 0 { plan(line) }
        drop(line)
    }

    private mutating func drop(_ key: Key) {
        guard let line = lines[key], line.waiting.isEmpty, line.begun <= 0 else { return }
        lines[key] = nil
        guard let user = line.user, var keys = linesOfUser[user] else { return }
        keys.remove(key)
        linesOfUser[user] = keys.isEmpty ? nil : keys
    }

    private mutating func insert(_ work: ParkedWork) {
        let key = Self.key(work.record)
        work.line = key
        lines[key, default: Line(app: work.record.app)].insert(work)
        if let uid = work.record.uid, work.record.cause.waitsForDevice {
            let user = Self.user(work.record.app, uid)
            lines[key]?.user = user
            linesOfUser[user, default: []].insert(key)
        }
        note(work, 1)
        plan(key)
    }

    private mutating func plan(_ key: Key, notBefore floorMs: Int64 = 0) {
        guard let line = lines[key], let first = line.waiting.first else { return }
        let dueMs = max(0, first.record.dueMs, floorMs)
        if let plannedMs = line.plannedMs, plannedMs <= dueMs { return }
        lines[key]?.plannedMs = dueMs
        if due[line.app] == nil { apps.append(line.app) }
        due[line.app, default: DueQueue()].insert(key, due: dueMs)
    }

    /// The next due work, of each app in turn. If its app's state still prevents it, it is checked again a second later.
    ///
    /// - Parameter mayBegin: called once for each due work.
    mutating func next(nowMs: Int64, mayBegin: (ParkedRecord) -> Bool) -> ParkedWork? {
        for _ in apps.indices {
            turn = (turn + 1) % apps.count
            if let work = next(of: apps[turn], nowMs: nowMs, mayBegin: mayBegin) { return work }
        }
        return nil
    }

    private mutating func next(of app: String, nowMs: Int64, mayBegin: (ParkedRecord) -> Bool) -> ParkedWork? {
        while let key = due[app]?.popDue(nowMs) {
            lines[key]?.plannedMs = nil
            guard let line = lines[key], let work = line.waiting.first else {
                drop(key)
                continue
            }
            // Work begun earlier may park again in its place: the next of the line begins when none of it is in progress.
            if line.begun > 0, line.begunMs != nowMs, work.record.uid != nil { continue }
            guard work.record.dueMs <= nowMs else {
                plan(key)
                continue
            }
            if onTheWay.hasEarlier(than: work.record, nowMs: nowMs) {
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
            work.batch.begun += 1
            note(work, -1)
            plan(key)
            return work
        }
        return nil
    }

    private static let lookMs: Int64 = 1000
    private static let earlierMs: Int64 = 100
    /// A record is rewritten at most once in this time.
    static let moveAfterMs: Int64 = 30_000

    /// Removes records of these partitions of which nothing has begun: they are written again behind the others. First those in excess,
    /// newest first, so that none is written behind later work of its line that stays. Then those that have been in the topic for long,
    /// oldest first.
    ///
    /// - Parameters:
    ///   - mayExceed: whether the record's app has more than its share.
    ///   - isExcess: called once for each of these: whether it is to be moved now.
    mutating func move(
        from partitions: Set<TopicPartition>, atMost limit: Int, nowMs: Int64,
        mayExceed: (ParkedBatch) -> Bool = { _ in false }, isExcess: (ParkedBatch) -> Bool = { _ in true }
    ) -> [(batch: ParkedBatch, open: [ParkedRecord])] {
        func isOld(_ batch: ParkedBatch) -> Bool { nowMs &- batch.readMs >= Self.moveAfterMs }
        var works: [ObjectIdentifier: [ParkedWork]] = [:]
        for line in lines.values {
            for work in line.waiting where work.batch.begun == 0 && partitions.contains(work.partition) {
                if isOld(work.batch) || mayExceed(work.batch) {
                    works[ObjectIdentifier(work.batch), default: []].append(work)
                }
            }
        }
        // Recipients that were put back have the number of their work. A dictionary's order differs from run to run.
        let oldest = works.values.map { $0.sorted { ($0.number, $0.line ?? 0) < ($1.number, $1.line ?? 0) } }
            .sorted { ($0.first?.number ?? 0) < ($1.first?.number ?? 0) }
        var moved: [(batch: ParkedBatch, open: [ParkedRecord])] = []
        func take(_ works: [ParkedWork]) {
            guard moved.count < limit, let batch = works.first?.batch else { return }
            for work in works { remove(work) }
            moved.append((batch, works.map(\.record)))
        }
        var rest: [[ParkedWork]] = []
        for works in oldest.reversed() {
            guard let batch = works.first?.batch else { continue }
            if moved.count < limit, mayExceed(batch), isExcess(batch) { take(works) } else { rest.append(works) }
        }
        for works in rest.reversed() {
            if let batch = works.first?.batch, isOld(batch) { take(works) }
        }
        return moved
    }

    /// All that waits here.
    func forEach(_ body: (ParkedRecord) -> Void) {
        for line in lines.values { for work in line.waiting { body(work.record) } }
    }

    private mutating func remove(_ work: ParkedWork) {
        guard let line = work.line, let place = lines[line]?.waiting.lastIndex(where: { $0 === work }) else { return }
        lines[line]?.waiting.remove(at: place)
        note(work, -1)
        drop(line)
    }

    /// One more of it waits, or one less.
    private mutating func note(_ work: ParkedWork, _ change: Int) {
        count += change
        if work.record.cause == .scheduled { scheduledCount += change }
    }

    /// The broker refuses a record that was to be written again: its work stays, like that of a record that was just read.
    mutating func stay(_ open: [ParkedRecord], of batch: ParkedBatch, nowMs: Int64) {
        batch.readMs = nowMs
        for record in open { insert(ParkedWork(record, of: batch)) }
    }

    /// These partitions go to another owner, which reads from the committed offset.
    mutating func forget(_ partitions: (TopicPartition) -> Bool) {
        onTheWay.forget(partitions)
        for (key, line) in lines where line.waiting.contains(where: { partitions($0.partition) }) {
            for work in line.waiting where partitions(work.partition) { note(work, -1) }
            lines[key]?.waiting.removeAll { partitions($0.partition) }
            drop(key)
        }
    }
}

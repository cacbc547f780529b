// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import Kafka
import PushCore
import Telemetry

/// Work deferred to `carillon.parked`: for an app with an unreachable APNs, a refused credential or a requested delay,
/// for long holds for a desktop, and for apps over their share.
///
/// A record is settled at its origin once the broker has the parked record. The reader keeps it in a wheel until its
/// due time and the end of its app's problem, and then continues like after a crash: the claim and the record show what
/// was done. Records that begin are in `due`, records that the broker refused in `refused`.
final class Parking {
    let due = Tray<ParkedWork>()
    /// Events that stay in memory after all.
    let refused = Tray<(record: ReceivedRecord, intake: Intake)>()
    let devices = ParkedDevices()
    private let shard: ShardContext
    private let outbox: Outbox
    private let topic: OutTopic
    private let intake: Intake
    private var wheel: ParkedWheel
    private var pending: SlotTable<Pending>
    private var moves: UInt64 = 0
    /// Recipients that were parked while Redis took no mark, and are not due yet.
    private var unmarked: [ParkedWork] = []
    private let mark: UInt64

    /// A record without the broker's acknowledgement; its offset is settled then.
    private final class Pending {
        let intake: Intake
        let place: RecordPlace
        let partition: TopicPartition
        /// Begins if the broker refuses it.
        let record: ReceivedRecord?
        let work: ParkedWork?
        /// Its partition goes to another owner: a record that the broker refuses is left to that owner.
        var isHandedBack = false

        init(_ intake: Intake, _ origin: EventJob.Origin, record: ReceivedRecord) {
            self.intake = intake
            place = origin.place
            partition = origin.partition
            self.record = record
            work = nil
        }

        init(_ intake: Intake, _ work: ParkedWork) {
            self.intake = intake
            place = work.place
            partition = work.partition
            record = nil
            self.work = work
        }
    }

    private static let movedPerTick = 2_000

    /// - Parameters:
    ///   - intake: reads the topic.
    ///   - onTheWay: of the process.
    init(_ shard: ShardContext, outbox: Outbox, topic: OutTopic, intake: Intake, onTheWay: ParkedOnTheWay) {
        wheel = ParkedWheel(onTheWay)
        self.shard = shard
        mark = shard.random.next()
        self.outbox = outbox
        self.topic = topic
        self.intake = intake
        pending = SlotTable(capacity: 1 << 20)
    }

    /// Records in memory that wait for their due time, or for the broker.
    var count: Int { wheel.count + pending.count }

    /// The broker keeps up.
    var hasRoom: Bool { pending.count < shard.limits.parkedPendingMax }

    // MARK: Out

    /// Parks an event before anything was done for it. `didSettle` follows.
    func park(_ record: ReceivedRecord, as parked: ParkedRecord, _ intake: Intake) {
        let waiting = Pending(intake, record.origin, record: record)
        send(parked, tag: Tag(pending.insert(waiting), .parkedEvent).bits)
        note(parked, of: "")
    }

    /// Parks a recipient with its waiting devices; the tag is the recipient's.
    func park(_ record: ParkedRecord, tag: UInt64) {
        send(record, tag: tag)
        wheel.expect(record, nowMs: shard.steadyMs)
        noteDevices(of: record, noted: [])
    }

    private func send(_ record: ParkedRecord, tag: UInt64) {
        shard.metrics.parkedWork.add()
        outbox.sendRaw(
            topic, key: Array(record.key.utf8),
            value: record.leaving(nowMs: shard.nowMs, steadyMs: shard.steadyMs).bytes, headers: [], tag: tag)
    }

    /// Lets later work of the device, user or conversation see that this one is before it. Best effort: if Redis
    /// refuses it, only the order is lost.
    ///
    /// - Parameter noted: devices for which it was parked before, so that others may already be parked behind it.
    func noteDevices(of record: ParkedRecord, noted: [String]) {
        if !record.cause.holdsDevice { return }
        for device in record.devices { note(record, of: device, isAgain: noted.containsSame(device)) }
        if record.devices.isEmpty { note(record, of: "") }
    }

    private func note(_ record: ParkedRecord, of device: String, isAgain: Bool = false) {
        let nowMs = shard.nowMs
        let note = ParkedNote(
            dueMs: record.dueMs &- shard.steadyMs &+ nowMs, writtenMs: nowMs, untilMs: record.expiresAtMs)
        guard let uid = record.uid else {
            try? shard.store.noteParked(
                app: record.app, conversation: record.conversation, note, id: record.id, tag: Tag.noteBits)
            return
        }
        devices.note(
            DeviceKey.make(app: record.app, uid: uid, device: device), dueMs: record.dueMs, nowNanos: shard.nowNanos)
        try? shard.store.noteParked(
            app: record.app, uid: uid, device: device, note, id: record.id, isAgain: isAgain,
            isAPNsAsking: record.cause == .retryAfter, tag: Tag.noteBits)
    }

    /// APNs takes pushes of the device again: work that waits here because APNs had asked for it begins now.
    func release(_ device: ReleasedDevice) {
        devices.release(device.key, nowMs: shard.steadyMs)
        wheel.release(device, nowMs: shard.steadyMs)
    }

    /// The broker has the record.
    func didSettle(_ ref: WorkRef) {
        guard let waiting = pending.find(ref) else { return shard.late() }
        pending.remove(ref)
        if let work = waiting.work {
            waiting.intake.settle(work.place, work.counted, work.partition.partition)
        } else {
            waiting.intake.settle(waiting.place)
        }
        waiting.intake.mayEndRevocation()
    }

    /// The broker will never accept the record.
    func didGiveUp(_ ref: WorkRef) {
        guard let waiting = pending.find(ref) else { return shard.late() }
        pending.remove(ref)
        if waiting.isHandedBack { return waiting.intake.mayEndRevocation() }
        if let work = waiting.work { return wheel.didNotMove(work) }
        if let record = waiting.record { refused.append((record, waiting.intake)) }
        shard.requestTurn()
    }

    // MARK: In

    /// A parked record was read.
    func read(_ record: ParkedRecord, _ origin: EventJob.Origin) {
        let work = ParkedWork(
            record.taken(nowMs: shard.nowMs, steadyMs: shard.steadyMs), partition: origin.partition,
            place: origin.place)
        // It begins when the earlier ones of its conversation are out of hand here.
        if record.process == shard.processMark { work.record.dueMs = min(work.record.dueMs, shard.steadyMs) }
        if work.record.cause.waitsForDevice, let uid = work.record.uid {
            for device in work.record.devices {
                devices.hold(DeviceKey.make(app: work.record.app, uid: uid, device: device))
            }
        }
        if !wheel.read(work) { return moveBehind(work) }
        if work.record.dedupKind == nil { return }
        unmarked.append(work)
        markParked(work)
        noteUnstored(work.record)
    }

    /// A repeat of its event that another shard reads then finds that it waits here. Tried again each second: Redis may still
    /// refuse it.
    private func markParked(_ work: ParkedWork) {
        guard let uid = work.record.uid, let kind = work.record.dedupKind else { return }
        try? shard.store.markParked(
            app: work.record.app, uid: uid, kind: kind, id: String(work.record.id.dropFirst()),
            untilMs: work.record.dueMs &- shard.steadyMs &+ shard.nowMs, tag: Tag.noteBits)
    }

    /// Its message counts, and Redis does not have it yet.
    private func noteUnstored(_ record: ParkedRecord) {
        guard record.facts.contains(.owesCount), let uid = record.uid, let message = record.dedupKey else { return }
        shard.unstoredCounts.insert(
            message, of: UnstoredChanges.user(record.app, uid), nowNanos: shard.nowNanos)
    }

    private func moveBehind(_ work: ParkedWork) {
        work.record.writtenMs = shard.steadyMs
        work.record.noteFormer(work.place)
        send(work.record, tag: Tag(pending.insert(Pending(intake, work)), .parkedEvent).bits)
    }

    /// Begins due records, as far as there is room and their app's state allows it.
    func look(atMost limit: Int, mayBegin: (ParkedRecord) -> Bool) {
        var left = limit
        while left > 0, let work = wheel.next(nowMs: shard.steadyMs, mayBegin: mayBegin) {
            left -= 1
            due.append(work)
        }
        if !due.isEmpty { shard.requestTurn() }
    }

    /// The record's begun work has ended, or parks again.
    func end(_ work: ParkedWork) {
        if work.parksAgain {
            work.parksAgain = false
            return work.isHandedBack ? wheel.ended(work) : wheel.putBack(work)
        }
        wheel.ended(work)
        forget(work.record)
        intake.settle(work.place, work.counted, work.partition.partition)
    }

    /// The record belongs to another owner, or goes to the dead-letter topic, which settles it.
    func drop(_ work: ParkedWork) { wheel.ended(work) }

    private func forget(_ record: ParkedRecord) {
        guard let uid = record.uid else {
            try? shard.store.forgetParked(
                app: record.app, conversation: record.conversation, id: record.id, tag: Tag.noteBits)
            return
        }
        if !record.cause.holdsDevice { return }
        for device in record.devices.isEmpty ? [""] : record.devices {
            try? shard.store.forgetParked(app: record.app, uid: uid, device: device, id: record.id, tag: Tag.noteBits)
        }
    }

    /// Once a second: if a partition's window is full, records that have waited for long are rewritten behind the
    /// others, so that these get their turn.
    func tick() {
        devices.sweep(nowNanos: shard.nowNanos, hasParked: count > 0)
        wheel.sweep(nowMs: shard.steadyMs)
        unmarked.removeAll { $0.record.dueMs <= shard.steadyMs }
        for work in unmarked {
            markParked(work)
            noteUnstored(work.record)
        }
        let full = intake.fullParkedPartitions
        if full.isEmpty || !hasRoom { return }
        moves &+= 1
        let works = wheel.move(
            from: full, atMost: Self.movedPerTick, nowMs: shard.steadyMs, mark: "\(mark)-\(moves)")
        for work in works { moveBehind(work) }
    }

    // MARK: Rebalances

    /// These partitions of an intake go to another owner, which reads from the committed offset: nothing of them begins
    /// here any more. Begun work is handed back with its event (`Pipeline.handBack`).
    func handBack(of intake: Intake, _ isGoing: (TopicPartition) -> Bool) {
        pending.forEach { if $0.intake === intake, isGoing($0.partition) { $0.isHandedBack = true } }
        refused.removeAll { $0.intake === intake && isGoing($0.record.origin.partition) }
        if intake !== self.intake { return }
        wheel.forget(isGoing)
        unmarked.removeAll { isGoing($0.partition) }
        due.removeAll { work in
            guard isGoing(work.partition) else { return false }
            wheel.ended(work)
            return true
        }
    }

    /// - Returns: whether records of these partitions wait for the broker.
    func hasWork(of partitions: Set<TopicPartition>, _ intake: Intake) -> Bool {
        pending.contains { $0.intake === intake && partitions.contains($0.partition) }
    }
}

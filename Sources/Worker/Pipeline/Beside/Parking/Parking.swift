// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import Kafka
import PushCore
import Telemetry

/// Work deferred to `carillon.parked`: for an app with an unreachable APNs, a refused credential or a requested delay,
/// for long holds for a desktop, and for apps over their share.
///
/// A record is settled at its origin once the broker has the parked record. The reader keeps its recipients in a wheel until their
/// due time and the end of their app's problem, and then continues like after a crash: the claim and the record show what
/// was done. Work that begins is in `due`, records that the broker refused in `refused` and `stayed`.
final class Parking {
    let due = Tray<ParkedWork>()
    /// Events that stay in memory after all.
    let refused = Tray<(record: ReceivedRecord, intake: Intake)>()
    /// The same for recipients of events whose others have ended.
    let stayed = Tray<(event: EventJob, open: [ParkedRecord])>()
    /// Events with one open part less: the broker has, or refuses, their record, or it may be written now.
    let written = Tray<EventJob>()
    let devices = ParkedDevices()
    private let shard: ShardContext
    private let outbox: Outbox
    private let topic: OutTopic
    private let intake: Intake
    private var wheel: ParkedWheel
    private var pending: SlotTable<Pending>
    /// Those that wait for room on the way to the broker.
    private var waiting: [Pending] = []
    /// Bytes of the records on the way to the broker.
    private var bytesOnWay = 0
    private var held = ParkedShares()
    /// Recipients that were parked while Redis took no mark, and are not due yet.
    private var unmarked: [ParkedWork] = []
    private var nextMark = 0
    /// Events of which only recipients are left that wait for the record of an earlier event.
    private var behindEarlier: [EventJob] = []
    /// Recipients with progress that Redis could not take, by their record.
    private var unsaved: [Unsaved] = []
    /// Events of records with several recipients that began a moment ago.
    private var events: [(batch: ParkedBatch, event: Event)] = []

    /// A record without the broker's acknowledgement; its origin is settled then.
    private final class Pending {
        let record: Deferred
        let origin: Origin
        /// The places of its recipients in the event's `to.uids`.
        var places: [UTF8Key: Int]
        var ref = WorkRef.none
        var bytes = 0
        /// Its partition goes to another owner: a record that the broker refuses is left to that owner.
        var partitionGoes = false

        init(_ record: Deferred, _ origin: Origin, _ places: [UTF8Key: Int]) {
            self.record = record
            self.origin = origin
            self.places = places
        }
    }

    private struct Unsaved {
        let batch: ParkedBatch
        var open: [ParkedRecord]
        /// Seconds since the first of them.
        var ticks = 0
    }

    private enum Origin {
        /// An event before anything was done for it. It begins if the broker refuses it.
        case arrival(ReceivedRecord, Intake)
        /// An event's recipients that have not ended; the record is one of its open parts.
        case event(EventJob)
        /// Recipients of a record that was read.
        case batch(ParkedBatch, count: Int)
    }

    private static let movedPerTick = 2_000
    /// The bytes on the way to the broker; one record may exceed it.
    private static let onWayMax = 8 << 20
    private static let markedPerTick = 256
    private static let eventsKept = 8
    private static let unsavedTicksMax = 5
    private static let smallBytes = 20_000
    private static let largeSeconds: Int64 = 5

    /// - Parameters:
    ///   - intake: reads the topic.
    ///   - onTheWay: of the process.
    init(_ shard: ShardContext, outbox: Outbox, topic: OutTopic, intake: Intake, onTheWay: ParkedOnTheWay) {
        wheel = ParkedWheel(onTheWay)
        self.shard = shard
        self.outbox = outbox
        self.topic = topic
        self.intake = intake
        pending = SlotTable(capacity: 1 << 20)
    }

    /// Recipients in memory that wait for their due time, and records that wait for the broker.
    var count: Int { wheel.count + pending.count + unsaved.reduce(0) { $0 + $1.open.count } }

    /// The pushes of all these.
    func note(in waiting: inout WaitingPushes) {
        let wallMs = shard.nowMs &- shard.steadyMs
        wheel.forEach { waiting.add($0, wallMs: wallMs) }
        pending.forEach { for record in $0.record.open { waiting.add(record, wallMs: wallMs) } }
        for record in unsaved.lazy.flatMap(\.open) { waiting.add(record, wallMs: wallMs) }
    }

    /// Scheduled messages in memory that wait for their time.
    var scheduledCount: Int { wheel.scheduledCount }

    /// The broker keeps up.
    var hasRoom: Bool { pending.count < shard.limits.parkedPendingMax && waiting.isEmpty }

    // MARK: Out

    /// Parks an event before anything was done for it. `didSettle` follows.
    func park(_ record: ReceivedRecord, as parked: ParkedRecord, _ intake: Intake) {
        send(Deferred([parked]), .arrival(record, intake))
        if parked.cause.holdsDevice { note(parked, of: "") }
    }

    /// Parks an event's recipients that have not ended: the event once, in as few records as the broker takes. They are open parts
    /// of the event.
    func park(_ event: EventJob, _ open: [ParkedRecord]) {
        let places = places(of: open)
        for part in Deferred(open).divided(places: places) {
            event.openParts += 1
            wheel.expect(part, nowMs: shard.steadyMs)
            send(part, .event(event), places)
        }
    }

    /// A recipient waits in memory for the record of its event. Later work waits behind it from now on.
    ///
    /// - Parameters:
    ///   - waits: of its devices: the record is due with the first of them.
    ///   - event: others may already be parked behind its record until now, if it was parked before.
    func expect(_ record: ParkedRecord, waits: [DeviceWait], of event: EventJob) {
        wheel.expect(record, nowMs: shard.steadyMs)
        noteDevices(of: record, waits, event)
        let noted = event.parked?.record.notedDevices ?? []
        for device in noted where !record.notedDevices.containsSame(device) { forget(record, of: device) }
    }

    struct DeviceWait {
        var device: String
        var cause: ParkCause
        /// On the shard's steady clock.
        var dueMs: Int64
    }

    /// The recipients of an event that wait in memory are left to another owner.
    func forget(_ open: [ParkedRecord]) { wheel.forget(open) }

    /// Some of the event's recipients that wait in memory must not wait for its others: they are due soon, or only their record
    /// can say that they were pushed. A large event, which each record has whole, waits for more of them or for some seconds.
    func mustLeave(_ event: EventJob) -> Bool {
        if event.parting.isEmpty { return false }
        let isSmall = event.parked != nil || event.raw.count <= max(Self.smallBytes, 200 * event.parting.count)
        let seconds: Int64 = isSmall ? 1 : Self.largeSeconds
        if shard.steadyMs / 1_000 % seconds != 0 { return false }
        let soonMs = shard.steadyMs &+ 1_000 * seconds
        return event.parting.contains { $0.cause.isTimed && $0.dueMs <= soonMs || $0.facts.contains(.owesClaim) }
    }

    /// Whether recipients of an earlier event of the conversation wait in memory for their record. This event's record must come after
    /// it in the topic, because another process may read both.
    func isBehindEarlier(_ event: EventJob) -> Bool {
        event.parting.contains { wheel.hasEarlierInMemory(than: $0, nowMs: shard.steadyMs) }
    }

    /// The event's last part waits until the earlier event has left memory.
    func wait(_ event: EventJob) { behindEarlier.append(event) }

    /// Several times a second: the events that these wait for may have left.
    func lookAgain() {
        if behindEarlier.isEmpty { return }
        for event in behindEarlier { written.append(event) }
        behindEarlier = []
        shard.requestTurn()
    }

    /// The places of its recipients in the event's `to.uids`, if they are worth a look at the event.
    private func places(of open: [ParkedRecord]) -> [UTF8Key: Int] {
        guard open.count > 1, let first = open.first, first.part == nil,
            let uids = shard.givenUIDs(first.raw, first.source)
        else { return [:] }
        var places: [UTF8Key: Int] = [:]
        places.reserveCapacity(uids.count)
        for (place, uid) in uids.enumerated() { places[UTF8Key(uid)] = place }
        return places
    }

    private func send(_ record: Deferred, _ origin: Origin, _ places: [UTF8Key: Int] = [:]) {
        let one = Pending(record, origin, places)
        one.ref = pending.insert(one)
        waiting.append(one)
        sendWaiting()
    }

    private func sendWaiting() {
        while bytesOnWay < Self.onWayMax, !waiting.isEmpty {
            // First: a record that is too large comes back at once.
            let one = waiting.removeFirst()
            let leaving = one.record.open.map { $0.leaving(nowMs: shard.sharedMs, steadyMs: shard.steadyMs) }
            let value = Deferred(leaving, later: one.record.later).bytes(places: one.places)
            one.places = [:]
            one.bytes = value.count
            bytesOnWay += value.count
            shard.metrics.parkedWork.add()
            outbox.sendRaw(
                topic, key: Array(one.record.key.utf8), value: value, headers: [],
                tag: Tag(one.ref, .parkedEvent).bits)
        }
    }

    /// Lets later work of the device, user or conversation see that this one is before it, and its reader, which of its devices must wait
    /// on. Best effort: if Redis refuses it, only this shard keeps the order.
    private func noteDevices(of record: ParkedRecord, _ waits: [DeviceWait], _ event: EventJob) {
        if record.devices.isEmpty, record.cause.holdsDevice { note(record, of: "", nil, event) }
        for device in record.devices {
            let wait = waits.first { $0.device.isSame(as: device) }
            guard (wait?.cause ?? record.cause).holdsDevice else { continue }
            note(record, of: device, wait, event)
        }
    }

    private func note(
        _ record: ParkedRecord, of device: String, _ wait: DeviceWait? = nil, _ event: EventJob? = nil
    ) {
        let nowMs = shard.sharedMs
        var note = ParkedNote(dueMs: 0, writtenMs: nowMs, untilMs: record.event.expiresAtMs)
        guard let uid = record.uid else {
            note.dueMs = record.dueMs &- shard.steadyMs &+ nowMs
            try? shard.store.noteParked(
                app: record.app, conversation: record.conversation, note, id: record.id, tag: Tag.noteBits)
            return
        }
        // Work that is parked behind a refused push may have begun to wait before the refusal.
        let dueMs = devices.note(
            DeviceKey.make(app: record.app, uid: uid, device: device), dueMs: wait?.dueMs ?? record.dueMs,
            of: record.source, returnedNanos: event?.returnedNanos,
            isRefused: shard.writes.refusesSome(nowNanos: shard.nowNanos), nowNanos: shard.nowNanos)
        note.dueMs = dueMs &- shard.steadyMs &+ nowMs
        try? shard.store.noteParked(
            app: record.app, uid: uid, device: device, note, id: record.id,
            isAgain: event?.parked?.record.notedDevices.containsSame(device) ?? false,
            isAPNsAsking: (wait?.cause ?? record.cause) == .retryAfter, tag: Tag.noteBits)
    }

    /// APNs takes pushes of the device again: work that waits here because APNs had asked for it begins now.
    func release(_ device: ReleasedDevice) {
        devices.release(device.key, nowMs: shard.steadyMs)
        wheel.release(device, nowMs: shard.steadyMs)
    }

    /// The broker has the record.
    func didSettle(_ ref: WorkRef) {
        guard let one = pending.find(ref) else { return shard.noteLate() }
        left(one)
        switch one.origin {
        case .arrival(let record, let intake):
            intake.settle(record.origin.place)
            intake.mayEndRevocation()
        case .event(let event): written.append(event)
        case .batch(let batch, let count):
            batch.open -= count
            settleIfEnded(batch)
            intake.mayEndRevocation()
        }
    }

    /// The broker will never accept the record.
    func didGiveUp(_ ref: WorkRef) {
        guard let one = pending.find(ref) else { return shard.noteLate() }
        left(one)
        switch one.origin {
        case .arrival(let record, let intake):
            if one.partitionGoes { return intake.mayEndRevocation() }
            refused.append((record, intake))
        case .event(let event):
            stayed.append((event, one.record.open))
        case .batch(let batch, _):
            if one.partitionGoes { return intake.mayEndRevocation() }
            wheel.stay(one.record.open, of: batch, nowMs: shard.steadyMs)
        }
        shard.requestTurn()
    }

    private func left(_ one: Pending) {
        pending.remove(one.ref)
        bytesOnWay -= one.bytes
        sendWaiting()
    }

    // MARK: In

    /// A parked record was read.
    ///
    /// - Parameter share: the app's share of the records in memory.
    func read(_ record: Deferred, _ origin: EventJob.Origin, share: Double = 1) {
        wheel.arrived(record)
        let batch = ParkedBatch(origin, later: record.later)
        batch.readMs = shard.steadyMs
        guard let first = record.open.first else { return intake.settle(origin.place) }
        let waitedMs = shard.sharedMs &- first.writtenMs
        let open = record.open.map { $0.taken(nowMs: shard.sharedMs, steadyMs: shard.steadyMs) }
        if waitedMs >= ParkedShares.restMs, shard.limits.isShared,
            held.isFull(first.app, batch.partition, share: share, shard.limits),
            !record.open.contains(where: wheel.isAwaited),
            held.mayMove(first.raw.count, nowMs: shard.steadyMs)
        {
            batch.open = open.count
            return moveBehind(batch, open)
        }
        batch.size = (first.app, first.raw.count + ParkedShares.recipientBytes * open.count)
        batch.share = share
        batch.hasSeveral = open.count > 1
        held.add(batch)
        for record in open {
            let work = ParkedWork(record, of: batch)
            // It begins when the earlier ones of its conversation are out of hand here.
            if record.process == shard.processMark { work.record.dueMs = min(record.dueMs, shard.steadyMs) }
            wheel.read(work)
            if record.cause.waitsForDevice, let uid = record.uid {
                for device in record.devices { devices.hold(DeviceKey.make(app: record.app, uid: uid, device: device)) }
            }
            if record.dedupKind == nil { continue }
            unmarked.append(work)
            // The others follow each second.
            if unmarked.count <= Self.markedPerTick { markParked(work) }
            noteUnstored(work.record)
        }
    }

    /// A repeat of its event that another shard reads then finds that it waits here. Tried again later: Redis may still
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

    /// Some of them each second, in turn.
    private func markParked() {
        unmarked.removeAll { $0.record.dueMs <= shard.steadyMs }
        for _ in 0..<min(Self.markedPerTick, unmarked.count) {
            nextMark = (nextMark + 1) % unmarked.count
            markParked(unmarked[nextMark])
        }
    }

    private func moveBehind(_ batch: ParkedBatch, _ open: [ParkedRecord]) {
        let open = open.map { record in
            var record = record
            record.writtenMs = shard.steadyMs
            record.noteFormer(batch.place)
            return record
        }
        let places = places(of: open)
        for part in Deferred(open, later: batch.later).divided(places: places) {
            wheel.expect(part, from: batch.partition, nowMs: shard.steadyMs)
            send(part, .batch(batch, count: part.open.count), places)
        }
    }

    /// Begins due work, as far as there is room and its app's state allows it.
    func beginDue(atMost limit: Int, mayBegin: (ParkedRecord) -> Bool) {
        var left = limit
        while left > 0, let work = wheel.next(nowMs: shard.steadyMs, mayBegin: mayBegin) {
            left -= 1
            due.append(work)
        }
        if !due.isEmpty { shard.requestTurn() }
    }

    /// The event of work that begins. Recipients of a record that are due within a second share one.
    func event(of work: ParkedWork) throws(BadRecord) -> Event {
        if let known = events.first(where: { $0.batch === work.batch }) { return known.event }
        let event = try shard.read(event: work.record.raw, work.record.source)
        if work.batch.hasSeveral {
            if events.count >= Self.eventsKept { events.removeFirst() }
            events.append((work.batch, event))
        }
        return event
    }

    /// Recipients of begun work park again: they return to its place in the wheel.
    func goOn(_ work: ParkedWork, _ open: [ParkedRecord]) {
        wheel.forget(open)
        work.parksAgain = open.contains { $0.uid == nil } || work.record.uid != nil
        for record in open {
            if record.facts.contains(.owesClaim), work.record.uid == nil || record.hasProgress(since: work.record) {
                work.batch.open += 1
                save(record, of: work)
            } else {
                wheel.putBack(record, from: work)
            }
        }
    }

    private func save(_ record: ParkedRecord, of work: ParkedWork) {
        // A record of one recipient is here once.
        let mayBeHere = work.batch.hasSeveral || work.record.uid == nil
        if mayBeHere, let place = unsaved.lastIndex(where: { $0.batch === work.batch }) {
            unsaved[place].open.append(record)
        } else {
            unsaved.append(Unsaved(batch: work.batch, open: [record]))
        }
    }

    /// The one recipient of the begun work has ended. A badge update that its event waits for may wait for later work of the line.
    func recipientEnded(_ work: ParkedWork) {
        if work.partitionGoes { return }
        forgetNotes(of: work)
        wheel.leaveLine(work)
    }

    /// The begun work has ended.
    func end(_ work: ParkedWork) {
        forgetNotes(of: work)
        wheel.ended(work)
        work.batch.open -= 1
        settleIfEnded(work.batch)
    }

    private func settleIfEnded(_ batch: ParkedBatch) {
        guard batch.open == 0, !batch.isRejected else { return }
        held.remove(batch)
        intake.settle(batch.place, batch.counted, batch.partition.partition)
        if intake.fullPartitions.contains(batch.partition) { intake.relieve(batch.partition) }
    }

    /// The record belongs to another owner: with this work open it is never settled here.
    func drop(_ work: ParkedWork) { wheel.ended(work) }

    /// The record goes to the dead-letter topic, which settles it. `.kept`: it is on its way there for another recipient.
    func reject(_ work: ParkedWork) -> Passage {
        wheel.ended(work)
        if work.batch.isRejected { return .kept }
        work.batch.isRejected = true
        held.remove(work.batch)
        return .goesOn
    }

    /// The next work of the line finds no note of this one.
    private func forgetNotes(of work: ParkedWork) {
        if work.line != nil, !work.parksAgain { forget(work.record) }
    }

    private func forget(_ record: ParkedRecord) {
        if record.uid == nil, record.cause.holdsDevice {
            try? shard.store.forgetParked(
                app: record.app, conversation: record.conversation, id: record.id, tag: Tag.noteBits)
        }
        // Also if the last cause holds no device: an earlier one may have held it.
        for device in record.notedDevices { forget(record, of: device) }
    }

    private func forget(_ record: ParkedRecord, of device: String) {
        guard let uid = record.uid else { return }
        try? shard.store.forgetParked(app: record.app, uid: uid, device: device, id: record.id, tag: Tag.noteBits)
    }

    /// Once a second: if a partition's window is full, records that have waited for long are written again behind the
    /// others, so that these get their turn.
    func tick() {
        devices.sweep(nowNanos: shard.nowNanos, hasParked: count > 0)
        wheel.sweep(nowMs: shard.steadyMs)
        events = []
        markParked()
        for work in unmarked { noteUnstored(work.record) }
        writeUnsaved()
        let parked = intake.fullParkedPartitions
        if parked.isEmpty || !hasRoom { return }
        var full: [TopicPartition: [String: Bool]] = [:]
        let moved = wheel.move(from: parked, atMost: Self.movedPerTick, nowMs: shard.steadyMs) { batch in
            if let known = full[batch.partition]?[batch.size.app] { return known }
            let isFull = isFull(batch)
            full[batch.partition, default: [:]][batch.size.app] = isFull
            return isFull
        } isExcess: { batch in
            guard shard.steadyMs &- batch.readMs >= ParkedShares.restMs, isFull(batch),
                held.mayMove(batch.size.bytes, nowMs: shard.steadyMs)
            else { return false }
            held.remove(batch)
            batch.size.app = ""
            return true
        }
        for (batch, open) in moved { moveBehind(batch, open) }
    }

    /// Whether the app of the batch has more than its share of the records in memory.
    private func isFull(_ batch: ParkedBatch) -> Bool {
        shard.limits.isShared && held.isFull(batch.size.app, batch.partition, share: batch.share, shard.limits)
    }

    /// The event is written again with facts that Redis could not take. Many recipients together: a record with each of them would be the
    /// event as many times.
    private func writeUnsaved() {
        for place in unsaved.indices { unsaved[place].ticks += 1 }
        unsaved.removeAll { one in
            let size = one.open.count * ParkedShares.recipientBytes
            guard size >= one.batch.size.bytes / 4 || one.ticks >= Self.unsavedTicksMax else { return false }
            moveBehind(one.batch, one.open)
            return true
        }
    }

    // MARK: Rebalances

    /// These partitions of an intake go to another owner, which reads from the committed offset: nothing of them begins
    /// here any more. Begun work is handed back with its event (`Pipeline.handBack`).
    func handBack(of intake: Intake, _ isGoing: (TopicPartition) -> Bool) {
        pending.forEach { one in
            switch one.origin {
            case .arrival(let record, let its):
                if its === intake, isGoing(record.origin.partition) { one.partitionGoes = true }
            case .batch(let batch, _): if intake === self.intake, isGoing(batch.partition) { one.partitionGoes = true }
            case .event: break
            }
        }
        for event in behindEarlier {
            if let partition = event.origin?.partition, isGoing(partition) { event.staysUnsettled = true }
        }
        refused.removeAll { $0.intake === intake && isGoing($0.record.origin.partition) }
        if intake !== self.intake { return }
        wheel.forget(isGoing)
        held.forget(isGoing)
        unmarked.removeAll { isGoing($0.partition) }
        unsaved.removeAll { isGoing($0.batch.partition) }
        due.removeAll { work in
            guard isGoing(work.partition) else { return false }
            wheel.ended(work)
            return true
        }
    }

    /// - Returns: whether records of these partitions wait for the broker.
    func hasWork(of partitions: Set<TopicPartition>, _ intake: Intake) -> Bool {
        pending.contains { one in
            switch one.origin {
            case .arrival(let record, let its): its === intake && partitions.contains(record.origin.partition)
            case .batch(let batch, _): intake === self.intake && partitions.contains(batch.partition)
            // The event is open.
            case .event: false
            }
        }
    }
}

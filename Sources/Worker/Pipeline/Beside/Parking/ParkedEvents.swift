// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import Kafka
import PushCore
import Telemetry

/// The events that are parked on arrival, and the records that return: a layer above `Parking`, `WorkRoom` and `EventEnds`.
final class ParkedEvents {
    private let shard: ShardContext
    private let work: WorkTable
    private let intakes: Intakes
    private let apps: AppTable
    private let fanOut: FanOut
    private let sender: Sender
    private let recorder: Recorder
    private let parking: Parking
    private let userStates: UserStates
    private let waits: RecipientWaits
    private let ends: EventEnds
    private let room: WorkRoom

    init(
        _ shard: ShardContext, _ work: WorkTable, _ intakes: Intakes, apps: AppTable, fanOut: FanOut, sender: Sender,
        recorder: Recorder, parking: Parking, userStates: UserStates, waits: RecipientWaits, ends: EventEnds,
        room: WorkRoom
    ) {
        self.shard = shard
        self.work = work
        self.intakes = intakes
        self.apps = apps
        self.fanOut = fanOut
        self.sender = sender
        self.recorder = recorder
        self.parking = parking
        self.userStates = userStates
        self.waits = waits
        self.ends = ends
        self.room = room
    }

    /// Parks further events of an app that has its share.
    func parkOverShare(_ record: ReceivedRecord, _ event: Event, _ raw: [UInt8], _ app: AppContext) -> Passage {
        guard app.inHand.isFull(shard.limits, partition: record.origin.partition.partition),
            raw.count <= ParkedRecord.rawMax
        else { return .goesOn }
        return park(record, event, raw, .share, dueMs: shard.steadyMs)
    }

    /// A scheduled message waits for its time as a parked record, not as an open event.
    func parkUntilItsTime(_ record: ReceivedRecord, _ event: Event, _ raw: [UInt8]) -> Passage {
        // Only it is sent later than now, but for a clock that is a little late.
        guard event.sentMs > shard.nowMs, let sendAtMs = event.sendAtMs else { return .goesOn }
        if case .message(let message) = event.body, let app = apps[event.app] {
            // Best effort: if it is lost, its revoke has an alert, and `trace` does not know of it.
            try? shard.store.keepOriginal(
                app: event.app, msgID: message.value.msgID,
                KeptOriginal(collapseID: EventContent(message, app: app).givenCollapseID, sendAtMs: sendAtMs),
                expireAtMs: message.value.expireAtMs, nowMs: shard.nowMs, isFirst: true, tag: Tag.noteBits)
        }
        return park(record, event, raw, .scheduled, dueMs: shard.steadyMs(at: sendAtMs))
    }

    private func park(
        _ record: ReceivedRecord, _ event: Event, _ raw: [UInt8], _ cause: ParkCause, dueMs: Int64
    ) -> Passage {
        let (whole, uids): (ParkedEvent, [String]?)
        var conversation = ""
        switch event.body {
        case .userState: return .goesOn
        case .message(let message):
            let kind: PairKind = message.value.kind == .revoke ? .revoke : .message
            conversation = message.value.conversation.id
            uids = message.value.to.uids
            whole = ParkedEvent(
                app: event.app, id: kind.rawValue + message.value.msgID, raw: raw, source: record.origin.source,
                conversation: conversation, expiresAtMs: message.value.expireAtMs)
        case .liveActivity(let activity):
            uids = activity.isForAllBound ? nil : activity.uids
            whole = ParkedEvent(
                app: event.app, id: PairKind.liveActivity.rawValue + event.id, raw: raw, source: record.origin.source,
                conversation: activity.activityID, expiresAtMs: event.sentMs &+ LiveActivity.lifetimeMs)
        }
        var parked = ParkedRecord(
            whole, uid: uids?.count == 1 ? uids?.first : nil, cause: cause, dueMs: dueMs, writtenMs: shard.steadyMs)
        parked.facts = record.origin.place.parkedFacts
        // Another worker may read this record before this process has parked or pushed the earlier event: so it is due later. This
        // process ignores that time and looks at the conversation (`mayBeginNow`).
        if cause == .share, work.hasEvent(of: conversation, app: parked.app) {
            parked.dueMs = max(dueMs, shard.steadyMs &+ shard.limits.outOfHandMs)
            parked.process = shard.processMark
        }
        recorder.writeParked(parked, eventID: event.id, of: apps[event.app])
        // At its time the event is read like a new one, with all recipients.
        if cause == .scheduled { parked.uid = nil }
        parking.park(record, as: parked, intakes.events)
        return .kept
    }

    /// Events after a parked one of their conversation, and those that the broker refused.
    func take() {
        fanOut.behind.takeAll { event, leftMs in
            guard let origin = event.origin, let read = try? shard.read(event: event.raw, origin.source) else {
                return shard.mistake("an event to be parked that cannot be read again")
            }
            let record = ReceivedRecord(content: .event(read, raw: event.raw), origin: origin)
            _ = park(record, read, event.raw, .behind, dueMs: shard.steadyMs &+ leftMs)
        }
        parking.refused.takeAll { record, _ in
            guard case .event(let event, let raw) = record.content, let app = apps[event.app] else { return }
            if let sendAtMs = event.sendAtMs, sendAtMs > shard.nowMs { return refuseScheduled(record, raw) }
            beginEvent(event, raw, of: app, record.origin)
        }
        parking.written.takeAll(ends.release)
        parking.stayed.takeAll { event, open in
            if !event.staysUnsettled { fanOut.start(open, of: event) }
            ends.release(event)
        }
        parking.due.takeAll(beginParked)
    }

    /// The broker will never keep a scheduled message, and it must not be sent before its time.
    private func refuseScheduled(_ record: ReceivedRecord, _ raw: [UInt8]) {
        let why = BadRecord(
            .tooLong, "a scheduled message that the brokers refuse in carillon.parked: see max.message.bytes",
            at: "$.push.send_at_ms")
        reject(
            RejectedRecord(
                why: why, origin: record.origin, topic: intakes.events.topic(of: record.origin.partition),
                offset: record.origin.source.offset, key: record.key, value: raw), intakes.events)
    }

    /// A parked record is due.
    private func beginParked(_ work: ParkedWork) {
        var origin = EventJob.Origin(partition: work.partition, place: work.place, source: work.record.source)
        do throws(BadRecord) {
            let event = try parking.event(of: work)
            // A scheduled message counts as one that came at its time.
            if let sendAtMs = event.sendAtMs { origin.source.kafkaMs = max(origin.source.kafkaMs, sendAtMs) }
            guard let app = apps[event.app], beginEvent(event, work.record.raw, of: app, origin, parked: work) else {
                throw BadRecord(.unknownKind, "not a parked record of this version")
            }
        } catch {
            // For example, its app is no longer served. Its other recipients find the same.
            if parking.reject(work) == .kept { return }
            let intake = intakes.userState
            reject(
                RejectedRecord(
                    why: error, origin: origin, topic: intake.consumer.topics[work.partition.topic], offset: -1,
                    key: Array(work.record.key.utf8), value: work.record.raw), intake)
        }
    }

    /// - Returns: false for a user-state record, which is not fanned out.
    @discardableResult
    func beginEvent(
        _ event: Event, _ raw: [UInt8], of app: AppContext, _ origin: EventJob.Origin, parked: ParkedWork? = nil
    ) -> Bool {
        let job: EventJob
        switch event.body {
        case .userState: return false
        case .message(let message):
            job = EventJob(message, of: event, app: app, raw: raw, origin: origin, parked: parked)
        case .liveActivity(let activity):
            job = EventJob(activity, of: event, app: app, raw: raw, origin: origin, parked: parked)
        }
        fanOut.begin(job)
        return true
    }

    /// Once a second: parks work that waits too long for memory.
    func parkWhatWaits() {
        let full = shard.limits.isShared ? intakes.events.fullPartitions : []
        // The app with most of the work; the others' continues.
        let most = full.isEmpty ? nil : apps.values.max { $0.inHand.events < $1.inHand.events }
        let fullOfMost = most.map { FullPartitions(partitions: full, app: $0) }
        sender.parkWhatWaits(fullOfMost)
        if let fullOfMost { waits.parkQueued(fullOfMost.contain) }
    }

    /// Ten times a second: begins due records, if there is room and their app's state allows it.
    func beginDue(mayBegin: Bool) {
        let now = shard.nowNanos
        let hasRoom = room.isThere
        let isHeld = intakes.events.isHeld && !hasRoom
        for app in apps.values {
            app.inHand.noteWaiting(pushesAhead: app.pushesAhead, isHeld: isHeld, shard.limits, nowNanos: now)
            for client in app.clients { client.probesBegun = 0 }
        }
        guard hasRoom, mayBegin, !intakes.events.isClosing else { return }
        parking.beginDue(atMost: shard.limits.parkedPerLook) { record in mayBeginNow(record) }
    }

    /// Whether acks for the record may not be applied yet: user state waits while Redis takes no writes.
    private func mayAckBeUnread(_ record: ParkedRecord) -> Bool {
        let lateNanos = UInt64(max(0, shard.steadyMs &- record.dueMs)) &* 1_000_000
        return waits.mayAckBeUnread(shard.nowNanos &- min(lateNanos, shard.nowNanos))
    }

    /// Whether room, its app's state and the end of its wait let a due record begin. If the record's client has a problem, it counts
    /// as a probe.
    private func mayBeginNow(_ record: ParkedRecord) -> Bool {
        guard let app = apps[record.app] else { return true }
        guard app.inHand.hasRoomAgain(shard.limits, pushesAhead: app.pushesAhead) else { return false }
        if record.process == shard.processMark {
            let isActivity = record.id.hasPrefix(PairKind.liveActivity.rawValue)
            let key = ConversationKey(record.app, isActivity ? "" : record.conversation)
            if shard.conversations.contains(key.hash) { return false }
        }
        if record.cause == .unclaimed, mayAckBeUnread(record) { return false }
        if let uid = record.uid, !shard.unstoredChanges.isEmpty,
            shard.unstoredChanges.contains(UnstoredChanges.user(record.app, uid))
        {
            return false
        }
        if record.cause == .rate, app.paced.count > shard.limits.parkedPerLook { return false }
        guard let client = record.client.flatMap(app.client(named:)),
            client.isInTrouble(shard.limits, nowNanos: shard.nowNanos)
        else { return true }
        client.probesBegun += 1
        return client.apns.queued + client.probesBegun <= shard.limits.probesMax
    }

    /// Bad records go to the dead-letter topic with reason and place, and reading continues (contract section 0).
    func reject(_ record: RejectedRecord, _ intake: Intake) {
        recorder.writeDeadLetter(record, tag: userStates.begin(rejected: record.origin, intake))
    }
}

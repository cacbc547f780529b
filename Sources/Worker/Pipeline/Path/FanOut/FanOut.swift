// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore
import Redis

/// From an event to its recipients: given uids, or the members of a group page by page, as far as there is room.
///
/// Records of one conversation are fanned out one after another, so that their recipients begin in the records' order.
/// Started recipients are in `candidates`, events with a completely started audience in `fullyStarted`.
final class FanOut {
    let candidates = Tray<RecipientJob>()
    let fullyStarted = Tray<EventJob>()
    /// Events that are parked behind an earlier one of their conversation, with its due time.
    let behind = Tray<(event: EventJob, leftMs: Int64)>()
    let shard: ShardContext
    let work: WorkTable
    let planner: Planner
    /// Events with an incompletely started audience, in order of arrival.
    var open: [EventJob] = []
    /// The same for chunks of large groups, which are read separately.
    private var chunks: [EventJob] = []
    /// Chunks with undecided members.
    private var undecidedChunks: [WorkRef] = []
    private var bulkBound = BulkBound()
    private var nextOrder: UInt64 = 0
    var pages: UInt = 0

    init(_ shard: ShardContext, _ work: WorkTable, planner: Planner) {
        self.shard = shard
        self.work = work
        self.planner = planner
    }

    /// Few audiences wait for room. Large groups that wait for their division delay only later events of their
    /// conversations; more of them are allowed, within a bound.
    var hasRoom: Bool {
        let planned = open.count { $0.plan != nil }
        return open.count - planned < shard.limits.expandingMax && planned < shard.limits.plannedMax
    }

    var hasOpen: Bool { !open.isEmpty || !chunks.isEmpty }

    /// An app that may start no recipients does not delay the chunks of others, up to a bound.
    var hasRoomForChunks: Bool {
        if chunks.count < shard.limits.openChunksMax { return true }
        return chunks.count < shard.limits.expandingMax
            && chunks.count { $0.app.inHand.hasRoomAgain(shard.limits) } < shard.limits.openChunksMax
    }

    /// Members of large groups between their first read and their claim. Postponed members do not count, because their
    /// Redis node may be one of many: they delay nobody with keys on other nodes.
    var undecidedOfChunks: Int {
        undecidedChunks.reduce(0) { sum, ref in sum + (work.event(ref).map { Int($0.undecided - $0.postponed) } ?? 0) }
    }

    /// Number of further members that may start.
    var bulkRoom: Int {
        undecidedChunks.removeAll { work.event($0).map { $0.undecided == 0 && $0.audience.isEmpty } ?? true }
        return bulkBound.room(undecided: undecidedOfChunks, shard.limits, nowNanos: shard.nowNanos)
    }

    /// Whether members of large groups wait for their lane's share.
    var isBoundByLane: Bool { !chunks.isEmpty && bulkRoom != .max }

    /// Groups being divided; the others wait.
    private var plans = 0
    private static let plansMax = 4

    /// The recipients that may be started now.
    struct Room {
        /// Few enough pushes wait for APNs that a group's members may start.
        var isAPNsFree: Bool
        var recipients: Int
        /// Maximum for members of chunks.
        var ofChunks: Int
    }

    /// Starts with an event that was just read.
    func begin(_ event: EventJob) {
        work.insert(event)
        shard.statistics.begin(event)
        event.begunNanos = shard.nowNanos
        if let waits = shard.waits, let source = event.origin?.source, event.chunkPart == nil {
            let waitedMs = UInt64(shard.latencyMs(sinceKafkaMs: source.kafkaMs))
            waits.took(.kafka, event.lane, nanos: waitedMs &* 1_000_000)
        }
        if event.hasManyRecipients, event.chunkPart == nil {
            event.isExpanding = true
            event.app.inHand.expanding += 1
        }
        if event.isRevoke { noteRevoked(event) }
        if !event.audience.isUnread, event.mayUseGroupMarks, shard.batchesAcrossUsers { noteTry(of: event) }
        if event.isRevoke || event.isScheduled {
            // A scheduled message stored its own note when it came.
            if event.isRevoke || event.hasMembers { readOriginal(of: event) }
        } else if let collapseID = event.content?.givenCollapseID {
            // Best effort: if it is lost with the connection, a revoke appears next to its message instead of replacing
            // it.
            try? shard.store.keepOriginal(
                app: event.app.id, msgID: event.msgID, KeptOriginal(collapseID: collapseID),
                expireAtMs: event.expiresAtMs, nowMs: shard.nowMs, tag: Tag.noteBits)
        }
        if event.fanOutPhase == .ready { readParkedIfShared(event) }
        if event.chunkPart == nil {
            open.append(event)
            bulkBound.note(event.lane, nowNanos: shard.nowNanos)
        } else {
            chunks.append(event)
            undecidedChunks.append(event.ref)
        }
        if event.fanOutPhase == .ready, event.isForNobody(nowMs: shard.nowMs) { readTries(of: event) }
    }

    private func noteRevoked(_ event: EventJob) {
        guard event.hasManyRecipients, let target = event.subject.revoke?.targetMsgID else { return }
        try? shard.store.noteRevoked(
            app: event.app.id, target: target, seconds: shard.marksSeconds(event.subject), tag: Tag.noteBits)
    }

    /// Notes which try of the event is the first before any member is read.
    func noteTry(of event: EventJob) {
        let note = event.groupMarkNote ?? Int64.random(in: 1...StateKeys.numberMax, using: &shard.random)
        do throws(RedisFault) {
            try shard.store.beginGroupMarks(
                app: event.app.id, event.subject, note: note, seconds: shard.marksSeconds(event.subject),
                tag: Tag.noteBits)
            if shard.batchesAcrossUsers, event.mayUseGroupMarks {
                event.groupMarkNote = note
            }
        } catch {
            // Other tries are unknown: each member has its own mark.
        }
    }

    /// Starts recipients of waiting events while there is room: events with one recipient first, then groups, then
    /// chunks of large groups, each lane oldest first. A waiting lane has its share of the room, whatever the others
    /// bring.
    func start(_ room: Room) {
        if !hasOpen { return }
        // With little room nothing is reserved: single recipients come first.
        let isScarce = room.recipients < Self.scarceRoom
        func share(_ lane: PushLane) -> Int { shard.limits.lanes.part(of: room.recipients, for: lane) }
        let forChunks = chunks.isEmpty || isScarce ? 0 : min(room.ofChunks, share(.bulk))
        let isGroupOpen = open.contains(where: \.hasManyRecipients)
        let forGroups = isGroupOpen && !isScarce ? share(.group) : 0
        var left = room
        left.recipients -= forChunks + forGroups
        if isGroupOpen { start(&open, &left) { !$0.hasManyRecipients } }
        left.recipients += forGroups
        start(&open, &left) { _ in true }
        left.recipients = min(left.recipients + forChunks, room.ofChunks)
        let before = left.recipients
        start(&chunks, &left) { _ in true }
        bulkBound.start(before - left.recipients, nowNanos: shard.nowNanos)
    }

    private static let scarceRoom = 16

    private func start(_ events: inout [EventJob], _ room: inout Room, _ isOfLane: (EventJob) -> Bool) {
        var rest: [EventJob] = []
        // Their later events of the same conversations wait behind them.
        var waiting: Set<ConversationKey> = []
        for (place, event) in events.enumerated() {
            if room.recipients <= 0 {
                rest.append(contentsOf: events[place...])
                break
            }
            let mustWait = !waiting.isEmpty && waiting.contains(event.conversationKey)
            if mustWait || !isOfLane(event) || !startPage(of: event, &room) {
                rest.append(event)
                if !mustWait { waiting.insert(event.conversationKey) }
            }
        }
        events = rest
    }

    /// - Returns: true if the event's audience is completely started.
    private func startPage(of event: EventJob, _ room: inout Room) -> Bool {
        guard event.fanOutPhase == .ready else { return false }
        if event.plan != nil { return plan(event) }
        if !event.wasTried, event.isForNobody(nowMs: shard.nowMs) {
            readTries(of: event)
            return false
        }
        if event.audience.hasLevels, !event.audience.isPageDone,
            !room.isAPNsFree || event.app.inHand.blockedNanos != nil
        {
            return false
        }
        while !event.audience.isPageDone {
            // Chunks leave half of the app's share to its other events.
            let hasRoom =
                event.chunkPart == nil
                ? event.app.inHand.hasRoom(shard.limits) : event.app.inHand.hasRoomAgain(shard.limits)
            guard room.recipients > 0, hasRoom else { return false }
            guard let member = event.audience.pop(), isWanted(member.uid, by: event) else { continue }
            room.recipients -= 1
            start(event, uid: member.uid, level: member.level)
        }
        if event.audience.wantsPage {
            readPage(of: event)
            return false
        }
        startForNobodyIfDue(event)
        endAudience(event)
        return true
    }

    /// - Returns: true if the broker has all chunks of the group. Until then later events of the conversation wait, so
    ///   that their chunks come after these whatever happens to a record in transit.
    private func plan(_ event: EventJob) -> Bool {
        guard planner.hasRoom, beginPlan(of: event) == .goesOn else { return false }
        planner.takePage(of: event) { uid in
            guard isWanted(uid, by: event) else { return false }
            event.hasRecipients = true
            return true
        }
        if event.audience.wantsPage {
            readPage(of: event)
            return false
        }
        planner.finish(event)
        guard event.plan?.unackedCount == 0 else { return false }
        startForNobodyIfDue(event)
        endAudience(event)
        return true
    }

    /// Begins to divide the group, unless the maximum number of groups is being divided.
    private func beginPlan(of event: EventJob) -> Passage {
        if event.plan?.isUnderWay ?? false { return .goesOn }
        guard plans < Self.plansMax else { return .kept }
        plans += 1
        event.plan?.isUnderWay = true
        return .goesOn
    }

    /// Members of a chunk that the broker refused: they are processed here.
    func start(_ members: [MemberPage.Member], of event: EventJob) {
        event.restoreContent(shard.reader)
        for member in members { start(event, uid: member.uid, level: member.level) }
    }

    func endAudience(_ event: EventJob) {
        if event.isExpanding {
            event.isExpanding = false
            event.app.inHand.expanding -= 1
        }
        if event.plan?.isUnderWay ?? false {
            event.plan?.isUnderWay = false
            plans -= 1
        }
        fullyStarted.append(event)
    }

    /// Recipients that the broker refused to park: they stay in memory.
    func start(_ open: [ParkedRecord], of event: EventJob) {
        event.restoreContent(shard.reader)
        for record in open {
            if let uid = record.uid { start(event, uid: uid, level: nil, staying: record) }
        }
    }

    private func start(_ event: EventJob, uid: String, level: MuteLevel?, staying: ParkedRecord? = nil) {
        let candidate = Candidate(uid: uid, groupLevel: level, order: nextOrder)
        nextOrder &+= 1
        let job = RecipientJob(event: event, uid: uid, candidate: candidate)
        if let record = staying ?? event.parked?.record { job.goOn(from: record, steadyMs: shard.steadyMs) }
        if staying != nil { job.flags.insert(.staysInMemory) }
        work.insert(job)
        event.hasRecipients = true
        event.undecided += 1
        event.useContent()
        candidates.append(job)
    }

    /// All recipients are started: one record with an empty uid if there was none, or if some token has no owner.
    private func startForNobodyIfDue(_ event: EventJob) {
        if event.audience.hasUnownedTokens {
            startForNobody(event, .noToken)
        } else if !event.hasRecipients, event.mayBeForNobody {
            startForNobody(event, .noRecipients)
        }
    }

    /// One record with an empty uid (contract section 3).
    func startForNobody(_ event: EventJob, _ reason: Reason) {
        event.audience.abandon()
        event.reasonForNobody = reason
        start(event, uid: "", level: nil)
    }

    /// The sender and excluded users are always left out and get no result (contract, step 4).
    private func isWanted(_ uid: String, by event: EventJob) -> Bool {
        event.message?.read { $0.isMeant(for: uid) } ?? true
    }

    /// These events' partitions go to another owner, which starts the remaining recipients.
    func handBack(_ isGoing: (EventJob) -> Bool) {
        behind.removeAll { isGoing($0.event) }
        let gone = (open + chunks).filter(isGoing)
        if gone.isEmpty { return }
        open.removeAll(where: isGoing)
        chunks.removeAll(where: isGoing)
        for event in gone {
            event.isHandedBack = true
            event.audience.abandon()
            endAudience(event)
        }
    }
}

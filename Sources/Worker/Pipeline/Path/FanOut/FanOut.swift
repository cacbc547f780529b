// SPDX-License-Identifier: Apache-2.0
import APNs
import Payload
import PushCore
import Redis
import Telemetry

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
    private var notes: OriginalNotes
    private var nextOrder: UInt64 = 0
    var pages: UInt = 0

    init(_ shard: ShardContext, _ work: WorkTable, planner: Planner) {
        self.shard = shard
        self.work = work
        self.planner = planner
        notes = OriginalNotes(shard)
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
            notes.keep(event, collapseID)
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
    private func noteTry(of event: EventJob) {
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

    private func endAudience(_ event: EventJob) {
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
    private func startForNobody(_ event: EventJob, _ reason: Reason) {
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
            event.staysUnsettled = true
            event.audience.abandon()
            endAudience(event)
        }
    }

    // MARK: Owners
    // The recipients of a message to tokens: the tokens' owners (contract section 2, `to.tokens`).

    private func readOwners(of event: EventJob, _ tokens: ArraySlice<String>) {
        let page = OwnerPage(count: tokens.count)
        event.fanOutPhase = .readingOwners(page)
        for (place, token) in tokens.enumerated() {
            do throws(RedisFault) {
                try shard.store.owner(app: event.app.id, token: token, tag: event.tag(.tokenOwner, place))
            } catch {
                if page.failed() { took(page, of: event) }
            }
        }
    }

    private func didReadOwner(_ tag: Tag, _ reply: borrowing RedisReply) {
        guard let event = work.event(tag.ref), case .readingOwners(let page) = event.fanOutPhase else {
            return shard.noteLate()
        }
        let owner = OwnerReply(reply).flatMap { $0.isBound ? $0.uid : nil }
        if page.answered(Int(tag.index), owner) { took(page, of: event) }
    }

    /// A record of an owner that can never be read is none.
    private func didFailOwner(_ tag: Tag, isAbsent: Bool) {
        guard let event = work.event(tag.ref), case .readingOwners(let page) = event.fanOutPhase else {
            return shard.noteLate()
        }
        let isLast = isAbsent ? page.answered(Int(tag.index), nil) : page.failed()
        if isLast { took(page, of: event) }
    }

    private func took(_ page: OwnerPage, of event: EventJob) {
        if page.hasFailed { return retryLater(event) }
        event.didRead()
        event.audience.take(owners: page.uids)
    }

    // MARK: Reads
    // The reads that an event needs before its recipients begin, one after another. `EventJob.fanOutPhase` names the present one.

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        if tag.question == .tokenOwner { return didReadOwner(tag, reply) }
        if tag.question == .keptOriginal { return notes.didStore(tag.ref) }
        guard let event = reading(tag) else { return shard.noteLate() }
        switch tag.question {
        case .members: didReadMembers(event, reply)
        case .groupSize: didReadSize(event, reply.int64)
        case .original: didReadKept(event, KeptOriginal(reply))
        case .originalMarks: didReadOriginal(event, StateStore.hasGroupMarks(reply) ? .known(nil) : .unknown)
        case .tries: didReadTries(event, TryQuestion(rawValue: Int(tag.index)), isThere: !reply.isNull)
        default: didReadParked(event, StateStore.parkedNote(reply))
        }
    }

    func didFail(_ tag: Tag, _ fault: RedisFault, isAbsent: Bool) {
        if tag.question == .tokenOwner { return didFailOwner(tag, isAbsent: isAbsent) }
        if tag.question == .keptOriginal { return notes.didFail(tag.ref, fault) }
        guard let event = reading(tag) else { return shard.noteLate() }
        switch tag.question {
        case .members where fault.isLasting:
            endMembers(event, fault, key: "group \(event.app.id):\(event.conversationID)")
        case .groupSize where isAbsent: didReadSize(event, nil)
        case .original where isAbsent: didReadKept(event, nil)
        case .originalMarks where isAbsent: didReadOriginal(event, .unknown)
        case .tries where isAbsent:
            didReadTries(event, TryQuestion(rawValue: Int(tag.index)), isThere: false)
        case .parkedBefore where isAbsent: didReadParked(event, nil)
        default: retryLater(event)
        }
    }

    /// The event that waits for this answer; nil if it has ended or gone on.
    private func reading(_ tag: Tag) -> EventJob? {
        guard let event = work.event(tag.ref) else { return nil }
        let phase: EventJob.FanOutPhase =
            switch tag.question {
            case .members: .readingPage
            case .groupSize: .readingSize
            case .original, .originalMarks: .readingOriginal
            case .tries: .readingTries
            default: .readingParked
            }
        return event.fanOutPhase == phase ? event : nil
    }

    /// Without an answer it is asked again later.
    private func ask(
        _ event: EventJob, _ phase: EventJob.FanOutPhase, _ send: (StateStore) throws(RedisFault) -> Void
    ) {
        event.fanOutPhase = phase
        do throws(RedisFault) { try send(shard.store) } catch { retryLater(event) }
    }

    func retryLater(_ event: EventJob) {
        event.failures += 1
        shard.timers.schedule(.retryRead(event.ref), dueNanos: shard.retryNanos(failures: Int(event.failures)))
    }

    func retryRead(_ ref: WorkRef) {
        guard let event = work.event(ref) else { return shard.noteLate() }
        switch event.fanOutPhase {
        case .readingPage, .readingOwners: if !parkForChanges(event) { readPage(of: event) }
        case .readingSize: readSize(of: event)
        case .readingOriginal: readOriginal(of: event)
        case .readingParked: readParked(event)
        case .readingTries: readTries(of: event)
        case .ready: shard.noteLate()
        }
    }

    // MARK: Pages

    private func readPage(of event: EventJob) {
        if isBeforeChanges(event) {
            event.fanOutPhase = .readingPage
            return retryLater(event)
        }
        // Again after a fault: the note may be lost with the connection.
        if event.audience.isUnread { noteTry(of: event) }
        if let tokens = event.audience.tokenPage { return readOwners(of: event, tokens) }
        let (app, count) = (event.app.id, event.plan == nil ? shard.limits.memberPage : ChunkPlan.membersMax)
        ask(event, .readingPage) { (store) throws(RedisFault) in
            if let activity = event.audience.activity {
                try store.activityUsers(
                    app: app, activityID: activity, after: event.audience.lastUser, count: count,
                    tag: event.tag(.members))
            } else if let group = event.audience.group,
                let cursor = event.audience.beginPage(store.memberServer(app: app, group: group))
            {
                try store.members(app: app, group: group, cursor: cursor, count: count, tag: event.tag(.members))
            }
        }
    }

    private func didReadMembers(_ event: EventJob, _ reply: borrowing RedisReply) {
        if event.audience.activity != nil {
            let users = StateStore.activityUsers(reply)
            event.audience.take(users: users, isLast: users.count < shard.limits.memberPage)
            return event.didRead()
        }
        guard let page = MemberPage(reply) else { return retryLater(event) }
        event.didRead()
        if page.emptyCount > 0 { shard.metrics.emptyMembers.add(UInt64(page.emptyCount)) }
        pages &+= 1
        let isForgotten = TestBreak.isOn(.forgetPage) && pages.isMultiple(of: 2)
        event.audience.take(isForgotten ? [] : page.members, cursor: page.cursor)
        // No recipient is started before the number of members is known.
        if event.audience.wantsPage, !event.isSized { readSize(of: event) }
    }

    private func readSize(of event: EventJob) {
        guard let group = event.audience.group else { return shard.mistake("the size is read of no group") }
        ask(event, .readingSize) { (store) throws(RedisFault) in
            try store.memberCount(app: event.app.id, group: group, tag: event.tag(.groupSize))
        }
    }

    private func didReadSize(_ event: EventJob, _ count: Int64?) {
        event.didRead()
        event.isSized = true
        if planner.divides(members: Int(clamping: count ?? 0), of: event) { event.plan = ChunkPlan() }
    }

    /// The members' key can never be read: one record says so.
    private func endMembers(_ event: EventJob, _ fault: RedisFault, key: String) {
        shard.writes.report(
            fault, "the members of a group cannot be read: nobody gets the message", key: key,
            nowNanos: shard.nowNanos)
        event.fanOutPhase = .ready
        startForNobody(event, .noToken)
    }

    // MARK: Earlier tries

    /// The event has expired before its recipients were read here. If an earlier try read them, each has an outcome of its own, and
    /// those that it finished count by their marks. Otherwise the event has one record for nobody, as it has if an earlier try
    /// began that record.
    private func readTries(of event: EventJob) { ask(.note, event) }

    private enum TryQuestion: Int {
        /// Did a try begin to read the recipients?
        case note
        /// Did one begin the record for nobody?
        case nobody
    }

    private func ask(_ question: TryQuestion, _ event: EventJob) {
        let (app, id, tag) = (event.app.id, event.subject.id, event.tag(.tries, question.rawValue))
        ask(event, .readingTries) { (store) throws(RedisFault) in
            switch question {
            case .note: try store.readGroupMarks(app: app, uid: "", id: id, tag: tag)
            case .nobody: try store.readMark(app: app, uid: "", kind: event.subject.kind, id: id, tag: tag)
            }
        }
    }

    private func didReadTries(_ event: EventJob, _ question: TryQuestion?, isThere: Bool) {
        if event.staysUnsettled { return shard.noteLate() }
        if question == .note, isThere { return ask(.nobody, event) }
        event.didRead()
        if question == .nobody, !isThere {
            event.wasTried = true
        } else {
            startForNobody(event, .expired)
        }
    }

    // MARK: Parked conversations

    /// An app over its share may have parked an earlier event of the conversation.
    private func readParkedIfShared(_ event: EventJob) {
        if shard.limits.isShared, event.hasManyRecipients, event.parked == nil, event.chunkPart == nil {
            readParked(event)
        }
    }

    /// Reads whether an earlier event of the conversation is parked with all its recipients.
    private func readParked(_ event: EventJob) {
        ask(event, .readingParked) { (store) throws(RedisFault) in
            try store.readParked(
                app: event.app.id, conversation: event.parkedConversation, tag: event.tag(.parkedBefore))
        }
    }

    private func didReadParked(_ event: EventJob, _ note: ParkedNote?) {
        event.didRead()
        guard let leftMs = note?.leftMs(nowMs: shard.sharedMs), event.raw.count <= ParkedRecord.rawMax,
            open.contains(where: { $0 === event })
        else { return }
        open.removeAll { $0 === event }
        // It is settled once the broker has the parked record.
        event.staysUnsettled = true
        event.audience.abandon()
        endAudience(event)
        behind.append((event, leftMs))
    }

    // MARK: Unstored changes

    /// Its recipients follow from tokens, or from an activity, of which a change is read and not stored.
    private func isBeforeChanges(_ event: EventJob) -> Bool {
        let (changes, app) = (shard.unstoredChanges, event.app.id)
        if changes.isEmpty { return false }
        if let tokens = event.audience.tokenPage {
            return tokens.contains { changes.contains(UnstoredChanges.token(app, $0)) }
        }
        return event.audience.activity.map { changes.contains(UnstoredChanges.activity(app, $0)) } ?? false
    }

    /// After a few tries the event is parked, unless some of its recipients have begun.
    private func parkForChanges(_ event: EventJob) -> Bool {
        guard isBeforeChanges(event), event.failures >= Self.changeTriesMax, !event.hasRecipients,
            event.raw.count <= ParkedRecord.rawMax, open.contains(where: { $0 === event })
        else { return false }
        event.didRead()
        open.removeAll { $0 === event }
        if var record = event.parked?.record {
            record.dueMs = shard.steadyMs &+ Self.changesMs
            event.parting = [record]
        } else {
            event.staysUnsettled = true
            behind.append((event, Self.changesMs))
        }
        event.audience.abandon()
        endAudience(event)
        shard.requestTurn()
        return true
    }

    private static let changeTriesMax = 3
    private static let changesMs: Int64 = 5_000

    // MARK: Revokes

    /// Redis may take notes for revokes that it did not take before.
    func noteAgain() { notes.sendAgain() }

    /// A revoke replaces its original's alert, so it needs the original's collapse id. A group's scheduled message may have been
    /// revoked for members that came later.
    func readOriginal(of event: EventJob) {
        let target = event.subject.revoke?.targetMsgID ?? event.msgID
        ask(event, .readingOriginal) { (store) throws(RedisFault) in
            try store.readOriginal(app: event.app.id, msgID: target, tag: event.tag(.original))
        }
    }

    /// Its members may be marked in their common key, where no claim looks.
    private func didReadKept(_ event: EventJob, _ kept: KeptOriginal?) {
        guard event.isRevoke else {
            event.isRevokedBefore = kept?.isRevoked ?? false
            event.didRead()
            return readParkedIfShared(event)
        }
        if let kept {
            event.isRevokedBefore = kept.waits(nowMs: shard.nowMs)
            if event.isRevokedBefore { noteRevokedBefore(event, kept) }
            return didReadOriginal(event, .known(kept.collapseID))
        }
        guard event.hasMembers, !shard.store.client.isCluster, let target = event.subject.revoke?.targetMsgID else {
            return didReadOriginal(event, .unknown)
        }
        ask(event, .readingOriginal) { (store) throws(RedisFault) in
            try store.countGroupMarks(app: event.app.id, id: target, tag: event.tag(.originalMarks))
        }
    }

    /// Members who join the group before the message's time have no mark of the revoke. The note tells them.
    private func noteRevokedBefore(_ event: EventJob, _ kept: KeptOriginal) {
        guard event.hasMembers, event.audience.group != nil || event.audience.isChunk,
            let target = event.subject.revoke?.targetMsgID, !kept.isRevoked, let sendAtMs = kept.sendAtMs
        else { return }
        var revoked = kept
        revoked.isRevoked = true
        // If it is lost, those who join get the message.
        try? shard.store.keepOriginal(
            app: event.app.id, msgID: target, revoked, expireAtMs: sendAtMs &+ InputLimit.dayMs, nowMs: shard.nowMs,
            tag: Tag.noteBits)
    }

    private func didReadOriginal(_ event: EventJob, _ original: CollapseID.Original) {
        event.didRead()
        event.original = original
        readParkedIfShared(event)
    }
}

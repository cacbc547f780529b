// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import PushCore
import Redis
import Telemetry

/// Reads the inputs of a decision: presence with its gateways' leases, settings, tokens, mute, read mark, the group's
/// level.
///
/// Plain pipelined reads, all of a candidate at once. Completely read candidates are in `known`.
final class Lookup {
    let known = Tray<RecipientJob>()
    let shard: ShardContext
    let work: WorkTable
    private let decider: Decider
    var leases = LeaseCache()
    private var leaseQueries: SlotTable<LeaseQuery>
    /// The open query of each gateway.
    private var leaseQueryOf: [UTF8Key: LeaseQuery] = [:]
    /// Recipients without an answer from Redis; they are read again together, in order.
    private var postponed: [RecipientJob] = []
    /// When the first of them is due; nil if none waits.
    private var postponedDueNanos: UInt64?
    private var oversized = OversizedKeys()
    private var userGate = ReadGate()
    private var presenceGate = ReadGate()
    private var order = OrderKeeper()
    /// Conversations with candidates that wait for each other.
    var openLines: Int { order.count }
    /// Own marks by one read, and members' marks by one read of their common key.
    let marks: Batches<Void, RecipientJob>
    let groupMarks: Batches<EventJob, RecipientJob>

    init(_ shard: ShardContext, _ work: WorkTable) {
        self.shard = shard
        self.work = work
        decider = Decider(shard)
        leaseQueries = SlotTable(capacity: shard.limits.recipientsMax)
        marks = Batches(capacity: shard.limits.recipientsMax)
        groupMarks = Batches(capacity: shard.limits.recipientsMax)
    }

    // MARK: Reading

    /// Reads a recipient for a decision. It waits while Redis is away.
    func read(_ job: RecipientJob) {
        guard let candidate = job.candidate else { return shard.noteLate() }
        if !postponed.isEmpty, !shard.store.client.isReady { return postpone(job) }
        if pass(job, to: .reading) == .kept { return }
        // On a cluster the members' common mark is on a node of its own: a later message of the conversation may be
        // answered first.
        if job.event.readsGroupMark, shard.store.client.isCluster { keepPlace(job, at: .reading) }
        shard.waits?.took(.start, job.event.lane, nanos: shard.nowNanos &- job.event.begunNanos)
        isLikelyDenied(job, candidate) ? readDenied(job, candidate) : readAll(job, candidate)
    }

    private func readAll(_ job: RecipientJob, _ candidate: Candidate) {
        candidate.beginReading(.reading)
        job.endWaiting()
        job.readNanos = shard.nowNanos
        let event = job.event
        let app = event.app.id
        let uid = job.uid
        // The member scan gave the group's level; for a given uid, and in a later round, it must be read.
        let group = event.hasMembers && candidate.recipient.groupLevel == nil ? event.conversationID : nil
        let activity = event.updatedActivityID
        candidate.plainPast = mayClaimPlainly(job) ? 0 : nil
        // Flush first: a recipient that skips the mark read must not overtake.
        if candidate.plainPast == nil { sendGathered() }
        candidate.answers = Answers(3 + (group == nil ? 0 : 1) + (activity == nil ? 0 : 1))
        // Also for recipients that the script claims, because it does not read the common key.
        let asksMark = candidate.plainPast != nil || (event.readsGroupMark && job.devices.isEmpty)
        if asksMark { candidate.answers.expect() }
        ask(job) { (store) throws(RedisFault) in
            try store.readConversation(
                app: app, uid: uid, conversation: event.conversationID, tag: job.tag(.conversation))
        }
        let bucket = ReadGate.bucket(uid)
        askWhole(job, .user, bucket)
        askWhole(job, .presence, bucket)
        if asksMark { askMark(job, candidate) }
        if let group {
            ask(job) { (store) throws(RedisFault) in
                try store.readMember(app: app, group: group, uid: uid, tag: job.tag(.group))
            }
        }
        if let activity {
            ask(job) { (store) throws(RedisFault) in
                try store.activityState(app: app, uid: uid, activityID: activity, tag: job.tag(.activity))
            }
        }
    }

    /// For a member that will probably be denied: neither settings, tokens nor a claim, only facts that can change the
    /// denial: the user's own mute and read mark, a live device, and the mark of an earlier delivery.
    private func readDenied(_ job: RecipientJob, _ candidate: Candidate) {
        candidate.beginReading(.readingDenied)
        job.endWaiting()
        job.readNanos = shard.nowNanos
        candidate.answers = Answers(3)
        let event = job.event
        let app = event.app.id
        let uid = job.uid
        askMark(job, candidate)
        ask(job) { (store) throws(RedisFault) in
            try store.readDenied(
                app: app, uid: uid, conversation: event.conversationID, tag: job.tag(.conversation))
        }
        askWhole(job, .presence, ReadGate.bucket(uid))
    }

    /// The first round of a message: whether it is an ordinary one is known only after all reads.
    private func mayClaimPlainly(_ job: RecipientJob) -> Bool {
        job.event.subject.kind == .message && job.event.digest == nil && job.parking == nil
            && job.firstClaim == .none && !job.isDecided && !job.owesClaim
            && shard.writes.refusal == nil
    }

    /// - Returns: false if the key was found too large less than a minute ago.
    private func admitRead(_ job: RecipientJob, _ question: Question) -> Bool {
        oversized.isEmpty || oversized.admit(job.key(question), nowNanos: shard.nowNanos)
    }

    /// A message that the group's level or the sender denies. There are three exceptions. With `dnd_mode: chain`, a DND
    /// window (part of the settings) may allow a message in spite of the level. A revoke may lower a badge. While Redis
    /// refuses writes, only the full path handles a missing mark.
    private func isLikelyDenied(_ job: RecipientJob, _ candidate: Candidate) -> Bool {
        let event = job.event
        guard !job.isDecided, !job.owesCount, shard.writes.refusal == nil,
            let level = candidate.recipient.groupLevel, event.subject.kind == .message,
            event.digest == nil, event.app.policy.dndMode == .independent,
            event.isSwitchedOff || (level != .unset && level != .all)
        else { return false }
        // A recipient without a mention or force cannot pass its level, so the verdict is not computed twice.
        return event.isWithoutMentionAndForce || decider.denial(of: job, candidate) != nil
    }

    /// Sends one command of the present phase. A command that cannot be sent counts as answered at once.
    func ask(_ job: RecipientJob, _ send: (StateStore) throws(RedisFault) -> Void) {
        do throws(RedisFault) {
            try send(shard.store)
        } catch {
            answered(job, failed: true)
        }
    }

    // MARK: Answers

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        switch tag.question {
        case .marks: if let batch = marks.answered(tag.ref) { didReadMarks(batch, reply) }
        case .groupMarks: if let batch = groupMarks.answered(tag.ref) { didReadGroupMarks(batch, reply) }
        case .lease: didReadLease(tag.ref, epoch: reply.isNull ? nil : reply.int64)
        default: didRead(tag, reply)
        }
    }

    /// One of a recipient's own reads.
    private func didRead(_ tag: Tag, _ reply: borrowing RedisReply) {
        if tag.question == .presence || tag.question == .user { releaseWhole(tag) }
        guard let job = work.recipient(tag.ref), let candidate = job.candidate else { return shard.noteLate() }
        switch tag.question {
        case .presence:
            let emptyCount = RecipientReplies.presence(reply, into: &candidate.recipient)
            if emptyCount > 0 { shard.metrics.emptyDevices.add(UInt64(emptyCount)) }
        case .user: RecipientReplies.user(reply, into: &candidate.recipient)
        case .conversation where candidate.phase == .readingDenied:
            RecipientReplies.denied(reply, into: &candidate.recipient)
        case .conversation:
            candidate.tokenVersion = RecipientReplies.conversation(reply, into: &candidate.recipient)
            if candidate.plainPast != nil { candidate.plainPast = RecipientReplies.past(reply, at: job.event.subject) }
            candidate.areOwnersKnown = KnownOwners.holds(
                reply[4], version: candidate.tokenVersion, reign: shard.reign(of: job))
        case .group: RecipientReplies.member(reply, into: &candidate.recipient)
        case .activity: candidate.activity = ActivityState(reply)
        case .mark: return takeMark(reply, job)
        default: return
        }
        if !oversized.isEmpty { oversized.forget(job.key(tag.question)) }
        answered(job, failed: false)
    }

    /// - Parameter isAbsent: no device is live, no level is set. Other faults are retried.
    func didFail(_ tag: Tag, _ fault: RedisFault, isAbsent: Bool) {
        switch tag.question {
        case .marks: if let batch = marks.answered(tag.ref) { didFailMarks(batch, fault) }
        case .groupMarks: if let batch = groupMarks.answered(tag.ref) { didFailGroupMarks(batch, isAbsent: isAbsent) }
        case .lease: didFailLease(tag.ref, isAbsent: isAbsent)
        default: didFailToRead(tag, fault, isAbsent: isAbsent)
        }
    }

    private func didFailToRead(_ tag: Tag, _ fault: RedisFault, isAbsent: Bool) {
        // Before the next one of the user is read.
        if fault.code == .tooLarge, let job = work.recipient(tag.ref) {
            oversized.note(job.key(tag.question), nowNanos: shard.nowNanos)
        }
        if tag.question == .presence || tag.question == .user { releaseWhole(tag) }
        guard let job = work.recipient(tag.ref), let candidate = job.candidate else { return shard.noteLate() }
        candidate.plainPast = nil
        answered(job, failed: !isAbsent)
    }

    /// The user, message or gateway of a question, for the log; nil if its work has ended.
    func subject(of tag: Tag) -> String? {
        switch tag.question {
        case .lease: leaseQueries.find(tag.ref).map { "gateway \($0.gateway)" }
        case .groupMarks:
            groupMarks.find(tag.ref).map { "message \($0.head.app.id):\($0.head.subject.id)" }
        default: work.recipient(tag.ref).map { "\($0.event.app.id):\($0.uid)" }
        }
    }

    func answered(_ job: RecipientJob, failed: Bool) {
        guard let candidate = job.candidate else { return shard.mistake("an answer to a read without a candidate") }
        if !candidate.answers.take(failed: failed) { return }
        if candidate.answers.hasFailed { return postpone(job) }
        switch candidate.phase {
        case .reading: readLeases(job, candidate)
        case .readingDenied, .readingLeases: known.append(job)
        case .claiming, .readingAcks, .postponed, .waitingForTwin: break
        }
    }

    // MARK: Order

    /// Redis could not answer: the candidate is read again after a pause. Nothing is guessed and nothing is lost.
    func postpone(_ job: RecipientJob) {
        guard let candidate = job.candidate else { return shard.noteLate() }
        stepOut(job)
        candidate.failures += 1
        // Rounded up, so that thousands are read again together.
        let dueNanos = shard.retryNanos(failures: Int(candidate.failures))
        candidate.dueNanos = (dueNanos / Self.postponedStepNanos + 1) * Self.postponedStepNanos
        postponed.append(job)
        if candidate.dueNanos < postponedDueNanos ?? .max { schedulePostponed(candidate.dueNanos) }
    }

    private static let postponedStepNanos: UInt64 = 50_000_000

    private func schedulePostponed(_ dueNanos: UInt64) {
        postponedDueNanos = dueNanos
        shard.timers.schedule(.postponedCandidates, dueNanos: dueNanos)
    }

    /// Its decision waits for something else; later recipients of its user and conversation wait behind it.
    func stepOut(_ job: RecipientJob) {
        guard let candidate = job.candidate else { return shard.mistake("a recipient steps out without a candidate") }
        candidate.phase = .postponed
        job.beginWaiting()
        keepPlace(job, at: .waiting)
    }

    /// A token changed between read and claim, or a likely denial does not hold: reads everything, and later recipients
    /// of its conversation wait.
    func readAgain(_ job: RecipientJob) {
        guard let candidate = job.candidate else {
            return shard.mistake("a recipient is read again without a candidate")
        }
        keepPlace(job, at: .reading)
        readAll(job, candidate)
    }

    /// It has a query with an answer that may come after those for later recipients of its conversation: they wait.
    func keepPlace(_ job: RecipientJob, at step: OrderKeeper.Step) {
        order.stepOut(job.ref, order: job.order, key: job.orderKey, to: step)
    }

    /// Takes the candidate to a step. It is kept behind an earlier candidate of the same user and conversation that is out of
    /// order and not as far.
    func pass(_ job: RecipientJob, to step: OrderKeeper.Step) -> Passage {
        guard !order.isEmpty, let candidate = job.candidate else { return .goesOn }
        let passage = order.pass(job.ref, order: candidate.order, key: job.orderKey, to: step)
        if passage == .kept {
            candidate.phase = .postponed
            job.beginWaiting()
        }
        return passage
    }

    /// The candidate is claimed, or its recipient has ended: recipients behind it continue.
    func passed(_ job: RecipientJob) {
        if order.isEmpty { return }
        let key = job.orderKey
        let next = order.goOn(job.ref, key: key).compactMap(work.recipient).filter { $0.candidate?.phase == .postponed }
        // All of them before the first read: each keeps its place before later ones.
        for job in next { order.stepOut(job.ref, order: job.order, key: key, to: .waiting) }
        for job in next { read(job) }
    }

    /// Reads candidates with an expired pause again in order; all of them when Redis is ready again.
    func readPostponed(evenIfEarly: Bool) {
        if postponed.isEmpty { return }
        let now = shard.nowNanos
        var jobs: [RecipientJob] = []
        var waiting: [RecipientJob] = []
        var nextNanos: UInt64?
        for job in postponed {
            guard work.recipient(job.ref) === job, let candidate = job.candidate, candidate.phase == .postponed else {
                continue
            }
            if evenIfEarly || candidate.dueNanos <= now {
                jobs.append(job)
            } else {
                waiting.append(job)
                nextNanos = min(nextNanos ?? .max, candidate.dueNanos)
            }
        }
        postponed = waiting
        postponedDueNanos = nil
        if let nextNanos { schedulePostponed(nextNanos) }
        jobs.sort { ($0.candidate?.order ?? 0) < ($1.candidate?.order ?? 0) }
        for job in jobs where work.recipient(job.ref) === job && job.candidate?.phase == .postponed { read(job) }
    }

    // MARK: Gate
    // Reads of whole hashes of a user, settings with tokens and presence: a few at once of each user, none of a key that was
    // over the limit a moment ago.

    /// Asks for a user's settings or presence as soon as the gate lets it.
    ///
    /// - Parameter bucket: the user's, `ReadGate.bucket`.
    private func askWhole(_ job: RecipientJob, _ question: Question, _ bucket: UInt8) {
        if !gate(question, { $0.admit(bucket, job.ref) }) { return }
        if !sendWhole(job, question, bucket) { goOn(question, bucket) }
    }

    /// One of these reads is answered, whatever became of its recipient: the next one of its users goes.
    private func releaseWhole(_ tag: Tag) {
        gate(tag.question) { $0.release(tag.index) }
        goOn(tag.question, tag.index)
    }

    private func goOn(_ question: Question, _ bucket: UInt8) {
        while let ref = gate(question, { $0.next(bucket) }) {
            if let job = work.recipient(ref), job.candidate != nil {
                if sendWhole(job, question, bucket) { continue }
            } else {
                gate(question) { $0.release(bucket) }
            }
        }
    }

    /// - Returns: false if nothing was sent because the recipient has its answer.
    private func sendWhole(_ job: RecipientJob, _ question: Question, _ bucket: UInt8) -> Bool {
        guard admitRead(job, question) else {
            gate(question) { $0.release(bucket) }
            answered(job, failed: false)
            return false
        }
        let tag = job.tag(question, Int(bucket))
        do throws(RedisFault) {
            if question == .user {
                try shard.store.readUser(app: job.event.app.id, uid: job.uid, tag: tag)
            } else {
                try shard.store.readPresence(app: job.event.app.id, uid: job.uid, tag: tag)
            }
            return true
        } catch {
            gate(question) { $0.release(bucket) }
            answered(job, failed: true)
            return false
        }
    }

    @inline(__always) @discardableResult
    private func gate<Result>(_ question: Question, _ body: (inout ReadGate) -> Result) -> Result {
        question == .user ? body(&userGate) : body(&presenceGate)
    }

    // MARK: Leases
    // The leases of the gateways on which a candidate has connections.

    private func readLeases(_ job: RecipientJob, _ candidate: Candidate) {
        let now = shard.nowNanos
        candidate.askedNanos = now
        var unknown: [String] = []
        for presence in candidate.recipient.presence
        where presence.state != .off && !unknown.containsSame(presence.gateway)
            && leases.answer(for: presence.gateway, nowNanos: now) == .unknown
        {
            unknown.append(presence.gateway)
        }
        guard !unknown.isEmpty else { return known.append(job) }
        // A candidate with devices elsewhere could be known sooner.
        keepPlace(job, at: .reading)
        candidate.phase = .readingLeases
        candidate.answers = Answers(unknown.count)
        for gateway in unknown { askLease(of: gateway, for: job) }
    }

    private func askLease(of gateway: String, for job: RecipientJob) {
        if let query = leaseQueryOf[UTF8Key(gateway)] {
            query.waiting.append(job.ref)
            return
        }
        let query = LeaseQuery(gateway: gateway)
        query.ref = leaseQueries.insert(query)
        query.waiting.append(job.ref)
        leaseQueryOf[UTF8Key(gateway)] = query
        do throws(RedisFault) {
            try shard.store.lease(gateway, tag: Tag(query.ref, .lease).bits)
        } catch {
            ended(query, failed: true)
        }
    }

    private func didReadLease(_ ref: WorkRef, epoch: Int64?) {
        guard let query = leaseQueries.find(ref) else {
            return shard.mistake("an answer about a lease that nobody asked for")
        }
        leases.store(query.gateway, epoch: epoch, nowNanos: shard.nowNanos)
        ended(query, failed: false)
    }

    private func didFailLease(_ ref: WorkRef, isAbsent: Bool) {
        guard let query = leaseQueries.find(ref) else {
            return shard.mistake("an answer about a lease that nobody asked for")
        }
        if isAbsent { leases.store(query.gateway, epoch: nil, nowNanos: shard.nowNanos) }
        ended(query, failed: !isAbsent)
    }

    private func ended(_ query: LeaseQuery, failed: Bool) {
        leaseQueries.remove(query.ref)
        leaseQueryOf[UTF8Key(query.gateway)] = nil
        for case let job? in query.waiting.map(work.recipient) where job.candidate?.phase == .readingLeases {
            answered(job, failed: failed)
        }
    }

    /// Without a lease or with another epoch, every presence on that gateway is void. Also voids connections without an
    /// ack.
    func voidPresence(of job: RecipientJob, _ candidate: Candidate) {
        leases.apply(to: &candidate.recipient, nowNanos: candidate.askedNanos)
        for suspect in job.silentConnections {
            for index in candidate.recipient.presence.indices
            where candidate.recipient.presence[index].device.isSame(as: suspect.device)
                && candidate.recipient.presence[index].connectionEpoch == suspect.epoch
            {
                candidate.recipient.presence[index].isSuspect = true
            }
        }
    }

    // MARK: Marks
    // The marks of earlier tries: one read for all recipients of a turn, if the server accepts keys of several slots in
    // one call; for a group message's members also in their common key.

    private func askMark(_ job: RecipientJob, _ candidate: Candidate) {
        if job.event.readsGroupMark {
            // In the first try only this key knows the members; and the script reads their own marks.
            let asksOwn =
                job.event.groupMarkNote == nil && (candidate.phase == .readingDenied || candidate.plainPast != nil)
            if asksOwn { candidate.answers.expect() }
            gatherGroupMarks(job)
            if !asksOwn { return }
        }
        askOwnMark(job)
    }

    /// Sends the collected reads; at the end of a turn.
    func sendGathered() {
        sendGroupMarks()
        sendMarks()
    }

    /// Whether the recipient waits for its mark.
    private func isReading(_ job: RecipientJob) -> Bool {
        guard work.recipient(job.ref) === job, let phase = job.candidate?.phase else { return false }
        return phase == .reading || phase == .readingDenied
    }

    private func fail<Head>(_ batch: Batch<Head, RecipientJob>) {
        for job in batch.members where isReading(job) { answered(job, failed: true) }
    }

    func takeMark(_ reply: borrowing RedisReply, _ job: RecipientJob) {
        if let earlier = PairMark.state(reply), job.candidate?.earlierTry != .ended {
            job.candidate?.earlierTry = earlier
            job.candidate?.endedBy = PairMark.counts(reply)
        }
        if !reply.isNull { job.candidate?.plainPast = nil }
        answered(job, failed: false)
    }

    // MARK: One key with the marks of several members

    /// The marks of earlier events are asked for first: Redis answers in order, and so no event overtakes an earlier one.
    private func gatherGroupMarks(_ job: RecipientJob) {
        if let open = groupMarks.open, open.head !== job.event { sendGroupMarks() }
        if groupMarks.open == nil { sendMarks() }
        if groupMarks.add(job, job.event) >= shard.limits.memberPage { sendGroupMarks() }
    }

    private func sendGroupMarks() {
        guard let batch = groupMarks.takeOpen() else { return }
        let event = batch.head
        let fault = groupMarks.ask(batch, .groupMarks) { (tag) throws(RedisFault) in
            try shard.store.readGroupMarks(
                app: event.app.id, event.subject, uids: batch.members.lazy.map(\.uid), tag: tag)
        }
        if fault != nil { didFailGroupMarks(batch, isAbsent: false) }
    }

    private func didReadGroupMarks(_ batch: Batch<EventJob, RecipientJob>, _ reply: borrowing RedisReply) {
        let note = batch.head.groupMarkNote
        let isFirst = note != nil && reply.count > 0 && reply[0].int64 == note
        let isWhole = batch.forEach(in: reply, skipped: 1) { job, mark in
            if !isReading(job) { return }
            // In a later try, or after a fault, there may be a mark of its own.
            let mayHaveOwn = note != nil && (!isFirst || job.candidate?.failures != 0)
            if mayHaveOwn { job.candidate?.plainPast = nil }
            if mayHaveOwn, mark.isNull, askOwnIfDenied(job) == .kept { return }
            takeMark(mark, job)
        }
        if !isWhole { fail(batch) }
    }

    private func didFailGroupMarks(_ batch: Batch<EventJob, RecipientJob>, isAbsent: Bool) {
        for job in batch.members where isReading(job) {
            job.candidate?.plainPast = nil
            if isAbsent, batch.head.groupMarkNote != nil, askOwnIfDenied(job) == .kept { continue }
            answered(job, failed: !isAbsent)
        }
    }

    /// The script reads the own mark of a recipient that it claims; for a denied recipient nothing else would. It waits for
    /// that mark's answer in place of the common key's.
    private func askOwnIfDenied(_ job: RecipientJob) -> Passage {
        guard job.candidate?.phase == .readingDenied else { return .goesOn }
        askOwnMark(job)
        return .kept
    }

    // MARK: Marks of their own

    private func askOwnMark(_ job: RecipientJob) {
        if let open = groupMarks.open, open.head !== job.event { sendGroupMarks() }
        guard shard.batchesAcrossUsers else { return askMarkAlone(job) }
        if marks.add(job, ()) >= shard.limits.claimsPerCall { sendMarks() }
    }

    private func sendMarks() {
        guard let batch = marks.takeOpen() else { return }
        if batch.members.count == 1 { return batch.members.forEach(askMarkAlone) }
        let fault = marks.ask(batch, .marks) { (tag) throws(RedisFault) in
            try shard.store.readMarks(tag: tag) { name in
                for job in batch.members { name(job.event.app.id, job.uid, job.event.subject) }
            }
        }
        if let fault { didFailMarks(batch, fault) }
    }

    private func didReadMarks(_ batch: Batch<Void, RecipientJob>, _ reply: borrowing RedisReply) {
        let isWhole = batch.forEach(in: reply) { job, mark in if isReading(job) { takeMark(mark, job) } }
        if !isWhole { fail(batch) }
    }

    private func didFailMarks(_ batch: Batch<Void, RecipientJob>, _ fault: RedisFault) {
        let meaning = shard.meaning(ofBatch: fault)
        for job in batch.members where isReading(job) {
            switch meaning {
            case .askAlone: askMarkAlone(job)
            case .refused, .failed: answered(job, failed: true)
            }
        }
    }

    private func askMarkAlone(_ job: RecipientJob) {
        let event = job.event
        ask(job) { (store) throws(RedisFault) in
            try store.readMark(
                app: event.app.id, uid: job.uid, kind: event.subject.kind, id: event.subject.id, tag: job.tag(.mark))
        }
    }
}

extension RecipientJob {
    fileprivate var orderKey: OrderKeeper.Key {
        OrderKeeper.key(app: event.app.id, uid: uid, conversation: event.conversationID)
    }

    /// The user's key that a question reads.
    fileprivate func key(_ question: Question) -> OversizedKeys.Key {
        OversizedKeys.key(app: event.app.id, uid: uid, question: question)
    }
}

/// A query for one gateway's lease and the recipients that wait for it.
final class LeaseQuery {
    let gateway: String
    var ref = WorkRef.none
    var waiting: [WorkRef] = []

    init(gateway: String) {
        self.gateway = gateway
    }
}

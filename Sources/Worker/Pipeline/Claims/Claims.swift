import EventLoop
import PushCore
import Redis
import Telemetry

/// Steps 5 and 10 in one atomic step of Redis, with the last facts that step 15 looks at: the claim, and whose the tokens are
/// where that is not known.
///
/// The usual message is claimed by plain commands (`PlainClaim`), all else by the script: of a message to one recipient by a
/// call of its own, of a message to many for those together whose reads were answered together. What fails together in a way
/// that no waiting mends is asked for one by one. Claimed candidates lie in `claimed`, in the order of their claims; those
/// whose plain claim the script is to settle in `unsettled`; those that Redis could not answer about in `failed`.
final class Claims {
    let claimed = Tray<RecipientJob>()
    let unsettled = Tray<RecipientJob>()
    let failed = Tray<RecipientJob>()
    let shard: ShardContext
    private let work: WorkTable
    private var keys = DedupKeys()
    /// Recipients who ended uncounted while Redis took no writes, and have no mark there.
    private var unmarked = RecentKeys<DedupKeys.Key>()
    /// Recipients who wait in `carillon.parked` without a mark in Redis: the record there goes on with them.
    private var parkedUnmarked = RecentKeys<DedupKeys.Key>()
    /// The batches that are being gathered.
    private var open: ClaimBatch?
    var openOwners: OwnerBatch?
    private var batches: SlotTable<ClaimBatch>
    var ownerBatches: SlotTable<OwnerBatch>

    init(_ shard: ShardContext, _ work: WorkTable) {
        self.shard = shard
        self.work = work
        batches = SlotTable(capacity: shard.limits.recipientsMax)
        ownerBatches = SlotTable(capacity: shard.limits.recipientsMax)
    }

    // MARK: Asking

    /// Claims a decided candidate; Redis is asked in the order of the calls, since the badges of one user rise with them.
    func claim(_ job: RecipientJob) {
        guard let candidate = job.candidate else { return }
        candidate.phase = .claiming
        candidate.claimNanos = shard.nowNanos
        shard.waits?.took(.lookup, job.event.lane, nanos: shard.nowNanos &- job.readNanos)
        candidate.hasFailed = false
        candidate.isUnclaimed = false
        candidate.owesClaim = false
        candidate.hasReboundToken = false
        candidate.lostTokens.removeAll(keepingCapacity: true)
        candidate.plainClaim =
            claimsPlainly(job, candidate)
            ? PlainClaim(isCounted: job.isCounted, tokenVersion: candidate.tokenVersion) : nil
        candidate.asksOwners = mustAskOwners(candidate)
        candidate.learnsOwners = mayLearnOwners(candidate)
        let owners = candidate.asksOwners ? tokenCount(candidate) : 0
        candidate.awaiting = (candidate.plainClaim == nil ? 1 : PlainClaim.commandCount) + owners
        // Whoever asks for no owner must not be answered before those who were claimed before him.
        if owners == 0 { sendOwners() }
        notePushedDevices(job, candidate)
        // Whoever acknowledged after the deadline has the message and needs no push.
        if !job.suspects.isEmpty {
            candidate.awaiting += 1
            askAcks(job)
        }
        if candidate.plainClaim == nil, job.event.hasManyRecipients, shard.asksTogether {
            gather(job)
        } else {
            sendClaims()
            if candidate.plainClaim == nil { sendClaim(job) } else { sendPlainly(job) }
        }
        if candidate.asksOwners { askOwners(job, candidate) }
    }

    func sendClaim(_ job: RecipientJob) {
        var request = job.claimRequest(nowMs: shard.nowMs)
        request.wasAdded = job.candidate?.plainClaim?.isAdded ?? false
        ask(job) { (store) throws(RedisFault) in try store.claim(request, tag: job.tag(.claim)) }
        if TestBreak.isOn(.badgeTwice) { countTwice(job) }
    }

    func countTwice(_ job: RecipientJob) {
        let subject = job.event.subject
        guard job.isCounted, (subject.id.utf8.last ?? 1).isMultiple(of: 2) else { return }
        let twin = ClaimSubject(
            kind: subject.kind, id: subject.id + "#2", conversation: subject.conversation, sentMs: subject.sentMs,
            seq: subject.seq, expireAtMs: subject.expireAtMs)
        let request = ClaimRequest(
            app: job.event.app.id, uid: job.uid, twin, counted: true, nowMs: shard.nowMs)
        try? shard.store.claim(request, tag: Tag.noteBits)
    }

    private func askAcks(_ job: RecipientJob) {
        ask(job) { (store) throws(RedisFault) in
            try store.acks(app: job.event.app.id, uid: job.uid, msgID: job.event.msgID, tag: job.tag(.acks))
        }
    }

    func ask(_ job: RecipientJob, _ send: (StateStore) throws(RedisFault) -> Void) {
        do throws(RedisFault) {
            try send(shard.store)
        } catch {
            answered(job, failed: true)
        }
    }

    /// With `clear_on_read`: these devices will show what is counted now. Before the claim, so that a read that comes after
    /// it finds the device.
    private func notePushedDevices(_ job: RecipientJob, _ candidate: Candidate) {
        guard job.event.app.policy.clearOnRead, let push = job.event.message?.value.push, !push.silent, !push.voip,
            let routes = candidate.decision?.routes
        else { return }
        var devices: [String] = []
        for route in routes where route.pushedToken != nil { devices.append(route.device) }
        guard !devices.isEmpty else { return }
        // Lost with the connection, the claim is lost as well, and both are sent again.
        try? shard.store.notePushed(app: job.event.app.id, uid: job.uid, devices: devices, tag: job.tag(.note))
    }

    // MARK: Together

    /// Until the batch is full, another begins, or the stage ends.
    private func gather(_ job: RecipientJob) {
        if let open, open.event !== job.event || open.counted != job.isCounted { sendClaims() }
        let batch = open ?? ClaimBatch(job.event, counted: job.isCounted)
        open = batch
        batch.append(job)
        let isRecall = job.event.subject.revoke != nil
        let most = isRecall ? shard.limits.recallsPerCall : shard.limits.claimsPerCall
        if batch.recipients.count >= most { sendClaims() }
    }

    /// Sends what was gathered; one alone goes as it would have.
    func sendGathered() {
        sendClaims()
        sendOwners()
    }

    private func sendClaims() {
        guard let batch = open.take() else { return }
        if batch.recipients.count == 1 {
            if let job = claiming(batch.recipients[0]) { sendClaim(job) }
            return
        }
        batch.ref = batches.insert(batch)
        do throws(RedisFault) {
            try shard.store.claim(
                batch.event.subject, app: batch.event.app.id, uids: batch.uids, counted: batch.counted,
                nowMs: shard.nowMs, tag: Tag(batch.ref, .claims).bits)
        } catch {
            didFailClaims(batch, error)
        }
    }

    // MARK: Answers

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        switch tag.stage {
        case .claims: if let batch = batches.find(tag.ref) { didClaim(batch, reply) }
        case .owners: if let batch = ownerBatches.find(tag.ref) { didReadOwners(batch, reply) }
        case .claim:
            guard let job = claiming(tag.ref) else { return }
            take(ClaimReply(reply), job)
        case .claimAdd, .claimCount, .claimLook:
            if let job = claiming(tag.ref) { didReplyPlainly(tag.stage, reply, job) }
        case .owner:
            guard let job = claiming(tag.ref), let candidate = job.candidate else { return }
            takeOwner(reply, job, candidate, Int(tag.index))
        case .acks:
            guard let job = claiming(tag.ref) else { return }
            job.candidate?.acknowledged = StateStore.devices(reply)
            answered(job, failed: false)
        default: break
        }
    }

    /// The recipient of an answer; nil: he ended meanwhile, or is in another phase.
    func claiming(_ ref: WorkRef) -> RecipientJob? {
        guard let job = work.recipient(ref), job.candidate?.phase == .claiming else { return nil }
        return job
    }

    /// Whether an answer about acks belongs to a candidate in the claim.
    func isClaiming(_ ref: WorkRef) -> Bool { claiming(ref) != nil }

    private func didClaim(_ batch: ClaimBatch, _ reply: borrowing RedisReply) {
        batches.remove(batch.ref)
        guard reply.count == batch.recipients.count else {
            return forEachClaiming(batch) { answered($0, failed: true) }
        }
        var next = 0
        reply.forEach { claim in
            if let job = claiming(batch.recipients[next]) {
                if claim.kind == .error {
                    didFailClaim(job, RedisFault(errorReply: claim.bytes))
                } else {
                    take(ClaimReply(claim), job)
                }
            }
            next += 1
        }
    }

    private func forEachClaiming(_ batch: ClaimBatch, _ body: (RecipientJob) -> Void) {
        for ref in batch.recipients { if let job = claiming(ref) { body(job) } }
    }

    private func take(_ claim: ClaimReply?, _ job: RecipientJob) {
        job.candidate?.plainClaim = nil
        keep(claim, job)
        answered(job, failed: claim == nil)
    }

    func keep(_ claim: ClaimReply?, _ job: RecipientJob) {
        job.candidate?.claim = claim
        if TestBreak.isOn(.noDedup) {
            job.candidate?.claim?.state = .fresh
            job.candidate?.claim?.acceptedDevices = []
        }
    }

    func answered(_ job: RecipientJob, failed isFailure: Bool) {
        guard let candidate = job.candidate, candidate.answered(failed: isFailure) else { return }
        if candidate.hasFailed { return failed.append(job) }
        if candidate.plainClaim == nil { claimed.append(job) } else { endPlainly(job, candidate) }
    }

    // MARK: Refusals

    func didFail(_ tag: Tag, _ fault: RedisFault) {
        switch tag.stage {
        case .claims: if let batch = batches.find(tag.ref) { didFailClaims(batch, fault) }
        case .owners: if let batch = ownerBatches.find(tag.ref) { didFailOwners(batch, fault) }
        case .claim:
            guard let job = claiming(tag.ref) else { return }
            didFailClaim(job, fault)
        case .claimAdd, .claimCount, .claimLook:
            if let job = claiming(tag.ref) { didFailPlainly(fault, job) }
        case .owner:
            guard let job = claiming(tag.ref) else { return }
            // A token whose owner cannot be read is nobody's.
            let isBroken = shard.countsAsBroken(fault)
            if isBroken {
                job.candidate?.lostTokens.append(Int(tag.index))
                job.candidate?.learnsOwners = false
            }
            answered(job, failed: !isBroken)
        case .acks:
            if let job = claiming(tag.ref) { answered(job, failed: !shard.countsAsBroken(fault)) }
        default: break
        }
    }

    private func didFailClaims(_ batch: ClaimBatch, _ fault: RedisFault) {
        batches.remove(batch.ref)
        switch fault.scope {
        case .call:
            shard.noteRefusedTogether(fault)
            forEachClaiming(batch) { sendClaim($0) }
        case .key: forEachClaiming(batch) { sendClaim($0) }
        case .writes: forEachClaiming(batch) { refused($0, fault) }
        case .connection, .server: forEachClaiming(batch) { answered($0, failed: true) }
        }
    }

    private func didFailClaim(_ job: RecipientJob, _ fault: RedisFault) {
        if fault.refusesWrite { refused(job, fault) } else { answered(job, failed: true) }
    }

    /// Redis answers and reads, but takes not this write. The rule is: open to push, never silent. What the claim would have
    /// looked at is looked at without a write; the push goes without a badge, and the claim is owed, unless no waiting mends
    /// what refused it: then the mark alone is written at the end. Where even the look is refused for good, nothing is known
    /// against the push; where it is refused for now, the candidate is tried again later.
    private func refused(_ job: RecipientJob, _ fault: RedisFault) {
        shard.writes.refused(fault, nowNanos: shard.nowNanos)
        guard let candidate = job.candidate else { return }
        if candidate.isUnclaimed {
            guard fault.isLasting else { return answered(job, failed: true) }
            return take(ClaimReply(state: .fresh, badge: nil, tokenVersion: candidate.tokenVersion), job)
        }
        shard.metrics.unclaimed.add()
        candidate.isUnclaimed = true
        candidate.owesClaim = !fault.isLasting
        ask(job) { (store) throws(RedisFault) in
            try store.peek(job.claimRequest(nowMs: shard.nowMs), tag: job.tag(.claim))
        }
    }

    // MARK: Dedup keys

    /// False: the same key is in work here already, for an earlier delivery of the event; the recipient waits for its end.
    func takesKey(_ job: RecipientJob) -> Bool {
        if job.flags.contains(.holdsDedupKey) { return true }
        guard keys.take(job.dedupKey, job.ref) else { return false }
        job.flags.insert(.holdsDedupKey)
        return true
    }

    /// The recipient has ended. Returns those who waited for that.
    func releaseKey(_ job: RecipientJob) -> [WorkRef] {
        guard job.flags.remove(.holdsDedupKey) != nil else { return [] }
        return keys.release(job.dedupKey)
    }

    /// What ended here and owes its claim has no mark in Redis until that is paid, even where Redis takes writes again.
    func recallUnmarked(_ job: RecipientJob, _ candidate: Candidate) {
        if unmarked.contains(job.dedupKey) { candidate.claim?.state = .finished }
        let isOther = job.event.parked?.record.uid == nil && !job.flags.contains(.staysInMemory)
        if isOther, parkedUnmarked.contains(job.dedupKey) {
            candidate.claim?.state = .finished
        }
    }

    func rememberUnmarked(_ job: RecipientJob) { unmarked.insert(job.dedupKey) }

    func rememberParked(_ job: RecipientJob) { parkedUnmarked.insert(job.dedupKey) }

    /// An owed claim was read from the topic: after a crash its event may come again.
    func rememberUnmarked(_ owed: OwedClaim) {
        let request = owed.request
        unmarked.insert(
            PushIDPrefix(app: request.app, uid: request.uid, kind: request.subject.kind, id: request.subject.id).id())
    }

    /// The same of a recipient whose record stands for the mark.
    func rememberParked(_ record: ParkedRecord) {
        guard let uid = record.uid, RecipientJob.Flags(rawValue: record.flags).contains(.owesClaim),
            let kind = record.id.first.flatMap({ PairKind(rawValue: String($0)) })
        else { return }
        parkedUnmarked.insert(
            PushIDPrefix(app: record.app, uid: uid, kind: kind, id: String(record.id.dropFirst())).id())
    }
}

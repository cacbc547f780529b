// SPDX-License-Identifier: Apache-2.0
import EventLoop
import PushCore
import Redis
import Telemetry

/// Steps 5 and 10 in one atomic Redis step, with the last facts for step 15: the claim, and the tokens' owners if
/// unknown.
///
/// Plain commands (`PlainClaim`) claim the usual message, the script everything else: alone for a message to one
/// recipient, together for recipients of one message with answers in the same turn. After a permanent fault of a
/// common call each is claimed alone. Claimed candidates are in `claimed`, in the order of their claims; candidates for
/// the script in `unsettled`; candidates without an answer from Redis in `failed`.
final class Claims {
    let claimed = Tray<RecipientJob>()
    let unsettled = Tray<RecipientJob>()
    let failed = Tray<RecipientJob>()
    let shard: ShardContext
    private let work: WorkTable
    private var keys = DedupKeys()
    /// Recipients with a key that another shard of the process has.
    private var foreign: [(key: DedupKeys.Key, recipient: WorkRef)] = []
    /// Dedup keys of open work.
    var openKeys: Int { keys.count + foreign.count }
    /// Redis refused a claim that changes the user's number.
    var didOwe: (ClaimRequest) -> Void = { _ in }
    /// Recipients that ended uncounted while Redis accepted no writes, and have no mark.
    private var unmarked = RecentKeys<DedupKeys.Key>()
    /// Recipients who wait in `carillon.parked` without a mark in Redis: the record there goes on with them.
    private var parkedUnmarked = RecentKeys<DedupKeys.Key>()
    /// Claims of several recipients by one call.
    private let together: Batches<ClaimedTogether, (ref: WorkRef, uid: String)>
    /// Tokens of one app with one owner query.
    let owners: Batches<String, AskedToken>

    init(_ shard: ShardContext, _ work: WorkTable) {
        self.shard = shard
        self.work = work
        together = Batches(capacity: shard.limits.recipientsMax)
        owners = Batches(capacity: shard.limits.recipientsMax)
    }

    // MARK: Asking

    /// Claims a decided candidate. Redis is asked in the order of the calls, because the badges of one user rise in
    /// this order.
    func claim(_ job: RecipientJob) {
        guard let candidate = job.candidate else { return shard.mistake("a claim without a decision") }
        candidate.phase = .claiming
        candidate.askedNanos = shard.nowNanos
        shard.waits?.took(.lookup, job.event.lane, nanos: shard.nowNanos &- job.readNanos)
        candidate.refusal = nil
        candidate.hasReboundToken = false
        candidate.lostTokens.removeAll(keepingCapacity: true)
        candidate.plainClaim =
            claimsPlainly(job, candidate)
            ? PlainClaim(
                isCounted: job.isCounted, tokenVersion: candidate.tokenVersion, past: candidate.plainPast ?? 0,
                looksForEntry: candidate.decision?.finalReason != nil) : nil
        candidate.asksOwners = mustAskOwners(candidate)
        candidate.learnsOwners = mayLearnOwners(candidate)
        let owners = candidate.asksOwners ? tokenCount(candidate) : 0
        candidate.answers = Answers((candidate.plainClaim == nil ? 1 : PlainClaim.commandCount) + owners)
        // A recipient without an owner query must not be answered before earlier claims.
        if owners == 0 { sendOwners() }
        notePushedDevices(job, candidate)
        // A device that acknowledged after the deadline has the message and needs no push.
        if !job.silentConnections.isEmpty {
            candidate.answers.expect()
            askAcks(job)
        }
        if candidate.plainClaim == nil, job.event.hasManyRecipients, shard.batchesAcrossUsers {
            gather(job)
        } else {
            sendClaims()
            if candidate.plainClaim == nil { sendClaim(job) } else { sendPlainly(job) }
        }
        if candidate.asksOwners { askOwners(job, candidate) }
    }

    private func sendClaim(_ job: RecipientJob) {
        var request = job.claimRequest(nowMs: shard.nowMs)
        request.wasAdded = job.candidate?.plainClaim?.isAdded ?? false
        request.withoutDevice = job.withoutDevice
        ask(job) { (store) throws(RedisFault) in try store.claim(request, tag: job.tag(.claim)) }
        if TestBreak.isOn(.badgeTwice) { countTwice(job) }
    }

    private func countTwice(_ job: RecipientJob) {
        let subject = job.event.subject
        if !job.isCounted || !(subject.id.utf8.last ?? 1).isMultiple(of: 2) { return }
        let twin = ClaimSubject(
            kind: subject.kind, id: subject.id + "#2", conversation: subject.conversation, sentMs: subject.sentMs,
            seq: subject.seq, expireAtMs: subject.expireAtMs)
        let request = ClaimRequest(
            app: job.event.app.id, uid: job.uid, twin, counted: true, nowMs: shard.nowMs)
        try? shard.store.claim(request, tag: Tag.noteBits)
    }

    private func askAcks(_ job: RecipientJob) {
        ask(job) { (store) throws(RedisFault) in
            try store.acks(app: job.event.app.id, uid: job.uid, msgID: job.event.msgID, tag: job.tag(.claimAcks))
        }
    }

    func ask(_ job: RecipientJob, _ send: (StateStore) throws(RedisFault) -> Void) {
        do throws(RedisFault) {
            try send(shard.store)
        } catch {
            answered(job, failed: true)
        }
    }

    /// With `clear_on_read`: these devices will show the counted message. Written before the claim, so that a read
    /// after it finds the device.
    private func notePushedDevices(_ job: RecipientJob, _ candidate: Candidate) {
        guard job.event.app.policy.clearOnRead, let push = job.event.message?.value.push, !push.silent, !push.voip,
            let routes = candidate.decision?.routes
        else { return }
        var devices: [String] = []
        for route in routes where route.pushedToken != nil { devices.append(route.device) }
        if devices.isEmpty { return }
        // If this is lost with the connection, the claim is lost too, and both are sent again.
        try? shard.store.notePushed(app: job.event.app.id, uid: job.uid, devices: devices, tag: job.tag(.note))
    }

    // MARK: Together

    /// Until the batch is full, another begins, or the stage ends.
    private func gather(_ job: RecipientJob) {
        let head = ClaimedTogether(event: job.event, counted: job.isCounted, withoutDevice: job.withoutDevice)
        if let open = together.open, open.head != head { sendClaims() }
        let isRevoke = job.event.subject.revoke != nil
        let most = isRevoke ? shard.limits.revokesPerCall : shard.limits.claimsPerCall
        if together.add((job.ref, job.uid), head) >= most { sendClaims() }
    }

    /// Sends the collected claims. A single one is sent in the ordinary form.
    func sendGathered() {
        sendClaims()
        sendOwners()
    }

    private func sendClaims() {
        guard let batch = together.takeOpen() else { return }
        if batch.members.count == 1 { return forEachClaiming(batch) { sendClaim($0) } }
        let head = batch.head
        let fault = together.ask(batch, .claims) { (tag) throws(RedisFault) in
            try shard.store.claim(
                head.event.subject, app: head.event.app.id, uids: batch.members.map(\.uid), counted: head.counted,
                withoutDevice: head.withoutDevice, nowMs: shard.nowMs, tag: tag)
        }
        if let fault { didFailClaims(batch, fault) }
    }

    // MARK: Answers

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        switch tag.question {
        case .claims: if let batch = together.answered(tag.ref) { didClaim(batch, reply) }
        case .owners: if let batch = owners.answered(tag.ref) { didReadOwners(batch, reply) }
        case .claim:
            guard let job = claiming(tag.ref) else { return shard.noteLate() }
            takeReply(reply, job)
        case .claimAdd, .claimCount, .claimLook:
            if let job = claiming(tag.ref) { didReplyPlainly(tag.question, reply, job) }
        case .owner:
            guard let job = claiming(tag.ref), let candidate = job.candidate else { return shard.noteLate() }
            takeOwner(reply, job, candidate, Int(tag.index))
        case .claimAcks:
            guard let job = claiming(tag.ref) else { return shard.noteLate() }
            job.candidate?.acknowledged = StateStore.devices(reply)
            answered(job, failed: false)
        default: break
        }
    }

    /// The recipient of an answer; nil if it has ended or left the claim.
    func claiming(_ ref: WorkRef) -> RecipientJob? {
        guard let job = work.recipient(ref), job.candidate?.phase == .claiming else { return nil }
        return job
    }

    /// - Returns: whether the recipient waits for answers to its claim.
    func isClaiming(_ ref: WorkRef) -> Bool { claiming(ref) != nil }

    private func didClaim(_ batch: ClaimBatch, _ reply: borrowing RedisReply) {
        let isWhole = batch.forEach(in: reply) { member, claim in
            guard let job = claiming(member.ref) else { return }
            if claim.kind == .error {
                didFailClaim(job, RedisFault(errorReply: claim.bytes))
            } else {
                takeReply(claim, job)
            }
        }
        if !isWhole { forEachClaiming(batch) { answered($0, failed: true) } }
    }

    private func forEachClaiming(_ batch: ClaimBatch, _ body: (RecipientJob) -> Void) {
        for member in batch.members { if let job = claiming(member.ref) { body(job) } }
    }

    private func takeReply(_ reply: borrowing RedisReply, _ job: RecipientJob) {
        let claim = ClaimReply(reply)
        if claim?.state == .ended, reply.count > 3 { job.candidate?.endedBy = PairMark.counts(reply[3]) }
        take(claim, job)
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
            job.candidate?.claim?.notes = nil
        }
    }

    func answered(_ job: RecipientJob, failed isFailure: Bool) {
        guard let candidate = job.candidate else { return shard.mistake("an answer to a claim without a candidate") }
        if !candidate.answers.take(failed: isFailure) { return }
        if candidate.answers.hasFailed { return failed.append(job) }
        if candidate.plainClaim == nil { claimed.append(job) } else { endPlainly(job, candidate) }
    }

    // MARK: Refusals

    func didFail(_ tag: Tag, _ fault: RedisFault, isAbsent: Bool) {
        switch tag.question {
        case .claims: if let batch = together.answered(tag.ref) { didFailClaims(batch, fault) }
        case .owners: if let batch = owners.answered(tag.ref) { didFailOwners(batch, fault) }
        case .claim:
            guard let job = claiming(tag.ref) else { return shard.noteLate() }
            didFailClaim(job, fault)
        case .claimAdd, .claimCount, .claimLook:
            if let job = claiming(tag.ref) { didFailPlainly(fault, job) }
        case .owner:
            guard let job = claiming(tag.ref) else { return shard.noteLate() }
            // A token with an unreadable owner belongs to nobody.
            if isAbsent {
                job.candidate?.lostTokens.append(Int(tag.index))
                job.candidate?.learnsOwners = false
            }
            answered(job, failed: !isAbsent)
        case .claimAcks:
            if let job = claiming(tag.ref) { answered(job, failed: !isAbsent) }
        default: break
        }
    }

    private func didFailClaims(_ batch: ClaimBatch, _ fault: RedisFault) {
        let meaning = shard.meaning(ofBatch: fault)
        forEachClaiming(batch) { job in
            switch meaning {
            case .askAlone: sendClaim(job)
            case .refused: refused(job, fault)
            case .failed: answered(job, failed: true)
            }
        }
    }

    private func didFailClaim(_ job: RecipientJob, _ fault: RedisFault) {
        if fault.refusesWrite { refused(job, fault) } else { answered(job, failed: true) }
    }

    /// Redis answers reads but refused this write. The rule: push rather than stay silent. The claim's facts are read
    /// without a write, the push has no badge, and the claim is owed. After a permanent refusal only the mark is
    /// written at the end. If even the read is refused permanently, nothing is known against the push; if temporarily,
    /// the candidate is tried again later.
    private func refused(_ job: RecipientJob, _ fault: RedisFault) {
        shard.writes.refused(fault, nowNanos: shard.nowNanos)
        guard let candidate = job.candidate else { return shard.mistake("a refused claim without a candidate") }
        if candidate.refusal != nil {
            guard fault.isLasting else { return answered(job, failed: true) }
            return take(ClaimReply(state: .fresh, badge: nil, tokenVersion: candidate.tokenVersion), job)
        }
        shard.metrics.unclaimed.add()
        candidate.refusal = fault.isLasting ? .lasting : .forNow
        if candidate.refusal == .forNow { noteUnstored(job) }
        ask(job) { (store) throws(RedisFault) in
            try store.peek(job.claimRequest(nowMs: shard.nowMs), tag: job.tag(.claim))
        }
    }

    /// Before an answer to a later claim of the user is taken: its number lacks this one.
    private func noteUnstored(_ job: RecipientJob) {
        let request = job.claimRequest(nowMs: shard.nowMs)
        if !request.changesBadge { return }
        didOwe(request)
        shard.unstoredCounts.insert(
            job.dedupKey, of: UnstoredChanges.user(job.event.app.id, job.uid), nowNanos: shard.nowNanos)
    }

    // MARK: Dedup keys

    /// Takes the recipient's dedup key. If an earlier delivery or a copy of the event has it, here or in another shard, the
    /// recipient is kept until that one ends.
    func takeKey(_ job: RecipientJob) -> Passage {
        if job.flags.contains(.holdsDedupKey) { return .goesOn }
        guard keys.take(job.dedupKey, job.ref) else { return .kept }
        if let shared = shard.sharedKeys, !shared.take(job.dedupKey) {
            _ = keys.release(job.dedupKey)
            foreign.append((job.dedupKey, job.ref))
            return .kept
        }
        job.flags.insert(.holdsDedupKey)
        return .goesOn
    }

    /// Several times a second: the recipients with a key that no other shard has any more.
    func takeFreed() -> [WorkRef] {
        guard !foreign.isEmpty, let shared = shard.sharedKeys else { return [] }
        var freed: [WorkRef] = []
        foreign.removeAll { waiting in
            if shared.contains(waiting.key) { return false }
            freed.append(waiting.recipient)
            return true
        }
        return freed
    }

    /// The recipient has ended. Returns the recipients that waited for it.
    func releaseKey(_ job: RecipientJob) -> [WorkRef] {
        guard job.flags.remove(.holdsDedupKey) != nil else { return [] }
        shard.sharedKeys?.leave(job.dedupKey)
        return keys.release(job.dedupKey)
    }

    /// Facts that this shard knows and Redis lacks. A recipient that ended here with an owed claim has no mark in Redis until
    /// the claim is paid, even if Redis accepts writes again.
    func applyRemembered(_ job: RecipientJob, _ candidate: Candidate) {
        if candidate.refusal == nil || candidate.claim?.state == .ended { shard.unstoredCounts.remove(job.dedupKey) }
        if hasEndedUnmarked(job) { candidate.claim?.state = .ended }
        if candidate.claim?.isTargetUnknown == true, isTargetInWork(job) { candidate.claim?.isTargetUnknown = false }
    }

    /// Whether an earlier try ended, or waits in `carillon.parked`, and this shard knows it without a mark.
    func hasEndedUnmarked(_ job: RecipientJob) -> Bool {
        if unmarked.contains(job.dedupKey) { return true }
        let isOther = job.event.parked?.record.uid == nil && !job.flags.contains(.staysInMemory)
        return isOther && parkedUnmarked.contains(job.dedupKey)
    }

    /// Whether the message that a revoke names has not ended here: Redis may know nothing of it yet.
    private func isTargetInWork(_ job: RecipientJob) -> Bool {
        guard let target = job.event.subject.revoke?.targetMsgID else { return false }
        let key = PushIDPrefix(app: job.event.app.id, uid: job.uid, kind: .message, id: target).id()
        return keys.contains(key) || unmarked.contains(key) || parkedUnmarked.contains(key)
    }

    func rememberUnmarked(_ job: RecipientJob) { unmarked.insert(job.dedupKey) }

    func rememberParked(_ job: RecipientJob) { parkedUnmarked.insert(job.dedupKey) }

    /// An owed claim was read from the topic: after a crash its event may come again.
    func rememberUnmarked(_ owed: OwedClaim) {
        unmarked.insert(owed.message)
    }

    /// The same for a recipient with a record in place of the mark.
    func rememberParked(_ record: ParkedRecord) {
        if let message = record.dedupKey { parkedUnmarked.insert(message) }
    }

    // MARK: Owners
    // Owners of the tokens to push to: one query for all claims of a turn, if the server accepts keys of several slots in
    // one call. That is half the cost of single queries.

    /// If the owners of the user's token version are known, a plain claim asks for none: it checks the version after
    /// its entry.
    private func mustAskOwners(_ candidate: Candidate) -> Bool {
        // A channel has no owner.
        if candidate.recipient.uid.isEmpty { return false }
        return candidate.plainClaim == nil || !candidate.areOwnersKnown || !shard.areKeysWhole
    }

    /// Asks for all owners instead of only those pushed to, so that the next push needs no query.
    private func mayLearnOwners(_ candidate: Candidate) -> Bool {
        candidate.plainClaim != nil && candidate.asksOwners && shard.areKeysWhole && candidate.tokenVersion != 0
            && candidate.recipient.tokens.count <= KnownOwners.tokensMax
    }

    /// Number of owners to ask for.
    private func tokenCount(_ candidate: Candidate) -> Int {
        var count = 0
        forEachAskedToken(candidate) { _ in count += 1 }
        return count
    }

    private func forEachAskedToken(_ candidate: Candidate, _ body: (Int) -> Void) {
        let places = candidate.recipient.tokens.indices
        if candidate.learnsOwners { return places.forEach(body) }
        for place in candidate.pushedTokens where places.contains(place) { body(place) }
    }

    private func askOwners(_ job: RecipientJob, _ candidate: Candidate) {
        forEachAskedToken(candidate) { place in
            guard shard.batchesAcrossUsers else { return askOwner(job, candidate, place) }
            let app = job.event.app.id
            if let open = owners.open, open.head != app { sendOwners() }
            let token = AskedToken(recipient: job.ref, place: place, hex: candidate.recipient.tokens[place].record.hex)
            if owners.add(token, app) >= shard.limits.claimsPerCall { sendOwners() }
        }
    }

    /// All of the user's tokens belong to the user: the next push trusts their version.
    func noteOwners(_ job: RecipientJob, _ candidate: Candidate) {
        guard let reign = shard.reign(of: job) else { return }
        // If this is lost, they are asked for again.
        try? shard.store.noteOwners(
            app: job.event.app.id, uid: job.uid, version: candidate.tokenVersion, reign: reign, tag: job.tag(.note))
    }

    private func askOwner(_ job: RecipientJob, _ candidate: Candidate, _ place: Int) {
        guard candidate.recipient.tokens.indices.contains(place) else {
            return shard.mistake("an owner is asked of a token that the recipient does not have")
        }
        let token = candidate.recipient.tokens[place].record.hex
        ask(job) { (store) throws(RedisFault) in
            try store.owner(app: job.event.app.id, token: token, tag: job.tag(.owner, place))
        }
    }

    private func sendOwners() {
        guard let batch = owners.takeOpen() else { return }
        if batch.members.count == 1 {
            return forEachToken(batch) { job, candidate, place in askOwner(job, candidate, place) }
        }
        let fault = owners.ask(batch, .owners) { (tag) throws(RedisFault) in
            try shard.store.owners(app: batch.head, tokens: batch.members.map(\.hex), tag: tag)
        }
        if let fault { didFailOwners(batch, fault) }
    }

    private func didReadOwners(_ batch: Batch<String, AskedToken>, _ reply: borrowing RedisReply) {
        let isWhole = batch.forEach(in: reply) { token, owner in
            if let job = claiming(token.recipient), let candidate = job.candidate {
                takeOwner(owner, job, candidate, token.place)
            }
        }
        if !isWhole { forEachToken(batch) { job, _, _ in answered(job, failed: true) } }
    }

    private func didFailOwners(_ batch: Batch<String, AskedToken>, _ fault: RedisFault) {
        let meaning = shard.meaning(ofBatch: fault)
        forEachToken(batch) { job, candidate, place in
            switch meaning {
            case .askAlone: askOwner(job, candidate, place)
            case .refused, .failed: answered(job, failed: true)
            }
        }
    }

    private func forEachToken(
        _ batch: Batch<String, AskedToken>, _ body: (RecipientJob, Candidate, Int) -> Void
    ) {
        for token in batch.members {
            if let job = claiming(token.recipient), let candidate = job.candidate { body(job, candidate, token.place) }
        }
    }

    private func takeOwner(_ reply: borrowing RedisReply, _ job: RecipientJob, _ candidate: Candidate, _ place: Int) {
        if candidate.recipient.tokens.indices.contains(place) {
            let standing = OwnerReply.standing(reply, uid: job.uid, token: candidate.recipient.tokens[place])
            if standing != .owned { candidate.learnsOwners = false }
            // The removal of a refused one that is still there was interrupted: it is refused again, and removed.
            if standing == .rebound || standing == .moved { candidate.lostTokens.append(place) }
            if standing == .rebound, candidate.pushedTokens.contains(place) { candidate.hasReboundToken = true }
        }
        answered(job, failed: false)
    }

    // MARK: Plain
    // Claims by plain commands (`PlainClaim`).

    /// An ordinary message that goes only to APNs. A message by long connection may be acknowledged, and the next owner
    /// must know that there was a try. Of one that counts and is recorded without a device, the mark must say so: the ledger's
    /// entry alone means that devices are recorded.
    func claimsPlainly(_ job: RecipientJob, _ candidate: Candidate) -> Bool {
        guard candidate.plainPast != nil, let decision = candidate.decision, shard.writes.refusal == nil,
            !(candidate.recipient.read?.covers(job.event.subject) ?? false),
            // A later try would not find the entry: its time was made by this reader's clock.
            EventReader.isKafkaTime(kafkaMs: job.event.origin?.source.kafkaMs ?? 0, nowMs: shard.nowMs),
            // No mark says that a plain claim of an earlier try counted; the script asks the ledger.
            job.isCounted ? decision.finalReason == nil : !job.event.subject.clientCounts
        else { return false }
        for route in decision.routes {
            switch route.way {
            case .apns(_, nil), .none: break
            case .apns, .connection, .hold: return false
            }
        }
        return true
    }

    private func sendPlainly(_ job: RecipientJob) {
        let request = job.claimRequest(nowMs: shard.nowMs)
        if request.counted {
            ask(job) { (store) throws(RedisFault) in try store.addToLedger(request, tag: job.tag(.claimAdd)) }
        } else {
            ask(job) { (store) throws(RedisFault) in
                try store.readMarkAgain(request, inGroup: job.event.readsGroupMark, tag: job.tag(.claimAdd))
            }
        }
        let looksForEntry = job.candidate?.plainClaim?.looksForEntry ?? false
        ask(job) { (store) throws(RedisFault) in
            looksForEntry
                ? try store.ledgerEntry(request, tag: job.tag(.claimCount))
                : try store.ledgerSize(request, tag: job.tag(.claimCount))
        }
        ask(job) { (store) throws(RedisFault) in try store.lookBehindClaim(request, tag: job.tag(.claimLook)) }
        if TestBreak.isOn(.badgeTwice) { countTwice(job) }
    }

    private func didReplyPlainly(_ question: Question, _ reply: borrowing RedisReply, _ job: RecipientJob) {
        switch question {
        case .claimAdd where job.isCounted: job.candidate?.plainClaim?.didAdd(reply)
        case .claimAdd:
            job.candidate?.plainClaim?.didReadMark(reply)
            job.candidate?.endedBy = PairMark.counts(reply)
        case .claimCount: job.candidate?.plainClaim?.didCount(reply)
        default: job.candidate?.plainClaim?.didLook(reply, at: job.event.subject)
        }
        answered(job, failed: false)
    }

    /// Permanent faults, and a cluster with moving slots, go to the script too, which decides.
    private func didFailPlainly(_ fault: RedisFault, _ job: RecipientJob) {
        job.candidate?.plainClaim?.didFail()
        switch fault.code {
        case .moved, .ask, .tryAgain: answered(job, failed: false)
        default: answered(job, failed: !fault.refusesWrite)
        }
    }

    /// All answers are here: it is claimed, or the script is asked.
    private func endPlainly(_ job: RecipientJob, _ candidate: Candidate) {
        let now = shard.nowMs
        guard let plain = candidate.plainClaim, !plain.mayBeExpired(nowMs: now), let reply = plain.reply else {
            return unsettled.append(job)
        }
        candidate.plainClaim = nil
        job.openMark = .notYet
        let renewal = plain.renewal(nowMs: now)
        if renewal.life {
            // If this is lost with the connection, the next claim does it.
            try? shard.store.renewLedger(
                job.claimRequest(nowMs: now), epoch: renewal.epoch, hadToken: candidate.tokenVersion != 0,
                tag: job.tag(.note))
        }
        if candidate.learnsOwners { noteOwners(job, candidate) }
        keep(reply, job)
        claimed.append(job)
    }

    /// A fact changed, or existed before: the script settles it. The caller keeps the candidate's place.
    func settle(_ job: RecipientJob) {
        guard let candidate = job.candidate, candidate.phase == .claiming else {
            return shard.mistake("a claim is settled that is not open")
        }
        let asksOwners = !candidate.asksOwners
        candidate.asksOwners = true
        candidate.answers = Answers(1 + (asksOwners ? tokenCount(candidate) : 0))
        sendClaim(job)
        if asksOwners { forEachAskedToken(candidate) { askOwner(job, candidate, $0) } }
    }
}

/// The facts that recipients with one common claim call share.
private struct ClaimedTogether: Equatable {
    let event: EventJob
    let counted: Bool
    let withoutDevice: WithoutDevice?

    static func == (one: ClaimedTogether, other: ClaimedTogether) -> Bool {
        one.event === other.event && one.counted == other.counted && one.withoutDevice == other.withoutDevice
    }
}

private typealias ClaimBatch = Batch<ClaimedTogether, (ref: WorkRef, uid: String)>

/// A token with its recipient, and its index among the recipient's tokens.
struct AskedToken {
    let recipient: WorkRef
    let place: Int
    let hex: String
}

import EventLoop
import PushCore
import Redis
import Telemetry

/// The claim, and whose the tokens are: of a message to one recipient by commands of their own, of a message to many for
/// those together whose reads were answered together.
///
/// That saves a tenth of what a member costs the worker before sending, and Redis the calls. What fails together in a way
/// that no waiting mends is asked for one by one: the fault may be one recipient's alone, or the server one that wants the
/// keys of a call in one slot.
extension Pipeline {
    /// Steps 5 and 10 in one atomic step, with the last facts that step 15 looks at.
    func claim(_ job: RecipientJob) {
        job.step = .claiming
        job.hasFailed = false
        job.flags.remove(.unclaimed)
        job.owed = nil
        job.lostTokens.removeAll(keepingCapacity: true)
        job.awaiting = 1
        for _ in job.pushedTokens { job.awaiting += 1 }
        noteDevices(job)
        // Whoever acknowledged after the deadline has the message and needs no push.
        if !job.suspects.isEmpty {
            job.awaiting += 1
            askAcks(job)
        }
        // Redis is asked in the order of the decisions, since the badges of one user rise with them.
        if job.event.hasManyRecipients, claimsTogether {
            sendLoneClaims()
            gather(job)
        } else {
            sendClaims()
            loneClaims.append(job)
        }
    }

    private func claimAlone(_ job: RecipientJob) {
        sendClaim(job)
        for token in job.pushedTokens { askOwner(job, token) }
    }

    private func sendClaim(_ job: RecipientJob) {
        ask(job) { (store) throws(RedisFault) in
            try store.claim(ClaimRequest(job, nowMs: loop.wallMs), tag: job.tag(.claim))
        }
    }

    private func askOwner(_ job: RecipientJob, _ token: Int) {
        ask(job) { (store) throws(RedisFault) in
            try store.owner(
                app: job.event.app.id, token: job.recipient.tokens[token].record.hex, tag: job.tag(.owner, token))
        }
    }

    // MARK: - Together

    /// At the end of Redis' replies, which is where decisions are made: what was gathered, and what goes alone.
    func sendAllClaims() {
        sendClaims()
        sendLoneClaims()
    }

    private func sendLoneClaims() { loneClaims.takeAll(claimAlone) }

    /// Until the batch is full, another begins, or the replies end.
    private func gather(_ job: RecipientJob) {
        let counted = job.decision?.counted ?? false
        if let open = openClaims, open.event !== job.event || open.counted != counted { sendClaims() }
        let batch = openClaims ?? ClaimBatch(job.event, counted: counted)
        openClaims = batch
        batch.append(job)
        if batch.jobs.count >= limits.claimsPerCall { sendClaims() }
    }

    /// Sends what was gathered; one alone goes as it would have.
    private func sendClaims() {
        guard let batch = openClaims.take() else { return }
        if batch.jobs.count == 1, let job = batch.jobs.first { return claimAlone(job) }
        (batch.slot, batch.generation) = claimBatches.insert(batch)
        let app = batch.event.app.id
        batch.awaiting = batch.tokens.isEmpty ? 1 : 2
        do throws(RedisFault) {
            try store.claim(
                batch.event.subject, app: app, uids: batch.jobs.lazy.map(\.recipient.uid), counted: batch.counted,
                nowMs: loop.wallMs, tag: batch.tag(.claims))
        } catch {
            didFailClaims(batch, error)
        }
        if batch.tokens.isEmpty { return }
        do throws(RedisFault) {
            try store.owners(
                app: app, tokens: batch.tokens.lazy.map { $0.job.recipient.tokens[$0.index].record.hex },
                tag: batch.tag(.owners))
        } catch {
            didFailOwners(batch, error)
        }
    }

    func claimBatch(_ ref: JobRef) -> ClaimBatch? { claimBatches.find(slot: ref.slot, generation: ref.generation) }

    private func told(_ batch: ClaimBatch) {
        batch.awaiting -= 1
        if batch.awaiting == 0 { claimBatches.remove(slot: batch.slot) }
    }

    func didClaim(_ batch: ClaimBatch, _ reply: borrowing RedisReply) {
        told(batch)
        guard reply.count == batch.jobs.count else {
            for job in batch.jobs { answered(job, failed: true) }
            return
        }
        var next = 0
        reply.forEach { claim in
            takeClaim(claim, batch.jobs[next])
            next += 1
        }
    }

    func didReadOwners(_ batch: ClaimBatch, _ reply: borrowing RedisReply) {
        told(batch)
        guard reply.count == batch.tokens.count else {
            for token in batch.tokens { answered(token.job, failed: true) }
            return
        }
        var next = 0
        reply.forEach { owner in
            let token = batch.tokens[next]
            next += 1
            takeOwner(owner, token.job, token.index)
        }
    }

    func didFailClaims(_ batch: ClaimBatch, _ fault: RedisFault) {
        told(batch)
        if fault.isAboutOneKey {
            if fault.code != .wrongType, claimsTogether {
                claimsTogether = false
                log.info("Redis takes no keys of several users in one call: claims go one by one")
            }
            for job in batch.jobs { sendClaim(job) }
        } else if fault.refusesWrite {
            for job in batch.jobs { claimRefused(job, fault) }
        } else {
            for job in batch.jobs { answered(job, failed: true) }
        }
    }

    func didFailOwners(_ batch: ClaimBatch, _ fault: RedisFault) {
        told(batch)
        for token in batch.tokens {
            if fault.isAboutOneKey { askOwner(token.job, token.index) } else { answered(token.job, failed: true) }
        }
    }

    // MARK: - Answers

    func takeClaim(_ reply: borrowing RedisReply, _ job: RecipientJob) {
        let claim = ClaimReply(reply)
        job.claim = claim
        answered(job, failed: claim == nil)
    }

    /// Whose a token is by now.
    func takeOwner(_ reply: borrowing RedisReply, _ job: RecipientJob, _ token: Int) {
        if job.recipient.tokens.indices.contains(token),
            !OwnerReply.allows(reply, uid: job.recipient.uid, token: job.recipient.tokens[token])
        {
            job.lostTokens.append(token)
        }
        answered(job, failed: false)
    }
}

extension ClaimRequest {
    init(_ job: RecipientJob, nowMs: Int64) {
        self.init(
            app: job.event.app.id, uid: job.recipient.uid, job.event.subject,
            counted: job.decision?.counted ?? false, nowMs: nowMs)
    }
}

extension RecipientJob {
    /// The tokens that the decision pushes to, or holds a push for: their places among the recipient's.
    var pushedTokens: some Sequence<Int> { (decision?.routes ?? []).lazy.compactMap(\.pushedToken) }
}

extension Route {
    /// The token that a push or a hold of this route is for.
    var pushedToken: Int? {
        switch way {
        case .apns(let token, _), .hold(let token, _): token
        case .connection, .none: nil
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// Claims by plain commands (`PlainClaim`).
extension Claims {
    /// An ordinary message that goes only to APNs. A message by long connection may be acknowledged, and the next owner
    /// must know that there was a try. Of one that counts and is recorded without a device, the mark must say so: the ledger's
    /// entry alone means that devices are recorded.
    func claimsPlainly(_ job: RecipientJob, _ candidate: Candidate) -> Bool {
        guard candidate.plainPast != nil, let decision = candidate.decision, shard.writes.refusal == nil,
            !(candidate.recipient.read?.covers(job.event.subject) ?? false),
            // A later try would not find the entry: its time was made by this reader's clock.
            EventReader.isRight(kafkaMs: job.event.origin?.source.kafkaMs ?? 0, nowMs: shard.nowMs),
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

    func sendPlainly(_ job: RecipientJob) {
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

    func didReplyPlainly(_ question: Question, _ reply: borrowing RedisReply, _ job: RecipientJob) {
        switch question {
        case .claimAdd where job.isCounted: job.candidate?.plainClaim?.didAdd(reply)
        case .claimAdd:
            job.candidate?.plainClaim?.didReadMark(reply)
            job.takeEarlier(PairMark.counts(reply))
        case .claimCount: job.candidate?.plainClaim?.didCount(reply)
        default: job.candidate?.plainClaim?.didLook(reply, at: job.event.subject)
        }
        answered(job, failed: false)
    }

    /// Permanent faults, and a cluster with moving slots, go to the script too, which decides.
    func didFailPlainly(_ fault: RedisFault, _ job: RecipientJob) {
        job.candidate?.plainClaim?.didFail()
        switch fault.code {
        case .moved, .ask, .tryAgain: answered(job, failed: false)
        default: answered(job, failed: !fault.refusesWrite)
        }
    }

    /// All answers are here: it is claimed, or the script is asked.
    func endPlainly(_ job: RecipientJob, _ candidate: Candidate) {
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

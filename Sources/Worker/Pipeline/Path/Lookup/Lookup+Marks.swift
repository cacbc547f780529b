// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// The marks of earlier tries: one read for all recipients of a turn, if the server accepts keys of several slots in
/// one call; for a group message's members also in their common key.
extension Lookup {
    func askMark(_ job: RecipientJob, _ candidate: Candidate) {
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
            if earlier == .ended { job.takeEarlier(PairMark.counts(reply)) }
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

    func didReadGroupMarks(_ batch: Batch<EventJob, RecipientJob>, _ reply: borrowing RedisReply) {
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

    func didFailGroupMarks(_ batch: Batch<EventJob, RecipientJob>, isAbsent: Bool) {
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

    func didReadMarks(_ batch: Batch<Void, RecipientJob>, _ reply: borrowing RedisReply) {
        let isWhole = batch.forEach(in: reply) { job, mark in if isReading(job) { takeMark(mark, job) } }
        if !isWhole { fail(batch) }
    }

    func didFailMarks(_ batch: Batch<Void, RecipientJob>, _ fault: RedisFault) {
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

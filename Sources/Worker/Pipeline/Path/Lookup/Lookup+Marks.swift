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
                job.event.groupMarkNote == nil && (candidate.phase == .readingDenied || candidate.claimsPlainly)
            if asksOwn { candidate.awaiting += 1 }
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

    /// The recipient of an awaited mark; nil if it has ended.
    private func reading(_ ref: WorkRef) -> RecipientJob? {
        guard let job = work.recipient(ref), let phase = job.candidate?.phase,
            phase == .reading || phase == .readingDenied
        else { return nil }
        return job
    }

    private func forEachReading(_ refs: [WorkRef], _ body: (RecipientJob) -> Void) {
        for ref in refs { if let job = reading(ref) { body(job) } }
    }

    func takeMark(_ reply: borrowing RedisReply, _ job: RecipientJob) {
        if let earlier = PairMark.state(reply), job.candidate?.earlierTry != .ended {
            job.candidate?.earlierTry = earlier
            if earlier == .ended { job.takeEarlier(PairMark.counts(reply)) }
        }
        if !reply.isNull { job.candidate?.claimsPlainly = false }
        answered(job, failed: false)
    }

    // MARK: One key with the marks of several members

    /// The marks of earlier events are asked for first: Redis answers in order, and so no event overtakes an earlier one.
    private func gatherGroupMarks(_ job: RecipientJob) {
        if let first = openGroupMarks.first, first.event !== job.event { sendGroupMarks() }
        if openGroupMarks.isEmpty { sendMarks() }
        openGroupMarks.append(job)
        if openGroupMarks.count >= shard.limits.memberPage { sendGroupMarks() }
    }

    private func sendGroupMarks() {
        guard let event = openGroupMarks.first?.event else { return }
        let jobs = openGroupMarks
        openGroupMarks.removeAll(keepingCapacity: true)
        let batch = GroupMarkBatch(event, jobs)
        batch.ref = groupMarkBatches.insert(batch)
        do throws(RedisFault) {
            try shard.store.readGroupMarks(
                app: event.app.id, event.subject, uids: jobs.lazy.map(\.uid), tag: Tag(batch.ref, .groupMarks).bits)
        } catch {
            didFailGroupMarks(batch, error)
        }
    }

    func didReadGroupMarks(_ batch: GroupMarkBatch, _ reply: borrowing RedisReply) {
        groupMarkBatches.remove(batch.ref)
        guard reply.count == batch.refs.count + 1 else {
            return forEachReading(batch.refs) { answered($0, failed: true) }
        }
        let note = batch.event.groupMarkNote
        let isFirst = note != nil && reply[0].int64 == note
        var next = -1
        reply.forEach { mark in
            defer { next += 1 }
            guard next >= 0, let job = reading(batch.refs[next]) else { return }
            // In a later try, or after a fault, there may be a mark of its own.
            let mayHaveOwn = note != nil && (!isFirst || job.candidate?.failures != 0)
            if mayHaveOwn { job.candidate?.claimsPlainly = false }
            if mayHaveOwn, mark.isNull, askOwnIfDenied(job) == .kept { return }
            takeMark(mark, job)
        }
    }

    func didFailGroupMarks(_ batch: GroupMarkBatch, _ fault: RedisFault) {
        groupMarkBatches.remove(batch.ref)
        let event = batch.event
        let isBroken = shard.takeAsBroken(fault, key: "marks of message \(event.app.id):\(event.subject.id)")
        forEachReading(batch.refs) { job in
            job.candidate?.claimsPlainly = false
            if isBroken, batch.event.groupMarkNote != nil, askOwnIfDenied(job) == .kept { return }
            answered(job, failed: !isBroken)
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
        if let first = openGroupMarks.first, first.event !== job.event { sendGroupMarks() }
        guard shard.batchesAcrossUsers else { return askMarkAlone(job) }
        openMarks.append(job)
        if openMarks.count >= shard.limits.claimsPerCall { sendMarks() }
    }

    private func sendMarks() {
        guard let first = openMarks.first else { return }
        let jobs = openMarks
        openMarks.removeAll(keepingCapacity: true)
        if jobs.count == 1 { return askMarkAlone(first) }
        let batch = MarkBatch(jobs)
        batch.ref = markBatches.insert(batch)
        do throws(RedisFault) {
            try shard.store.readMarks(tag: Tag(batch.ref, .marks).bits) { name in
                for job in jobs { name(job.event.app.id, job.uid, job.event.subject) }
            }
        } catch {
            didFailMarks(batch, error)
        }
    }

    func didReadMarks(_ batch: MarkBatch, _ reply: borrowing RedisReply) {
        markBatches.remove(batch.ref)
        guard reply.count == batch.refs.count else {
            return forEachReading(batch.refs) { answered($0, failed: true) }
        }
        var next = 0
        reply.forEach { mark in
            if let job = reading(batch.refs[next]) { takeMark(mark, job) }
            next += 1
        }
    }

    func didFailMarks(_ batch: MarkBatch, _ fault: RedisFault) {
        markBatches.remove(batch.ref)
        if fault.scope == .call { shard.noteRefusedBatch(fault) }
        forEachReading(batch.refs) { job in
            switch fault.scope {
            case .key, .call: askMarkAlone(job)
            case .connection, .server, .writes: answered(job, failed: true)
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

/// Recipients with one common mark read.
///
/// It holds references: a recipient that has ended is not found when the answer comes.
final class MarkBatch {
    var ref = WorkRef.none
    let refs: [WorkRef]

    init(_ jobs: [RecipientJob]) { refs = jobs.map(\.ref) }
}

/// Members of a message with one read of their common key.
final class GroupMarkBatch {
    let event: EventJob
    var ref = WorkRef.none
    let refs: [WorkRef]

    init(_ event: EventJob, _ jobs: [RecipientJob]) {
        self.event = event
        refs = jobs.map(\.ref)
    }
}

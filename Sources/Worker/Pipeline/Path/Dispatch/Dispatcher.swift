// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis
import Telemetry

/// A decided and claimed recipient: the progress and end of each device, later rounds, and the end of the recipient.
///
/// Recipients for another round are in `again`; ended ones in `ended`.
final class Dispatcher {
    let again = Tray<RecipientJob>()
    let ended = Tray<RecipientJob>()
    /// Recipients with a new record. Their marks may be built after all of this stage have theirs.
    let recorded = Tray<RecipientJob>()
    /// Recipients with devices that wait to be parked and are now first.
    let mayBeParked = Tray<WorkRef>()
    /// Recipients of a revoke that lowered a badge; their devices must get the number.
    let lowered = Tray<RecipientJob>()
    /// Devices that got the lowered number with the revoke's alert.
    let toldByAlert = Tray<ToldBadge>()
    /// Accepted numbers of devices that other workers may push too.
    let acceptedBadges = Tray<AcceptedBadge>()
    let shard: ShardContext
    let work: WorkTable
    let claims: Claims
    let sender: Sender
    let recorder: Recorder
    let bursts: Bursts
    let parking: Parking

    /// The tag has one byte for a device's index. No user has so many devices.
    static let devicesMax = 255
    static let reboundRoundsMax = 8

    init(
        _ shard: ShardContext, _ work: WorkTable, claims: Claims, sender: Sender, recorder: Recorder, bursts: Bursts,
        parking: Parking
    ) {
        self.parking = parking
        self.shard = shard
        self.work = work
        self.claims = claims
        self.sender = sender
        self.recorder = recorder
        self.bursts = bursts
    }

    // MARK: Answers

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        if tag.question == .acks { didReadAcks(tag.ref, StateStore.devices(reply)) }
    }

    func didFail(_ tag: Tag, _ fault: RedisFault, isAbsent: Bool) {
        if tag.question == .acks { didFailAcks(tag.ref, isAbsent: isAbsent) } else { didFailNote(tag.ref, fault) }
    }

    // MARK: After the claim

    /// The result of the claim: finished before, another read, a wait for a twin or for acks, or the routes.
    ///
    /// - Parameter pass: keeps it behind an earlier recipient of its user and conversation that has not passed.
    func didClaim(_ job: RecipientJob, pass: (RecipientJob) -> Passage) -> AfterClaim {
        guard let candidate = job.candidate else { return .passed }
        claims.applyRemembered(job, candidate)
        guard let claim = candidate.claim else { return .passed }
        if claim.state == .ended {
            endDuplicate(job)
            return .passed
        }
        job.note(claim, isFirst: job.firstClaim == .none)
        if candidate.isUnclaimed, job.isCounted { job.flags.insert(.addsToBadge) }
        if job.firstClaim == .none { job.firstClaim = claim.state == .resume ? .resumed : .fresh }
        if pass(job) == .kept { return .waits }
        if claim.tokenVersion != candidate.tokenVersion, !candidate.isReread {
            // A token was bound or unbound a moment ago: the routes may be wrong. A repeated claim counts nothing.
            candidate.isReread = true
            return .readAgain
        }
        if candidate.hasReboundToken, job.reboundRounds < Self.reboundRoundsMax {
            job.reboundRounds += 1
            return .readAgain
        }
        if parkBesideEarlierTry(job, candidate) == .kept { return .passed }
        guard claims.takeKey(job) == .goesOn else {
            waitForTwin(job)
            return .passed
        }
        noteLowered(job, claim)
        // A delivery of an earlier try may have been acknowledged: a second delivery would alert twice.
        if claim.state == .resume, job.isResumed, job.devices.isEmpty, candidate.acknowledged == nil,
            job.event.message != nil, !job.uid.isEmpty
        {
            askAcks(job, candidate)
            return .readsAcks
        }
        route(job)
        return .passed
    }

    /// With `clear_on_read` the devices get the number that a revoke lowered.
    private func noteLowered(_ job: RecipientJob, _ claim: ClaimReply) {
        if !claim.owesClear || job.flags.contains(.clearsBadge) { return }
        job.flags.insert(.clearsBadge)
        lowered.append(job)
    }

    enum AfterClaim {
        /// Later recipients of its conversation may continue.
        case passed
        /// It is read again once an earlier one has passed. A repeated claim counts nothing.
        case waits
        /// The acks are read. Later recipients of its conversation wait for the answer.
        case readsAcks
        /// A token changed: everything is read again.
        case readAgain
    }

    /// The same key is in progress here for an earlier delivery of the event: it is read again after the end of that
    /// one.
    func waitForTwin(_ job: RecipientJob) {
        guard job.machine.waitForTwin() else {
            return shard.mistake("a recipient waits for its twin after its decision")
        }
        // The deliveries of the event's other recipients do not wait for this one.
        noteDecided(job)
        recorder.flushDeliveries(of: job.event)
    }

    /// The twin has ended.
    func twinEnded(_ ref: WorkRef) {
        guard let job = work.recipient(ref), job.machine.waitsForTwin else { return shard.late() }
        decideAgain(job)
    }

    private func askAcks(_ job: RecipientJob, _ candidate: Candidate) {
        candidate.phase = .readingAcks
        do throws(RedisFault) {
            try shard.store.acks(app: job.event.app.id, uid: job.uid, msgID: job.event.msgID, tag: job.tag(.acks))
        } catch {
            again.append(job)
        }
    }

    /// Everything was done before.
    func endDuplicate(_ job: RecipientJob) {
        guard job.machine.decided() else { return shard.mistake("a recipient ends that is not being decided") }
        noteDecided(job)
        shard.metrics.duplicates.add()
        recorder.flushDeliveries(of: job.event)
        // In a later round another worker may have finished it. Pushes in flight still return to their devices.
        replaceWaiting(job)
        recorder.countEarlier(of: job)
        job.machine.leaveUnmarked()
        endIfComplete(job)
    }

    /// Nothing to do and nothing to record.
    func endUnrecorded(_ job: RecipientJob) {
        guard job.machine.decided() else { return shard.mistake("a recipient ends that is not being decided") }
        noteDecided(job)
        job.machine.leaveUnmarked()
        endIfComplete(job)
    }

    /// The first decision of a recipient brings the event's deliveries closer.
    func noteDecided(_ job: RecipientJob) {
        if job.isDecided { return }
        job.endWaiting()
        job.firstDecision = .made
        job.event.undecided -= 1
    }
}

// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import EventLoop
import PushCore
import Redis

/// Step 15 for a push that had to wait: behind another of its device, for `limits.rate`, or in the APNs client.
///
/// The claim's facts are old then: the message may be read or revoked, the token another user's, the badge another
/// number. An immediate push needs no check.
extension Sender {
    /// Claims again, which counts nothing twice, and asks for the token's owner. For a connection without a timely ack,
    /// it also asks for a later ack.
    func check(_ job: RecipientJob, _ index: Int, ticket: PushTicket?) {
        guard index < job.devices.count, let token = job.devices[index].push?.token else {
            return shard.mistake("a check of a device without a push")
        }
        let asksAcks = !job.silentConnections.isEmpty
        // A failed check may have read a newer number already.
        let subject =
            job.devices[index].push?.check?.subject ?? SendCheck.Subject(badge: job.devices[index].push?.badge)
        let activity = job.event.updatedActivityID
        // A channel has no owner.
        let asksOwner = !job.event.isBroadcast
        job.devices[index].push?.check = SendCheck(
            ticket: ticket,
            answers: Answers(1 + (asksOwner ? 1 : 0) + (asksAcks ? 1 : 0) + (activity == nil ? 0 : 1)),
            subject: subject)
        let app = job.event.app.id
        if let activity {
            ask(job, index) { (store) throws(RedisFault) in
                try store.activityState(
                    app: app, uid: job.uid, activityID: activity, tag: job.tag(.checkActivity, index))
            }
        }
        ask(job, index) { (store) throws(RedisFault) in
            try store.claim(job.claimRequest(nowMs: shard.nowMs), tag: job.tag(.checkClaim, index))
        }
        if asksOwner {
            ask(job, index) { (store) throws(RedisFault) in
                try store.owner(app: app, token: token.record.hex, tag: job.tag(.checkOwner, index))
            }
        }
        if !asksAcks { return }
        ask(job, index) { (store) throws(RedisFault) in
            try store.acks(app: app, uid: job.uid, msgID: job.event.msgID, tag: job.tag(.checkAcks, index))
        }
    }

    private func ask(_ job: RecipientJob, _ index: Int, _ send: (StateStore) throws(RedisFault) -> Void) {
        do throws(RedisFault) {
            try send(shard.store)
        } catch {
            answered(job, index, failed: true)
        }
    }

    /// Checks a device again after Redis could not answer.
    func retryCheck(_ device: DeviceRef) {
        guard let job = work.recipient(device.work), job.isPushing(device.device) else { return shard.late() }
        check(job, device.device, ticket: job.devices[device.device].push?.check?.ticket)
    }

    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) {
        let index = Int(tag.index)
        guard let job = work.recipient(tag.ref), index < job.devices.count, let token = job.devices[index].push?.token
        else { return shard.late() }
        switch tag.question {
        case .hour: didTakePlace(job, index, reply.int64 ?? 0)
        case .checkOwner:
            let standing = OwnerReply.standing(reply, uid: job.uid, token: token)
            answered(job, index) { check in
                check.facts.isTokenOwned = standing != .moved
                check.isRebound = standing == .rebound || standing == .refused
            }
        case .checkActivity:
            let isOver = isOver(job.event, ActivityState(reply), token)
            answered(job, index) { $0.facts.isActivityOver = isOver }
        case .checkAcks:
            let isAcknowledged = StateStore.devices(reply).containsSame(job.devices[index].route.device)
            answered(job, index) { $0.isAcknowledged = isAcknowledged }
        default:
            guard let claim = ClaimReply(reply) else { return answered(job, index, failed: true) }
            // The script has marked it, unless it was only asked to peek.
            if job.devices[index].push?.check?.isPeek == false { job.openMark = .mayExist }
            job.note(claim, isFirst: false)
            let isExact =
                shard.unstoredCounts.isEmpty || shard.isBadgeExact(app: job.event.app.id, uid: job.uid)
            job.devices[index].push?.badge = isExact ? job.badge(claim.badge, isLowered: claim.lowered) : nil
            job.devices[index].push?.mayHaveReport = claim.hasReport
            let mark = claim.state == .ended && reply.count > 3 ? PairMark.counts(reply[3]) : nil
            let outcome = job.outcome(ofDevice: index, in: mark)
            answered(job, index) { check in
                if claim.state == .ended { check.subject = outcome.map { .counted($0) } ?? .ended }
                check.facts.isRead = claim.isRead
                check.facts.isRevoked = claim.isRevoked
            }
        }
    }

    func didFail(_ tag: Tag, _ fault: RedisFault, isAbsent: Bool) {
        guard let job = work.recipient(tag.ref) else { return shard.late() }
        let index = Int(tag.index)
        if tag.question == .hour { return didNotTakePlace(job, index, fault, isAbsent: isAbsent) }
        guard index < job.devices.count, let check = job.devices[index].push?.check else { return shard.late() }
        switch tag.question {
        case .checkClaim where fault.refusesWrite && !check.isPeek:
            // A claimed push needs no other claim; only its number is unknown.
            shard.writes.refused(fault, nowNanos: shard.nowNanos)
            peek(job, index)
        // A permanently unreadable key does not prevent the push, except for the token's owner.
        case .checkOwner where isAbsent:
            answered(job, index) { $0.facts.isTokenOwned = false }
        case .checkClaim where fault.isLasting, .checkAcks where isAbsent, .checkActivity where isAbsent:
            answered(job, index)
        default: answered(job, index, failed: true)
        }
    }

    /// A change of the user or of the token is read and not stored: the push is parked, or checked again later.
    func waitForChanges(_ job: RecipientJob, _ index: Int, ticket: PushTicket?) -> Passage {
        let changes = shard.unstoredChanges
        guard let token = job.devices[index].push?.token,
            changes.contains(UnstoredChanges.user(job.event.app.id, job.uid))
                || changes.contains(UnstoredChanges.token(job.event.app.id, token.record.hex))
        else { return .goesOn }
        guard job.mayPark else {
            shard.timers.schedule(
                .retryCheck(.recipient(job.deviceRef(index))), dueNanos: shard.retryNanos(failures: 1))
            return .kept
        }
        job.devices[index].push?.check = nil
        stop(job, index, ticket, .park(.behind, dueMs: shard.steadyMs &+ Self.changesMs, client: nil))
        return .kept
    }

    private static let changesMs: Int64 = 5_000

    private func isOver(_ event: EventJob, _ state: ActivityState, _ token: BoundToken) -> Bool {
        guard let action = event.activity?.action else { return false }
        var state = state
        if state.startedMs == nil { state.startedMs = token.record.boundMs }
        return state.isOver(for: action, now: shard.nowMs)
    }

    private func peek(_ job: RecipientJob, _ index: Int) {
        job.devices[index].push?.badge = nil
        job.devices[index].push?.check?.isPeek = true
        ask(job, index) { (store) throws(RedisFault) in
            try store.peek(job.claimRequest(nowMs: shard.nowMs), tag: job.tag(.checkClaim, index))
        }
    }

    /// One of the answers.
    private func answered(
        _ job: RecipientJob, _ index: Int, failed: Bool = false, _ note: (inout SendCheck) -> Void = { _ in }
    ) {
        guard index < job.devices.count, var check = job.devices[index].push?.check, check.answers.awaited > 0 else {
            return shard.late()
        }
        note(&check)
        let isLast = check.answers.take(failed: failed)
        job.devices[index].push?.check = check
        if !isLast { return }
        if !job.isPushing(index) { return shard.late() }
        if !shard.unstoredChanges.isEmpty, waitForChanges(job, index, ticket: check.ticket) == .kept { return }
        let verdict = check.verdict(expireAtMs: job.event.expiresAtMs, nowMs: shard.nowMs)
        switch verdict {
        case .askAgain:
            shard.timers.schedule(
                .retryCheck(.recipient(job.deviceRef(index))), dueNanos: shard.retryNanos(failures: 1))
        case .send:
            job.devices[index].push?.check = nil
            job.devices[index].push?.checkedNanos = shard.nowNanos
            didCheck(job.devices[index].queueKey)
            goOn(job, index, check)
        case .stop, .acknowledged, .endedElsewhere, .decideAgain:
            job.devices[index].push?.check = nil
            stop(job, index, check.ticket, .check(verdict))
        }
    }

    /// Nothing prevents it: on to the client, or inside it; rendered again if the number has changed.
    func goOn(_ job: RecipientJob, _ index: Int, _ check: SendCheck) {
        guard let ticket = check.ticket else { return makeReady(.recipient(job.deviceRef(index))) }
        guard let due = job.devices[index].pushParts(), let client = job.event.app.client(for: due.token) else {
            return stop(job, index, ticket, .check(.stop(.noToken)))
        }
        if SendCheck.Subject(badge: due.badge) == check.subject, !client.apns.lacksContent(ticket) {
            client.apns.confirm(ticket)
            return job.leaveContentIfSent()
        }
        guard let push = push(for: job, index, due) else {
            return stop(job, index, ticket, .check(.stop(.payloadTooLarge)))
        }
        client.apns.renew(ticket, with: push)
        job.leaveContentIfSent()
    }

    private func stop(_ job: RecipientJob, _ index: Int, _ ticket: PushTicket?, _ cause: UnsentPush.Cause) {
        if let ticket, let token = job.devices[index].push?.token, let client = job.event.app.client(for: token),
            !client.apns.withdraw(ticket)
        {
            // It has ended in the client, and its outcome gives the result.
            return
        }
        drop(job.deviceRef(index), cause)
    }
}

extension RecipientJob {
    /// The number with an alert. The alert of a revoke that lowered it carries 0 too.
    func badge(_ badge: Int64?, isLowered: Bool) -> Int64? {
        guard event.showsBadge, let badge else { return nil }
        return BadgeRule.withAlert(
            badge, isLowered: isLowered, by: event.app.policy.badge, cap: event.app.policy.badgeCap)
    }
}

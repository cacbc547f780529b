import EventLoop
import PushCore
import Redis

/// Redis' answers, each to the job and the step that asked.
extension Pipeline: RedisClientDelegate {
    func redis(_ client: RedisClient, didReply bits: UInt64, reply: borrowing RedisReply) {
        guard let tag = Tag(bits) else { return }
        switch tag.stage {
        case .presence, .user, .conversation, .group, .activity, .mark, .claim, .owner, .finish, .acks, .heldBack:
            if refusal != nil, tag.stage == .finish { noteWritten() }
            guard let job = job(tag.ref) else { return }
            take(reply, tag, job)
        case .claims:
            if let batch = claimBatch(tag.ref) { didClaim(batch, reply) }
        case .owners:
            if let batch = claimBatch(tag.ref) { didReadOwners(batch, reply) }
        case .burst:
            if let job = job(tag.ref) { didLookInBurst(job, ClaimReply(reply)) }
        case .due: didClaimDue(tag, reply)
        case .digest: didTakeDigest(tag, count: reply[0].int64, oldestMs: reply[1].int64 ?? 0)
        case .lease:
            guard let query = leaseQueries.find(slot: tag.slot, generation: tag.generation) else { return }
            leases.store(query.gateway, epoch: reply.isNull ? nil : reply.int64, nowNanos: loop.nowNanos)
            ended(query, failed: false)
        case .members:
            if let event = event(tag.ref) { didReadMembers(event, reply) }
        case .original:
            if let event = event(tag.ref) { didReadOriginal(event, reply) }
        case .change:
            if refusal != nil { noteWritten() }
            if let change = change(tag.ref) { didReply(change, reply) }
        case .look, .lookOwner, .lookAcks:
            if let job = job(tag.ref) { didLook(job, tag, reply) }
        case .clearUser, .clearDevices, .clearBase, .clearSize, .clearOwner: didReplyClear(tag, reply)
        case .note, .push, .record, .eventRecord, .delivery, .deadLetter, .clearPush, .clearRecord:
            break
        }
    }

    func redisDidTellReplies(_ client: RedisClient) {
        known.takeAll(didRead)
        recordDenied()
        sendAllClaims()
        expandAtEndOfTurn()
        pollKafkaIfReady()
    }

    private func take(_ reply: borrowing RedisReply, _ tag: Tag, _ job: RecipientJob) {
        switch tag.stage {
        case .presence: RecipientReplies.presence(reply, into: &job.recipient)
        case .user: RecipientReplies.user(reply, into: &job.recipient)
        case .conversation: job.tokenVersion = RecipientReplies.conversation(reply, into: &job.recipient)
        case .group: RecipientReplies.member(reply, into: &job.recipient)
        case .activity: job.activityStartMs = reply.int64
        case .mark: if PairMark.isFinished(reply) { job.flags.insert(.wasFinished) }
        case .claim: return takeClaim(reply, job)
        case .owner: return takeOwner(reply, job, Int(tag.index))
        case .acks:
            job.acknowledged = StateStore.devices(reply)
            job.flags.insert(.knowsAcks)
        default: break
        }
        answered(job, failed: false)
    }

    func redis(_ client: RedisClient, didFail bits: UInt64, fault: RedisFault) {
        guard let tag = Tag(bits) else { return }
        switch tag.stage {
        case .claim where fault.refusesWrite:
            if let job = job(tag.ref) { claimRefused(job, fault) }
        case .finish where fault.isLasting:
            if let job = job(tag.ref) { job.flags.insert(.unmarked); answered(job, failed: false) }
        case .look where fault.refusesWrite:
            if let job = job(tag.ref) { lookRefused(job, Int(tag.index), fault) }
        case .presence, .group, .activity:
            // Nothing is known of it: then nobody is live there, and no level is set.
            if let job = job(tag.ref) { answered(job, failed: !isAbsent(fault)) }
        case .user where fault.isLasting, .conversation where fault.isLasting, .owner where fault.isLasting,
            .acks where fault.isLasting:
            if let job = job(tag.ref) { takeBroken(tag, fault, job) }
        case .user, .conversation, .mark, .claim, .owner, .finish, .acks:
            if tag.stage == .finish, fault.refusesWrite { noteRefusal(fault) }
            if let job = job(tag.ref) { answered(job, failed: true) }
        case .claims:
            if let batch = claimBatch(tag.ref) { didFailClaims(batch, fault) }
        case .owners:
            if let batch = claimBatch(tag.ref) { didFailOwners(batch, fault) }
        case .burst:
            if let job = job(tag.ref) { didLookInBurst(job, nil) }
        case .heldBack:
            // What is broken for good holds up nobody's mark.
            if let job = job(tag.ref) { answered(job, failed: !fault.isLasting) }
        case .due: break
        case .digest: didTakeDigest(tag, count: nil, oldestMs: 0)
        case .lease:
            guard let query = leaseQueries.find(slot: tag.slot, generation: tag.generation) else { return }
            let isUnheld = isAbsent(fault)
            if isUnheld { leases.store(query.gateway, epoch: nil, nowNanos: loop.nowNanos) }
            ended(query, failed: !isUnheld)
        case .members:
            if let event = event(tag.ref) { didFailMembers(event, fault) }
        case .original:
            if let event = event(tag.ref) { if isAbsent(fault) { expand(event) } else { retryOriginal(event) } }
        case .change:
            if fault.refusesWrite { noteRefusal(fault) }
            if let change = change(tag.ref) { didFail(change, fault) }
        case .look, .lookOwner, .lookAcks:
            if let job = job(tag.ref) { looked(job, Int(tag.index)) { $0.hasFailed = true } }
        case .clearUser, .clearDevices, .clearBase, .clearSize, .clearOwner: didFailClear(tag)
        case .note, .push, .record, .eventRecord, .delivery, .deadLetter, .clearPush, .clearRecord:
            break
        }
    }
}

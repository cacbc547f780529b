// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Kafka
import PushCore
import Redis
import Telemetry

/// Answers of Redis and of the broker, each for the component that asked.
extension Pipeline: RedisClientDelegate {
    func redis(_ client: RedisClient, didReply bits: UInt64, reply: borrowing RedisReply) {
        guard let tag = Tag(bits) else { return }
        shard.loop.stageClock?.enter(tag.stage.part)
        guard tag.stage.fits(reply.kind) else {
            let fault = RedisFault(.protocolViolation, "the reply is not of the command's kind")
            return self.redis(client, didFail: bits, fault: fault)
        }
        if shard.isRedisBehind, tag.stage.isOfUsers {
            let fault = RedisFault(.connectionLost(wasSent: true), "Redis has older data than before")
            return self.redis(client, didFail: bits, fault: fault)
        }
        switch tag.stage {
        case .presence, .user, .conversation, .group, .activity, .mark, .marks, .groupMarks: lookup.didReply(tag, reply)
        case .lease: lookup.didReadLease(tag.ref, epoch: reply.isNull ? nil : reply.int64)
        case .members: fanOut.didReadMembers(tag.ref, reply)
        case .tokenOwner: fanOut.didReadOwner(tag, reply)
        case .groupSize: fanOut.didReadSize(tag.ref, count: reply.int64)
        case .original: fanOut.didReadOriginal(tag.ref, collapseID: StateStore.keptCollapseID(reply))
        case .parkedBefore: fanOut.didReadParked(tag.ref, StateStore.parkedNote(reply))
        case .claim, .owner, .claims, .owners, .claimAdd, .claimCount, .claimLook:
            claims.didReply(tag, reply)
        case .acks where claims.isClaiming(tag.ref): claims.didReply(tag, reply)
        case .acks:
            dispatcher.didReadAcks(tag.ref, StateStore.devices(reply))
            passIfRouted(tag.ref)
        case .checkClaim, .checkOwner, .checkAcks, .checkActivity: sender.didReply(tag, reply)
        case .writeMark, .heldBack:
            noteWritten()
            recorder.didReplyToMark(tag.ref)
        case .writeMarks:
            noteWritten()
            recorder.didReplyToMarks(tag.ref)
        case .change:
            noteWritten()
            userStates.didReply(tag.ref, reply)
        case .burst: bursts.didLook(tag.ref, ClaimReply(reply))
        case .due: digests.didClaimDue(tag, reply)
        case .digest: digests.didTake(tag.ref, count: reply[0].int64, oldestMs: reply[1].int64 ?? 0)
        case .updateUser, .updateDevices, .updateBase, .updateSize, .updateOwner: badgeUpdates.didReply(tag, reply)
        case .newestBase, .newestSize: newestBadges.didReply(tag, reply)
        case .keyCount:
            let counts = StateStore.keyCounts(reply)
            counts == nil ? tokenLoss.didFailToCount(RedisFault(.protocolViolation)) : tokenLoss.didCount(counts)
        case .time: clock.didRead(StateStore.timeMs(reply))
        case .lossAccepted: didReadAcceptance(reply.string.flatMap { Int64($0) })
        case .beat: dataAge.didBeat(tag.ref, reply)
        case .beatLook: dataAge.didLookAtBeat(tag.ref.slot, count: reply.int64)
        case .endReplay: break
        case .beginCounting: didBeginCounting(reply)
        case .count: didCount(reply)
        case .note, .push, .updatePush: break
        case .record, .delivery, .deadLetter, .owedClaim, .updateRecord, .stateResult, .parkedRecipient, .parkedEvent,
            .feedback,
            .chunk:
            break
        }
    }

    func redis(_ client: RedisClient, didFail bits: UInt64, fault: RedisFault) {
        guard let tag = Tag(bits) else { return }
        switch tag.stage {
        case .presence, .user, .conversation, .group, .activity, .mark, .marks, .groupMarks: lookup.didFail(tag, fault)
        case .lease: lookup.didFailLease(tag.ref, fault)
        case .members: fanOut.didFailMembers(tag.ref, fault)
        case .tokenOwner: fanOut.didFailOwner(tag, fault)
        case .groupSize: fanOut.didFailSize(tag.ref, fault)
        case .original: fanOut.didFailOriginal(tag.ref, isAbsent: shard.countsAsAbsent(fault))
        case .parkedBefore: fanOut.didFailParked(tag.ref, isAbsent: shard.countsAsBroken(fault))
        case .claim, .owner, .claims, .owners, .claimAdd, .claimCount, .claimLook:
            claims.didFail(tag, fault)
        case .acks where claims.isClaiming(tag.ref): claims.didFail(tag, fault)
        case .acks:
            dispatcher.didFailAcks(tag.ref, fault)
            passIfRouted(tag.ref)
        case .checkClaim, .checkOwner, .checkAcks, .checkActivity: sender.didFail(tag, fault)
        case .writeMark, .heldBack: recorder.didFailToMark(tag.ref, fault)
        case .writeMarks: recorder.didFailToWriteGroupMarks(tag.ref, fault)
        case .change: userStates.didFail(tag.ref, fault)
        case .burst: bursts.didLook(tag.ref, nil)
        case .digest: digests.didTake(tag.ref, count: nil, oldestMs: 0)
        case .updateUser, .updateDevices, .updateBase, .updateSize, .updateOwner: badgeUpdates.didFail(tag, fault)
        case .newestBase, .newestSize: newestBadges.didFail(tag)
        case .due: digests.didFailDue(fault)
        case .keyCount: tokenLoss.didFailToCount(fault)
        case .time: clock.didFailToAsk(fault)
        case .lossAccepted: didReadAcceptance(nil)
        case .endReplay, .beatLook: break
        case .beat: dataAge.didFailToBeat(tag.ref.slot, fault)
        case .beginCounting, .count: didFailToCount(statistics: fault)
        case .note: dispatcher.didFailNote(tag.ref, fault)
        case .push, .updatePush: break
        case .record, .delivery, .deadLetter, .owedClaim, .updateRecord, .stateResult, .parkedRecipient, .parkedEvent,
            .feedback,
            .chunk:
            break
        }
        shard.requestTurn()
    }

    func redisDidDeliverReplies(_ client: RedisClient) { shard.requestTurn() }

    func redis(_ client: RedisClient, didChange state: RedisClient.State) {
        guard state == .ready else { return }
        // Reported before a write meets it, and again with each check whether it is still a replica. For a cluster node
        // the map decides its role.
        if !shard.store.client.isCluster, client.server.isReplica ?? false {
            shard.writes.refused(RedisFault(.readOnly), nowNanos: shard.nowNanos)
        }
        // Before anything is read over this link: its answer comes first.
        dataAge.beat()
        tokenLoss.linkIsReady()
        userStates.serverMayHaveChanged()
        lookup.readPostponed(evenIfEarly: true)
        shard.requestTurn()
    }

    /// The acks are known, so that later recipients of its conversation may continue.
    private func passIfRouted(_ ref: WorkRef) {
        if let job = work.recipient(ref), job.candidate == nil { lookup.passed(job) }
    }

    /// - Parameter atMs: when an operator accepted a loss, by the server's clock, Unix ms; nil: nobody did.
    private func didReadAcceptance(_ atMs: Int64?) {
        tokenLoss.didReadAcceptance(atMs)
        if let atMs { dataAge.didReadAcceptance(atMs) }
    }

    private func noteWritten() {
        if shard.writes.refusal != nil { shard.writes.taken(nowNanos: shard.nowNanos) }
    }
}

extension Pipeline {
    /// The broker has a record (or it was given up with a log line).
    func didSettleRecord(_ bits: UInt64) {
        guard let tag = Tag(bits) else { return }
        switch tag.stage {
        case .record, .parkedRecipient: recorder.didSettleRecord(tag.ref)
        case .delivery:
            guard let event = work.event(tag.ref) else { return }
            for waiting in recorder.didSettleDelivery(event) { dispatcher.endIfComplete(waiting) }
            release(event)
        case .chunk:
            guard let event = planner.didSettle(tag.ref) else { return }
            release(event)
        case .feedback: recorder.didSettleFeedback(tag.ref)
        case .updateRecord: badgeUpdates.didSettleRecord(tag.ref)
        case .owedClaim: recorder.didStoreOwedClaim(tag.ref)
        case .parkedEvent: parking.didSettle(tag.ref)
        case .deadLetter, .stateResult: userStates.didSettle(tag.ref)
        default: return
        }
        shard.requestTurn()
    }

    /// The broker will never accept a record. A record to be parked stays in memory; any other ends with that.
    func didGiveUpRecord(_ bits: UInt64) {
        guard let tag = Tag(bits) else { return }
        switch tag.stage {
        case .parkedRecipient: dispatcher.stay(tag.ref)
        case .parkedEvent: parking.didGiveUp(tag.ref)
        case .chunk: planner.didGiveUp(tag.ref)
        default: didSettleRecord(bits)
        }
    }
}

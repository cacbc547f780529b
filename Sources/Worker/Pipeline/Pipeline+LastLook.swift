import EventLoop
import PushCore
import Redis
import Telemetry

/// Step 15 for a push that had to wait: behind another of its device, for `limits.rate`, or for room in the client.
///
/// What the claim saw is old by then: the message may be read or recalled, the token another user's, the badge another
/// number. A push that goes at once needs no second look.
extension Pipeline {
    /// How old the last look may be; shorter than anyone can move a phone from one account to another.
    private static let freshNanos: UInt64 = 100_000_000

    func needsLook(_ job: RecipientJob, _ index: Int) -> Bool {
        loop.nowNanos &- job.devices[index].checkedNanos > Self.freshNanos
    }

    /// Claims again, which counts nothing again, and asks whose the token is; `makeReady` goes on when both are in. Of one
    /// whose connection did not acknowledge in time, it asks whether it has since.
    func lookAgain(_ job: RecipientJob, _ index: Int) {
        guard let token = job.devices[index].token else { return }
        let asksAcks = !job.suspects.isEmpty
        job.devices[index].look = LastLook(awaiting: asksAcks ? 3 : 2)
        do throws(RedisFault) {
            try store.claim(ClaimRequest(job, nowMs: loop.wallMs), tag: job.tag(.look, index))
        } catch {
            job.devices[index].look = nil
            return lookLater(job, index)
        }
        do throws(RedisFault) {
            try store.owner(app: job.event.app.id, token: token.record.hex, tag: job.tag(.lookOwner, index))
        } catch {
            looked(job, index) { $0.hasFailed = true }
        }
        guard asksAcks else { return }
        do throws(RedisFault) {
            try store.acks(
                app: job.event.app.id, uid: job.recipient.uid, msgID: job.event.msgID, tag: job.tag(.lookAcks, index))
        } catch {
            looked(job, index) { $0.hasFailed = true }
        }
    }

    func didLook(_ job: RecipientJob, _ tag: Tag, _ reply: borrowing RedisReply) {
        let index = Int(tag.index)
        guard index < job.devices.count, let token = job.devices[index].token else { return }
        if tag.stage == .lookOwner {
            let isOwned = OwnerReply.allows(reply, uid: job.recipient.uid, token: token)
            return looked(job, index) { $0.facts.isTokenOwned = isOwned }
        }
        if tag.stage == .lookAcks {
            let isAcknowledged = StateStore.devices(reply).contains(job.devices[index].route.device)
            return looked(job, index) { $0.isAcknowledged = isAcknowledged }
        }
        guard let claim = ClaimReply(reply) else { return looked(job, index) { $0.hasFailed = true } }
        job.devices[index].badge = badge(claim, of: job)
        looked(job, index) { look in
            look.isFinished = claim.state == .finished
            look.facts.isRead = claim.isRead
            look.facts.isRevoked = claim.isRevoked
        }
    }

    /// One of the answers.
    func looked(_ job: RecipientJob, _ index: Int, _ note: (inout LastLook) -> Void) {
        guard index < job.devices.count, var look = job.devices[index].look else { return }
        note(&look)
        look.awaiting -= 1
        job.devices[index].look = look.awaiting == 0 ? nil : look
        guard look.awaiting == 0, job.isPushing(index) else { return }
        if look.hasFailed { return lookLater(job, index) }
        if look.isFinished { return leaveToOther(job, index) }
        if look.isAcknowledged {
            end(job, index, verdict: .online, reason: Reason.acked.rawValue)
            leaveLane(job.devices[index].token?.record.hex ?? "")
            return concludeIfEnded(job)
        }
        if let reason = look.facts.reason(expireAtMs: job.event.expiresAtMs, now: loop.wallMs) {
            return stop(job, index, reason)
        }
        job.devices[index].checkedNanos = loop.nowNanos
        makeReady(DeviceRef(job: job.ref, device: index))
    }

    private func lookLater(_ job: RecipientJob, _ index: Int) {
        metrics.redisRetries.add()
        schedule(
            .turn(DeviceRef(job: job.ref, device: index)),
            dueNanos: loop.nowNanos &+ UInt64.random(in: 100_000_000...300_000_000))
    }

    /// The next owner of the partition has finished the pair meanwhile.
    private func leaveToOther(_ job: RecipientJob, _ index: Int) {
        end(job, index, verdict: .suppressed, reason: Reason.ok.rawValue, isRecorded: false)
        job.flags.insert(.unmarked)
        leaveLane(job.devices[index].token?.record.hex ?? "")
        concludeIfEnded(job)
    }
}

/// The answers that a waiting push needs before it goes.
struct LastLook {
    var awaiting: Int
    var hasFailed = false
    var isFinished = false
    var isAcknowledged = false
    var facts = Recheck()
}

import EventLoop
import JSON
import PushCore

/// The SMS supplement (mPaaS): asked for where the sender allows it and no other way reaches the user.
extension Pipeline {
    /// Notes for this round whether a device of the user is live: then no SMS is asked for, whatever becomes of pushes.
    func noteLiveness(of job: RecipientJob, nowMs: Int64) {
        guard job.event.wantsSMS else { return }
        if job.recipient.presence.contains(where: { $0.liveness(at: nowMs).isLive }) {
            job.flags.insert(.live)
        } else {
            job.flags.remove(.live)
        }
    }

    /// Notes an end that leaves its device without the alert; what was read, recalled or is over needs none.
    func noteFailure(of job: RecipientJob, verdict: Verdict, reason: String) {
        let isFailure =
            switch verdict {
            case .rejected: true
            case .suppressed: Self.failures.contains(reason)
            case .accepted, .expired, .online, .parked: false
            }
        if isFailure { job.flags.insert(.failed) }
    }

    private static var failures: [String] {
        [Reason.payloadTooLarge.rawValue, Reason.tokenMoved.rawValue, Reason.noToken.rawValue]
    }

    /// Every push failed.
    func offerSMSIfAllFailed(_ job: RecipientJob) {
        guard job.event.wantsSMS, job.flags.contains(.failed), !job.flags.contains(.accepted) else { return }
        offerSMS(job, reason: "all_failed")
    }

    /// Once per (event, user), in time, and not while a device is live.
    func offerSMS(_ job: RecipientJob, reason: String) {
        guard job.event.wantsSMS, job.flags.isDisjoint(with: [.live, .offeredSMS]),
            job.event.expiresAtMs > loop.wallMs
        else { return }
        job.flags.insert(.offeredSMS)
        var writer = JSONWriter(reservingCapacity: 256)
        writer.beginObject()
        writer.member("v", 1)
        writer.member("app", job.event.app.id)
        writer.member("event_id", job.event.id)
        writer.member("msg_id", job.event.msgID)
        writer.member("uid", job.recipient.uid)
        writer.member("reason", reason)
        writer.member("at_ms", loop.wallMs)
        writer.endObject()
        job.unackedRecords += 1
        outbox?.send(topics.sms, key: job.recipient.uid, value: writer, tag: job.tag(.record))
    }
}

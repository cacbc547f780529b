import EventLoop
import JSON
import PushCore

/// The SMS supplement (mPaaS): asked for where the sender allows it and no other way reaches the user.
extension Recorder {
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
            job.event.expiresAtMs > shard.nowMs
        else { return }
        job.flags.insert(.offeredSMS)
        var writer = JSONWriter(reservingCapacity: 256)
        writer.beginObject()
        writer.member("v", 1)
        writer.member("app", job.event.app.id)
        writer.member("event_id", job.event.id)
        writer.member("msg_id", job.event.msgID)
        writer.member("uid", job.uid)
        writer.member("reason", reason)
        writer.member("at_ms", shard.nowMs)
        writer.endObject()
        job.machine.recordSent()
        outbox.send(topics.sms, key: job.uid, value: writer, tag: job.tag(.record))
    }
}

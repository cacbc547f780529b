// SPDX-License-Identifier: Apache-2.0
import EventLoop
import JSON
import Payload
import PushCore

extension DeviceWork {
    fileprivate var isPush: Bool { if case .apns = route.way { true } else { false } }
    fileprivate var showsNoAlerts: Bool { route.way == .none(.alertsOff) }
}

extension RecipientJob {
    /// Nothing but devices that show no alerts is left: their tokens are of no use, as none would be.
    fileprivate var showsNoAlerts: Bool {
        devices.contains(where: \.showsNoAlerts) && devices.allSatisfy { $0.showsNoAlerts || $0.phase == .replaced }
    }
}

/// The SMS supplement (mPaaS): requested if the sender allows it and no other way reaches the user.
extension Recorder {
    /// Notes an end without the alert. A read, revoked or ended message needs none.
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

    /// Every push failed, or no device had a usable token.
    func offerSMSIfAllFailed(_ job: RecipientJob) {
        guard job.flags.contains(.failed) else { return job.showsNoAlerts ? offerSMS(job, .noToken) : () }
        offerSMS(job, job.parking != nil || job.devices.contains(where: \.isPush) ? .allFailed : .noToken)
    }

    /// Once per (event, user), in time, not while a device is live, and not for a user that was reached otherwise.
    func offerSMS(_ job: RecipientJob, _ reason: SMSRecord.Reason) {
        guard job.event.wantsSMS, job.flags.isDisjoint(with: [.live, .offeredSMS, .accepted, .reached]),
            job.event.expiresAtMs > shard.nowMs, let message = job.event.message
        else { return }
        job.flags.insert(.offeredSMS)
        let app = job.event.app
        let text = message.read { message in
            ShownText(
                message,
                variant: PayloadVariant(
                    message, tokens: job.smsTokens, settings: job.settings, isForced: job.isForced,
                    defaultLanguage: app.policy.defaultLanguage),
                rules: PayloadRules(message, policy: app.policy), templates: app.templates)
        }
        let record = SMSRecord(
            app: app.id, eventID: job.event.id, msgID: job.event.msgID, uid: job.uid, reason: reason,
            phone: job.settings.phone, text: text, atMs: shard.nowMs)
        var writer = JSONWriter(reservingCapacity: 512)
        record.write(to: &writer)
        job.machine.recordSent()
        outbox.send(topics.sms, key: job.uid, value: writer, tag: job.tag(.record))
    }
}

import EventLoop
import PushCore
import Redis
import Telemetry

/// What happened, kept for `carillon trace`: one command per (event, user), in the batch that marks it finished.
extension Pipeline {
    /// Adds an outcome to the recipient's trace.
    func note(_ outcome: OutcomeRecord, of job: RecipientJob) {
        let nowMs = loop.wallMs
        if job.trace == nil {
            guard traces.covers(app: job.event.app.id, uid: job.recipient.uid) else { return }
            job.trace = TraceBytes(
                atMs: nowMs, sentMs: job.event.sentMs, kind: job.event.claimKind, msgID: job.event.msgID,
                eventID: job.event.id, facts: job.facts, isResumed: job.flags.contains(.resumed))
            job.traceDay = TracePlan.day(of: nowMs)
        }
        job.trace?.append(outcome, nowMs: nowMs)
    }

    /// What a device waits for, or waited for in vain: told in the trace alone, since nothing has ended.
    func noteWait(_ job: RecipientJob, _ index: Int, _ why: TraceWait) {
        if traces.isOff { return }
        note(
            OutcomeRecord(
                uid: job.recipient.uid, device: job.devices[index].route.device, verdict: .parked,
                reason: why.rawValue), of: job)
    }

    /// One of the commands of the present step.
    func sendTrace(_ job: RecipientJob) {
        guard let trace = job.trace else { return }
        ask(job) { (store) throws(RedisFault) in
            try store.trace(
                app: job.event.app.id, uid: job.recipient.uid, day: job.traceDay, record: trace.bytes,
                tag: job.tag(.trace))
        }
    }

    /// A new list gets its life, a long one is cut. A step that was taken again may have made the list before.
    func traced(_ job: RecipientJob, count: Int64) {
        let app = job.event.app.id
        if traces.isTooLong(count) {
            try? store.trimTrace(
                app: app, uid: job.recipient.uid, day: job.traceDay, cap: traces.cap, tag: job.tag(.note))
        }
        if count == 1 || job.retries > 0 {
            job.awaiting += 1
            ask(job) { (store) throws(RedisFault) in
                try store.expireTrace(
                    app: app, uid: job.recipient.uid, day: job.traceDay,
                    seconds: traces.keySeconds(day: job.traceDay, nowMs: loop.wallMs), tag: job.tag(.traceLife))
            }
        }
        answered(job, failed: false)
    }

    /// The connection was lost: all of the step is taken again. A server that refuses the command would do so for ever,
    /// and a trace holds up nobody's mark.
    func traceFailed(_ job: RecipientJob, _ fault: RedisFault) {
        switch fault.code {
        case .wrongType, .refused, .authentication, .outOfMemory, .moved:
            metrics.traceFailures.add()
            job.trace = nil
            answered(job, failed: false)
        default:
            answered(job, failed: true)
        }
    }
}

/// Reasons that only a trace has.
enum TraceWait: String {
    /// Delivered by a connection that did not acknowledge in time; the decision was taken again.
    case noAck = "no_ack"
    /// The user's desktop comes first.
    case desktopFirst = "desktop_first"
    /// The window of a burst is open.
    case burst
}

import EventLoop
import PushCore

/// What happened, kept for `carillon trace`: some bytes in the mark that is written anyway, no command more.
extension Pipeline {
    /// Adds an outcome to the recipient's trace.
    func note(_ outcome: OutcomeRecord, of job: RecipientJob) {
        let nowMs = loop.wallMs
        if job.trace == nil {
            guard
                traces.covers(app: job.event.app.id, uid: job.recipient.uid) || TracePlan.isFailure(outcome.verdict)
            else { return }
            job.trace = TraceBytes(
                atMs: nowMs, sentMs: job.event.sentMs, id: job.event.subject.id, msgID: job.event.msgID,
                eventID: job.event.id, facts: job.facts, isResumed: job.flags.contains(.resumed))
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

// SPDX-License-Identifier: Apache-2.0
import EventLoop
import PushCore

/// Makes the decision of contract section 5 for a candidate with complete reads.
struct Decider {
    private let shard: ShardContext

    init(_ shard: ShardContext) {
        self.shard = shard
    }

    /// Decides, and stores the decision in the candidate. Returns false if there is nothing to do and nothing to
    /// record.
    func decide(_ job: RecipientJob, _ candidate: Candidate) -> Bool {
        let event = job.event
        noteLiveness(of: job, candidate)
        let decision: Decision
        if event.isBroadcast, let channel = event.content?.activity?.channel {
            candidate.recipient.tokens = [event.app.token(ofChannel: channel, sentMs: event.sentMs)]
        }
        if job.uid.isEmpty, !event.isBroadcast {
            decision = Decision(alert: .deny(event.reasonForNobody), counted: false, routes: [])
        } else if let digest = event.digest {
            guard let told = decideDigest(digest, job, candidate) else { return false }
            decision = told
        } else if let message = event.message {
            decision = decide(message, job, candidate)
        } else if let activity = event.content?.activity {
            decision = PushCore.decide(
                activity, sentMs: event.sentMs, for: candidate.recipient, state: candidate.activity,
                now: shard.nowMs)
        } else {
            shard.mistake("a decision without the content of its event")
            return false
        }
        candidate.decision = decision
        if decision.counted, !job.isCounted, job.isDecided { job.flags.insert(.countedLate) }
        job.isCounted = decision.counted || job.owesCount
        job.settings = candidate.recipient.settings
        if decision.alert == .allow(forced: true) { job.flags.insert(.forced) } else { job.flags.remove(.forced) }
        return true
    }

    private func decide(_ message: SharedMessage, _ job: RecipientJob, _ candidate: Candidate) -> Decision {
        let event = job.event
        // Loaded outside the closure, where a use of the policy would copy it.
        let rules = event.app.rules
        if event.isRevokedBefore { candidate.recipient.isRevoked = true }
        var decision = message.read { message in
            PushCore.decide(
                message, sentMs: event.sentMs, for: candidate.recipient, policy: rules.policy, zones: shard.zones,
                now: shard.nowMs, facts: &job.facts)
        }
        if event.isRevokedBefore { decision.counted = false }
        return decision
    }

    /// The result of `decide` from the reads so far, if it is a denial that nothing else can change.
    func denial(of job: RecipientJob, _ candidate: Candidate) -> Decision? {
        guard candidate.recipient.presence.isEmpty, let message = job.event.message else { return nil }
        let decision = decide(message, job, candidate)
        guard case .deny(let reason) = decision.alert, reason != .expired, !decision.counted else { return nil }
        return decision
    }

    /// Whether a device of the user is live: then no SMS is requested, whatever happens to pushes.
    private func noteLiveness(of job: RecipientJob, _ candidate: Candidate) {
        if !job.event.wantsSMS { return }
        let now = shard.nowMs
        if candidate.recipient.presence.contains(where: { $0.liveness(at: now).isLive }) {
            job.flags.insert(.live)
        } else {
            job.flags.remove(.live)
        }
    }

    /// - Returns: nil if not now: active DND defers it, and a user with an open app sees the messages anyway.
    private func decideDigest(_ digest: DigestJob, _ job: RecipientJob, _ candidate: Candidate) -> Decision? {
        let event = job.event
        guard let message = event.message else { return nil }
        // Levels belong to conversations. Those of the digest's messages allowed them.
        var policy = digest.app.policy
        policy.defaultLevels = [:]
        candidate.recipient.settings.levels = [:]
        let now = shard.nowMs
        let decision = message.read { message in
            PushCore.decide(
                message, sentMs: event.sentMs, for: candidate.recipient, policy: policy, zones: shard.zones, now: now,
                facts: &job.facts)
        }
        if decision.alert == .deny(.dnd) {
            digest.putOffToMs = DNDState.endMs(
                for: candidate.recipient, policy: policy, zones: shard.zones, now: now)
            return nil
        }
        return candidate.recipient.hasMobileInForeground(at: now) ? nil : decision
    }
}

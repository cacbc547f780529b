// SPDX-License-Identifier: Apache-2.0
import PushCore

/// One recipient with the decision and the claim's answer.
struct RecipientContext {
    let event: EventContext
    /// The form that the worker uses.
    let job: RecipientJob
    let recipient: Recipient
    /// Why a device's presence is void.
    let presenceNotes: [String: String]
    /// After the claim.
    let plan: Plan
    let claim: ClaimReply
    /// Steps that all devices of the recipient share.
    var steps: [Explanation.Step] = []
    /// One per route, in order.
    var routeSteps: [Explanation.Step] = []
    var tokenStep: Explanation.Step?

    init(
        event: EventContext, job: RecipientJob, recipient: Recipient, presenceNotes: [String: String],
        plan: Plan, claim: ClaimReply
    ) {
        self.event = event
        self.job = job
        self.recipient = recipient
        self.presenceNotes = presenceNotes
        self.plan = plan
        self.claim = claim
    }

    var decision: Decision { plan.decision }

    /// The decision's steps in the contract's order: its first one, the time, comes before audience and claim.
    mutating func take(_ trace: RecordedTrace, after steps: [Explanation.Step]) {
        self.steps = steps
        for entry in trace.steps {
            let step = Explanation.Step(entry)
            switch entry.step {
            case .routes: routeSteps.append(step)
            case .token: tokenStep = step
            case .expiry: self.steps.insert(step, at: min(1, self.steps.count))
            default: self.steps.append(step)
            }
        }
    }

    /// Nil if no SMS is requested.
    var smsStep: Explanation.Step? {
        let now = event.now
        let isLive = recipient.presence.contains { $0.liveness(at: now).isLive }
        guard event.job.wantsSMS, !isLive else { return nil }
        return Explanation.Step(17, "sms", input: "push.sms", outcome: "an SMS is requested on push.sms")
    }
}

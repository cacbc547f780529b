// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore
import Redis

/// One recipient: the facts, the decision, the claim's answer, and the result for each device.
extension Explainer {
    func explain(
        _ member: Audience.Member, _ context: EventContext
    ) async throws(RedisFault) -> [Explanation] {
        var steps = [context.first]
        if let message = context.job.message?.value {
            let step = Self.audienceStep(member.uid, of: message)
            steps.append(step)
            if !step.passes {
                return [
                    Explanation(
                        uid: member.uid, verdict: Verdict.suppressed.rawValue, reason: step.outcome, steps: steps)
                ]
            }
        }
        var found = try await recipient(member, context.job)
        if let channel = context.job.content?.activity?.channel {
            found.recipient.tokens = [
                context.app.context.token(
                    ofChannel: channel, context.app.settings.environment, sentMs: context.event.sentMs)
            ]
        }
        var trace = RecordedTrace()
        let decision = try await decide(context, found.recipient, &trace)
        let job = RecipientJob(event: context.job, uid: member.uid, candidate: Candidate(uid: member.uid, order: 0))
        job.isCounted = decision.counted
        job.settings = found.recipient.settings
        job.facts = trace.facts
        if decision.alert == .allow(forced: true) { job.flags.insert(.forced) }
        job.candidate?.decision = decision
        var request = job.claimRequest(nowMs: context.now)
        request.withoutDevice = job.withoutDevice
        let claim = try await store.claimDryRun(request)
        job.note(claim, isFirst: true)
        steps.append(claim.step(of: context.job.subject))
        if claim.state == .ended { return [.duplicate(member.uid, steps)] }
        var user = RecipientContext(
            event: context, job: job, recipient: found.recipient, presenceNotes: found.notes,
            decision: decision.withoutAlerts(isRead: claim.isRead, isRevoked: claim.isRevoked).repeating(
                claim.withoutDevice), claim: claim)
        user.take(trace, after: steps)
        if let step = try await revokeStep(claim, member.uid, context.job) { user.steps.append(step) }
        if claim.state == .resume {
            user.earlier.accepted = claim.accepted
            user.earlier.addressed = claim.addressedDevices
            user.earlier.mayHaveRecords = claim.withoutDevice == nil
            if context.job.message != nil {
                user.earlier.acknowledged = try await store.acks(
                    app: context.event.app, uid: member.uid, msgID: context.job.msgID)
            }
            user.decision = user.decision.including(
                user.earlier, allowed: Self.addressedDevices(context, found.recipient))
        }
        return try await explain(user)
    }

    private static func addressedDevices(_ context: EventContext, _ recipient: Recipient) -> [String] {
        switch context.event.body {
        case .message(let message):
            PushCore.addressedDevices(
                message.value, of: recipient, policy: context.app.context.policy, now: context.now)
        case .liveActivity(let activity): activity.addressedDevices(of: recipient)
        case .userState: []
        }
    }

    private static func audienceStep(_ uid: String, of message: borrowing Message) -> Explanation.Step {
        let isMeant = message.isMeant(for: uid)
        return Explanation.Step(
            4, "audience",
            input: "from \(message.from.uid), \(message.to.exclude.count) excluded" + limit(of: message.to),
            outcome: isMeant ? "a recipient" : uid.isSame(as: message.from.uid) ? "sender" : "excluded", passes: isMeant
        )
    }

    private static func limit(of audience: Message.Audience) -> String {
        let devices = audience.limit?.devices.map { "; only \($0.count) devices" } ?? ""
        return devices + (audience.limit?.tokens.map { "; only the devices of \($0.count) tokens" } ?? "")
    }

    // MARK: - Facts

    /// Also returns why a device's presence is void.
    private func recipient(
        _ member: Audience.Member, _ event: EventJob
    ) async throws(RedisFault) -> (recipient: Recipient, notes: [String: String]) {
        var recipient = try await store.recipient(
            app: event.app.id, uid: member.uid, conversation: event.conversationID,
            group: event.readsLevels ? event.conversationID : nil)
        if let level = member.level { recipient.groupLevel = level }
        recipient.isRevoked = event.isRevokedBefore
        var leases = LeaseCache(lifetimeNanos: .max)
        var notes: [String: String] = [:]
        for presence in recipient.presence where presence.state != .off {
            let epoch = try await store.lease(presence.gateway)
            leases.store(presence.gateway, epoch: epoch, nowNanos: 0)
            guard epoch != presence.gatewayEpoch else { continue }
            let held = epoch.map { "epoch \($0)" } ?? "no lease"
            notes[presence.device] =
                "; void: gateway \(presence.gateway) holds \(held), presence is of epoch \(presence.gatewayEpoch)"
        }
        leases.apply(to: &recipient, nowNanos: 0)
        return (recipient, notes)
    }

    private func decide(
        _ context: EventContext, _ recipient: Recipient, _ trace: inout RecordedTrace
    ) async throws(RedisFault) -> Decision {
        switch context.event.body {
        case .message(let message):
            return PushCore.decide(
                message.value, sentMs: context.event.sentMs, for: recipient, policy: context.app.context.policy,
                zones: zones, now: context.now, trace: &trace)
        case .liveActivity(let activity):
            var state = ActivityState()
            if let updated = context.job.updatedActivityID {
                state = try await store.activityState(
                    app: context.event.app, uid: recipient.uid, activityID: updated)
            }
            return PushCore.decide(
                activity, sentMs: context.event.sentMs, for: recipient, state: state, now: context.now,
                trace: &trace)
        case .userState:
            return Decision(alert: .deny(.ok), counted: false, routes: [])
        }
    }

    /// The effect of a revoke on the badge, whatever happens to its alert; nil for other events.
    private func revokeStep(
        _ claim: ClaimReply, _ uid: String, _ event: EventJob
    ) async throws(RedisFault) -> Explanation.Step? {
        guard let revoke = event.subject.revoke else { return nil }
        let target = try await store.mark(app: event.app.id, uid: uid, kind: .message, id: revoke.targetMsgID)
        let known =
            target.map { $0.isRevoked ? "revoked before" : $0.state == nil ? "not arrived yet" : "taken up" }
            ?? "not known"
        var outcome: String
        switch revoke.badge {
        case .decrease:
            outcome = claim.lowered ? "lowers the badge" : "the badge stays: no counted and unread message is revoked"
        case .keep: outcome = "the badge stays"
        case .count: outcome = "counted as a message of its own"
        }
        if let badge = claim.badge { outcome += "; it is \(badge)" }
        if claim.owesClear { outcome += ", and is sent to the devices that were pushed" }
        return Explanation.Step(
            10, "revoke", input: "of \(revoke.targetMsgID), which is \(known); badge \(revoke.badge.rawValue)",
            outcome: outcome)
    }

    // MARK: - Devices

    private func explain(_ user: RecipientContext) async throws(RedisFault) -> [Explanation] {
        var explanations: [Explanation] = []
        let last = user.tokenStep.map { [$0] } ?? []
        // The push of an earlier try is the verdict, whatever the present decision is.
        for push in user.claim.accepted
        where !user.decision.routes.contains(where: { $0.device.isSame(as: push.device) }) {
            explanations.append(.duplicate(user.job.uid, device: push.device, user.steps))
        }
        let haveVerdicts =
            user.earlier.haveVerdicts || (user.earlier.mayHaveRecords && !user.decision.routes.isEmpty)
        if let reason = user.decision.reasonWithoutDevice(hasDeviceVerdicts: haveVerdicts) {
            let verdict = Verdict(ofEnd: reason)
            var steps = user.steps + (reason == .noToken || reason == .activityOver ? last : [])
            if reason == .noToken, let step = user.smsStep { steps.append(step) }
            if let step = digestStep(user) { steps.append(step) }
            explanations.append(
                Explanation(uid: user.job.uid, verdict: verdict.rawValue, reason: reason.rawValue, steps: steps))
        }
        for (index, route) in user.decision.routes.enumerated() {
            var steps = user.steps
            if user.routeSteps.indices.contains(index) {
                var step = user.routeSteps[index]
                step.input += user.presenceNotes[route.device] ?? ""
                steps.append(step)
            }
            if index == 0, user.decision.reachesNoAlert, let step = user.smsStep { steps.append(step) }
            explanations.append(try await explain(DeviceContext(user: user, route: route), steps + last))
        }
        return explanations
    }

    /// - Returns: nil if the app sends no digests, or if this message does not belong into one.
    private func digestStep(_ user: RecipientContext) -> Explanation.Step? {
        let app = user.event.app.context
        guard app.sendsDigest, let message = user.event.job.message?.value,
            let endMs = DigestRule.endMs(
                message, user.decision, for: user.recipient, policy: app.policy, zones: zones, now: user.event.now)
        else { return nil }
        return Explanation.Step(
            17, "digest", input: "DND ends \(InstantText.text(ms: endMs))",
            outcome: "part of the digest then, if still unread")
    }
}

/// One recipient with the decision and the claim's answer.
struct RecipientContext {
    let event: EventContext
    /// The form that the worker uses.
    let job: RecipientJob
    let recipient: Recipient
    /// Why a device's presence is void.
    let presenceNotes: [String: String]
    /// After the claim.
    var decision: Decision
    let claim: ClaimReply
    /// The results of an earlier try for the devices.
    var earlier = EarlierDevices()
    /// Steps that all devices of the recipient share.
    var steps: [Explanation.Step] = []
    /// One per route, in order.
    var routeSteps: [Explanation.Step] = []
    var tokenStep: Explanation.Step?

    init(
        event: EventContext, job: RecipientJob, recipient: Recipient, presenceNotes: [String: String],
        decision: Decision, claim: ClaimReply
    ) {
        self.event = event
        self.job = job
        self.recipient = recipient
        self.presenceNotes = presenceNotes
        self.decision = decision
        self.claim = claim
    }

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

extension ClaimReply {
    /// Step 5.
    func step(of subject: ClaimSubject) -> Explanation.Step {
        let outcome: String
        switch state {
        case .fresh: outcome = isRevoked ? "new, and revoked before it came" : "new"
        case .resume:
            let done = accepted.map(\.device)
            outcome =
                "begun and not ended: it is resumed"
                + (done.isEmpty ? "" : "; pushed before: \(done.joined(separator: " "))")
        case .ended: outcome = "a repeat, ended for this user: nothing is sent, counted or recorded again"
        }
        return Explanation.Step(
            5, "duplicate", input: "\(subject.kind.word) \(subject.id)", outcome: outcome, passes: state != .ended)
    }
}

extension PairKind {
    /// In words for people.
    var word: String {
        switch self {
        case .message: "message"
        case .revoke: "revoke"
        case .liveActivity: "live activity event"
        }
    }
}

extension Explanation.Step {
    init(_ entry: RecordedTrace.Entry) {
        self.init(
            entry.step.rawValue, entry.step.title, input: entry.input, outcome: entry.outcome,
            passes: Reason(rawValue: entry.outcome) == nil)
    }
}

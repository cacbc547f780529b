import PushCore
import Redis

/// One recipient: what is known of him, the decision, and what it means for each device.
extension Explainer {
    func explain(
        _ member: Audience.Member, _ context: RecordContext
    ) async throws(RedisFault) -> [Explanation] {
        var steps = [context.first]
        if let message = context.message {
            let reason = Self.leftOut(member.uid, by: message)
            steps.append(
                Explanation.Step(
                    4, "audience", input: "from \(message.from.uid), \(message.to.exclude.count) excluded",
                    outcome: reason ?? "meant", passes: reason == nil))
            if let reason {
                return [suppressed(member.uid, reason: reason, steps)]
            }
        }
        let mark = try await desk.mark(
            app: context.event.app, uid: member.uid, kind: context.claimKind, id: context.claimID)
        steps.append(Self.markStep(mark, context))
        if mark?.state == .finished {
            return [Explanation(uid: member.uid, verdict: "duplicate", reason: "duplicate", steps: steps)]
        }
        var user = try await recipient(member, context)
        let decision = try await decide(context, &user, &steps)
        if let step = try await recallStep(member.uid, context) { steps.append(step) }
        return try await explain(decision, of: user, context, mark, steps)
    }

    private static func leftOut(_ uid: String, by message: borrowing Message) -> String? {
        if uid == message.from.uid { return "sender" }
        return message.to.excludes(uid) ? "excluded" : nil
    }

    private func suppressed(_ uid: String, reason: String, _ steps: [Explanation.Step]) -> Explanation {
        Explanation(uid: uid, verdict: Verdict.suppressed.rawValue, reason: reason, steps: steps)
    }

    private static func markStep(_ mark: PairMark?, _ context: RecordContext) -> Explanation.Step {
        let outcome: String
        switch mark?.state {
        case nil: outcome = mark == nil ? "new" : "new, known as revoked"
        case .fresh?, .resume?:
            let done = mark?.acceptedDevices ?? []
            outcome = "unfinished, resumes" + (done.isEmpty ? "" : "; done before: \(done.joined(separator: " "))")
        case .finished?: outcome = "finished before"
        }
        return Explanation.Step(
            5, "duplicate", input: "\(context.claimKind.word) \(context.claimID)", outcome: outcome,
            passes: mark?.state != .finished)
    }

    // MARK: - Facts

    private func recipient(
        _ member: Audience.Member, _ context: RecordContext
    ) async throws(RedisFault) -> RecipientFacts {
        let conversation = context.message?.conversation
        let group = member.level == nil && conversation?.type.hasMembers == true ? conversation?.id : nil
        var recipient = try await desk.recipient(
            app: context.event.app, uid: member.uid, conversation: conversation?.id ?? "", group: group)
        if let level = member.level { recipient.groupLevel = level }
        var leases = LeaseCache(lifetimeNanos: .max)
        var notes: [String: String] = [:]
        for presence in recipient.presence where presence.state != .off {
            let epoch = try await desk.lease(presence.gateway)
            leases.store(presence.gateway, epoch: epoch, nowNanos: 0)
            guard epoch != presence.gatewayEpoch else { continue }
            let held = epoch.map { "epoch \($0)" } ?? "no lease"
            notes[presence.device] =
                "; void: gateway \(presence.gateway) holds \(held), presence is of epoch \(presence.gatewayEpoch)"
        }
        leases.apply(to: &recipient, nowNanos: 0)
        return RecipientFacts(recipient: recipient, presenceNotes: notes)
    }

    private func decide(
        _ context: RecordContext, _ user: inout RecipientFacts, _ steps: inout [Explanation.Step]
    ) async throws(RedisFault) -> Decision {
        switch context.event.body {
        case .message(let message):
            var trace = RecordedTrace()
            let decision = PushCore.decide(
                message.value, sentMs: context.event.sentMs, for: user.recipient, policy: context.app.policy,
                zones: zones, now: context.now, trace: &trace)
            take(trace, &user, &steps)
            return decision
        case .liveActivity(let activity):
            let started = try await desk.activityStart(
                app: context.event.app, uid: user.recipient.uid, activityID: activity.activityID)
            var trace = RecordedTrace()
            let decision = PushCore.decide(
                activity, sentMs: context.event.sentMs, for: user.recipient, startedMs: started, now: context.now,
                trace: &trace)
            take(trace, &user, &steps)
            return decision
        case .userState:
            return Decision(alert: .deny(.ok), counted: false, routes: [])
        }
    }

    private func take(_ trace: RecordedTrace, _ user: inout RecipientFacts, _ steps: inout [Explanation.Step]) {
        for entry in trace.steps {
            let step = Explanation.Step(entry)
            switch entry.step {
            case .routes: user.routeSteps.append(step)
            case .token: user.tokenStep = step
            // The contract's order: the time before the audience.
            case .expiry: steps.insert(step, at: min(1, steps.count))
            default: steps.append(step)
            }
        }
    }

    /// What a recall does to the badge, whatever becomes of its alert; nil: the record is none, or leaves it alone.
    private func recallStep(_ uid: String, _ context: RecordContext) async throws(RedisFault) -> Explanation.Step? {
        guard let revoke = context.message?.revoke else { return nil }
        let target = try await desk.mark(
            app: context.event.app, uid: uid, kind: .message, id: revoke.targetMsgID)
        let known =
            target.map { $0.isRevoked ? "recalled before" : $0.state == nil ? "not come yet" : "taken up" }
            ?? "not known"
        let outcome: String
        switch revoke.badge {
        case .decrease: outcome = "less one if it was counted and is unread"
        case .keep: outcome = "the badge stays"
        case .count: outcome = "counted as a message of its own"
        }
        return Explanation.Step(
            10, "recall", input: "of \(revoke.targetMsgID), which is \(known); badge \(revoke.badge.rawValue)",
            outcome: outcome)
    }

    // MARK: - Devices

    private func explain(
        _ decision: Decision, of user: RecipientFacts, _ context: RecordContext, _ mark: PairMark?,
        _ steps: [Explanation.Step]
    ) async throws(RedisFault) -> [Explanation] {
        var explanations: [Explanation] = []
        let last = user.tokenStep.map { [$0] } ?? []
        if let reason = decision.finalReason {
            let verdict: Verdict = reason == .expired ? .expired : .suppressed
            var own = steps + (reason == .noToken || reason == .activityOver ? last : [])
            if reason == .noToken, context.message?.push.sms == true {
                own.append(
                    Explanation.Step(
                        17, "sms", input: "push.sms", outcome: "an SMS is asked for on push.sms"))
            }
            if reason == .dnd, let step = digestStep(decision, of: user.recipient, context) { own.append(step) }
            explanations.append(
                Explanation(
                    uid: user.recipient.uid, verdict: verdict.rawValue, reason: reason.rawValue, steps: own))
        }
        let badge = try await badge(decision, user.recipient.uid, context, mark)
        for (index, route) in decision.routes.enumerated() {
            var own = steps
            if user.routeSteps.indices.contains(index) {
                var step = user.routeSteps[index]
                step.input += user.presenceNotes[route.device] ?? ""
                own.append(step)
            }
            own += last
            let device = DeviceContext(
                record: context, user: user.recipient, decision: decision, mark: mark, badge: badge, route: route)
            explanations.append(try await explain(device, own))
        }
        return explanations
    }

    /// Nil: the app sends no digests, or this message is not told in one.
    private func digestStep(
        _ decision: Decision, of recipient: Recipient, _ context: RecordContext
    ) -> Explanation.Step? {
        guard context.app.sendsDigest, decision.counted, context.message?.kind == .message,
            let endMs = QuietHours.endMs(for: recipient, policy: context.app.policy, zones: zones, now: context.now)
        else { return nil }
        return Explanation.Step(
            17, "digest", input: "quiet hours end \(endMs)", outcome: "told in the digest then, if still unread")
    }

    /// The number that a push would carry: the claim's step taken in thought.
    private func badge(
        _ decision: Decision, _ uid: String, _ context: RecordContext, _ mark: PairMark?
    ) async throws(RedisFault) -> Int64? {
        guard let message = context.message, !message.push.silent else { return nil }
        let stored = try await desk.badge(app: context.event.app, uid: uid)
        // Claimed before: counted already.
        let isNew = mark?.state == nil && mark?.isRevoked != true
        return BadgeRule.besideAlert(stored &+ (decision.counted && isNew ? 1 : 0), context.app.policy)
    }
}

/// A recipient and what is told of him beside the decision.
struct RecipientFacts {
    var recipient: Recipient
    /// Why a device's presence is void.
    var presenceNotes: [String: String]
    /// One per route, in their order.
    var routeSteps: [Explanation.Step] = []
    var tokenStep: Explanation.Step?
}

extension PairKind {
    /// As people call it.
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
        let name =
            switch entry.step {
            case .expiry: "expiry"
            case .read: "read"
            case .veto: "veto"
            case .mute: "mute"
            case .quietHours: "quiet hours"
            case .badge: "badge"
            case .routes: "route"
            case .token: "token"
            }
        self.init(
            entry.step.rawValue, name, input: entry.input, outcome: entry.outcome,
            passes: Reason(rawValue: entry.outcome) == nil)
    }
}

// SPDX-License-Identifier: Apache-2.0
import Digits
import EventLoop
import JSON
import PushCore
public import Redis
import Telemetry

/// Predicts the worker's result for a record with the worker's own code: the same reading, fan-out, `decide`, claim (as
/// a dry run), rules of bursts and digests, headers and payload.
///
/// It reads Redis, changes nothing and sends nothing. It uses the present facts: presence, settings and marks may
/// differ when the worker gets the record. Control plane: not optimised for speed.
public actor Explainer {
    let store: StateReader
    private let users: UserReads
    private let pairs: PairReads
    let zones = SystemZones()
    private let apps: [String: ExplainedApp]
    private let reader: EventReader
    private let membersMax: Int

    /// - Parameter membersMax: maximum explained members of a group, those that the scan returns first.
    public init(_ configuration: Configuration, store: StateReader, membersMax: Int = 20) {
        self.store = store
        users = UserReads(store)
        pairs = PairReads(store)
        self.membersMax = membersMax
        var apps: [String: ExplainedApp] = [:]
        for app in configuration.apps where apps[app.policy.id] == nil { apps[app.policy.id] = ExplainedApp(app) }
        self.apps = apps
        reader = EventReader(apps: configuration.apps.map(\.policy.id), zones: zones)
    }

    /// The assumed time.
    public enum Moment: Sendable, Equatable {
        case now
        /// The record's own `sent_ms`, for old records.
        case sent
        /// Unix ms.
        case at(Int64)

        func nowMs(sentMs: Int64) -> Int64 {
            switch self {
            case .now: Loop.wallMs()
            case .sent: sentMs
            case .at(let ms): ms
            }
        }

        /// A later `sent_ms` counts as this time (`EventReader.latestMs`): the record has no Kafka time.
        var latestMs: Int64 { nowMs(sentMs: .max) }
    }

    /// Explains one record of either input topic.
    ///
    /// - Parameter place: the record's position, for the first step: `line 3`.
    public func explain(
        _ bytes: [UInt8], place: String, at moment: Moment = .now
    ) async throws(RedisFault) -> RecordExplanation {
        var report = try await explained(bytes, place: place, at: moment)
        report.unknownFields = reader.unknownFields(bytes)
        return report
    }

    private func explained(
        _ bytes: [UInt8], place: String, at moment: Moment
    ) async throws(RedisFault) -> RecordExplanation {
        let event: Event
        do throws(BadRecord) {
            event = try read(bytes, latestMs: moment.latestMs)
        } catch {
            let step = Explanation.Step(
                1, "record", input: "\(place), \(bytes.count) bytes", outcome: error.header, passes: false)
            return RecordExplanation(
                explanations: [
                    Explanation(uid: "", verdict: "dead_letter", reason: BadRecord.reason, steps: [step])
                ])
        }
        guard let app = apps[event.app] else { return RecordExplanation(explanations: []) }
        // A scheduled message is explained as of its time.
        let now = max(moment.nowMs(sentMs: event.sentMs), event.sendAtMs ?? .min)
        let first = Explanation.Step(
            1, "record", input: "\(place), \(bytes.count) bytes, event \(event.id)",
            outcome: "well formed"
                + (event.sendAtMs.map { "; scheduled until \(InstantText.text(ms: $0)), and decided then" } ?? ""))
        let job: EventJob
        switch event.body {
        case .userState(let state):
            if let fault = try await windowFault(state, of: event, now: now) {
                return refused(reader.windowFault(fault, in: bytes), uid: state.uid, after: first)
            }
            return explain(state, of: event, app, first)
        case .message(let message): job = EventJob(message, of: event, app: app.context, raw: bytes, origin: nil)
        case .liveActivity(let activity):
            job = EventJob(activity, of: event, app: app.context, raw: bytes, origin: nil)
        }
        if let target = job.subject.revoke?.targetMsgID {
            let kept = try await users.keptOriginal(app: event.app, msgID: target)
            job.original = try await users.original(app: event.app, msgID: target, kept)
            job.isRevokedBefore = kept?.waits(nowMs: now) ?? false
        } else if job.isScheduled {
            job.isRevokedBefore = try await users.keptOriginal(app: event.app, msgID: job.msgID)?.isRevoked ?? false
        }
        return try await explain(EventContext(event: event, job: job, app: app, now: now, first: first))
    }

    /// Non-nil: with the user's stored settings, the record leaves a DND window incomplete.
    private func windowFault(
        _ state: UserState, of event: borrowing Event, now: Int64
    ) async throws(RedisFault) -> DNDWindow.Fault? {
        guard case .settings(let change) = state.change, change.touchesWindow else { return nil }
        let (app, sentMs) = (event.app, event.sentMs)
        return try await store.ask(
            { (store, tag) throws(RedisFault) in
                try store.setSettings(app, state.uid, change, atMs: sentMs, nowMs: now, tag, isDryRun: true)
            }, { $0.int64.flatMap(UserStateTask.windowFault) })
    }

    private func refused(_ why: BadRecord, uid: String, after first: Explanation.Step) -> RecordExplanation {
        let step = Explanation.Step(3, "user state", input: "settings", outcome: why.header, passes: false)
        return RecordExplanation(
            explanations: [
                Explanation(uid: uid, verdict: "dead_letter", reason: BadRecord.reason, steps: [first, step])
            ])
    }

    /// A record does not name its topic, but its kind determines it.
    private func read(_ bytes: [UInt8], latestMs: Int64) throws(BadRecord) -> Event {
        do throws(BadRecord) {
            return try reader.read(bytes, of: .events, latestMs: latestMs)
        } catch {
            guard error.rule == .wrongTopic else { throw error }
            return try reader.read(bytes, of: .userState, latestMs: latestMs)
        }
    }

    private func explain(
        _ state: UserState, of event: borrowing Event, _ app: ExplainedApp, _ first: Explanation.Step
    ) -> RecordExplanation {
        var tellsBadge = false
        if case .read = state.change { tellsBadge = app.context.policy.clearOnRead }
        let step = Explanation.Step(
            3, "user state", input: state.change.kind,
            outcome: tellsBadge
                ? "changes state; a lower badge is sent to the devices that were pushed"
                : "changes state only, no alert")
        let explanation = Explanation(
            uid: state.uid, verdict: "state_change", reason: Reason.ok.rawValue, steps: [first, step])
        return RecordExplanation(
            title: "\(state.change.kind) of user \(state.uid) of app \(event.app)", explanations: [explanation])
    }

    private func explain(_ context: EventContext) async throws(RedisFault) -> RecordExplanation {
        if context.job.isForNobody(nowMs: context.now) {
            let expiry = Explanation.Step(
                2, "expiry",
                input:
                    "expires \(InstantText.text(ms: context.job.expiresAtMs)), now \(InstantText.text(ms: context.now))",
                outcome: Reason.expired.rawValue, passes: false)
            let explanation = try await explainForNobody(context, .expired, expiry)
            return RecordExplanation(title: context.title, explanations: [explanation])
        }
        var report = RecordExplanation(title: context.title, explanations: [])
        let audience = try await audience(of: context.job)
        report.isCut = audience.isCut
        for member in audience.members {
            report.explanations += try await explain(member, context)
            if context.isWanted(member.uid) { context.job.hasRecipients = true }
        }
        if let step = context.nobodyStep(isCut: audience.isCut) {
            report.explanations.append(try await explainForNobody(context, step.reason, step.step))
        }
        return report
    }

    /// The record with an empty uid.
    private func explainForNobody(
        _ context: EventContext, _ reason: Reason, _ step: Explanation.Step
    ) async throws(RedisFault) -> Explanation {
        let nobody = RecipientJob(event: context.job, uid: "", candidate: Candidate(uid: "", order: 0))
        let claim = try await pairs.claimDryRun(nobody.claimRequest(nowMs: context.now))
        guard claim.state != .ended else {
            return .duplicate("", [context.first, claim.step(of: context.job.subject)])
        }
        return Explanation(
            uid: "", verdict: (reason == .expired ? Verdict.expired : .suppressed).rawValue, reason: reason.rawValue,
            steps: [context.first, step])
    }

    // MARK: - The audience

    private func audience(
        of event: EventJob
    ) async throws(RedisFault) -> (members: [Audience.Member], isCut: Bool) {
        var members: [Audience.Member] = []
        let pageCount = max(membersMax, 100)
        while true {
            let isPaged = event.audience.group != nil || event.audience.activity != nil
            while let member = event.audience.pop() {
                if isPaged, members.count == membersMax { return (members, true) }
                members.append(member)
            }
            guard event.audience.wantsPage else { return (members, false) }
            if let tokens = event.audience.tokenPage {
                event.audience.take(owners: try await users.owners(app: event.app.id, tokens: tokens))
            } else if let activity = event.audience.activity {
                let users = try await users.activityUsers(
                    app: event.app.id, activityID: activity, after: event.audience.lastUser, count: pageCount)
                event.audience.take(users: users, isLast: users.count < pageCount)
            } else if let group = event.audience.group, let cursor = event.audience.cursor {
                let page = try await users.members(
                    app: event.app.id, group: group, cursor: cursor, count: pageCount)
                event.audience.take(page.members, cursor: page.cursor)
            }
        }
    }

    // MARK: Device
    // One device: its route, and the push as it would be sent.

    func explain(
        _ device: DeviceContext, _ steps: [Explanation.Step]
    ) async throws(RedisFault) -> Explanation {
        let route = device.route
        if device.user.claim.notes?.doneDevices.containsSame(route.device) ?? false {
            return .duplicate(device.user.job.uid, device: route.device, steps + device.earlierCopySteps)
        }
        if device.user.plan.acknowledged.containsSame(route.device) {
            return device.explanation(.none, .online, Reason.acked.rawValue, steps)
        }
        switch route.way {
        case .connection(_, let alert, let ackWithinMs):
            return device.connection(alert: alert, ackWithinMs: ackWithinMs, steps)
        case .none(let reason):
            return device.explanation(.none, Verdict(ofEnd: reason), reason.rawValue, steps + device.staleSteps)
        case .hold(let token, let holdMs):
            let step = Explanation.Step(
                16, "send", input: "a live desktop comes first",
                outcome: holdMs.map { "pushed after \($0) ms unless read before" }
                    ?? "not pushed once the desktop has it, by its ack or by a push of its own")
            if holdMs == nil {
                return device.explanation(.none, .suppressed, Reason.desktopOnline.rawValue, steps + [step])
            }
            return try await push(device, token: token, steps + [step])
        case .apns(let token, _):
            return try await push(device, token: token, steps)
        }
    }

    private func push(
        _ device: DeviceContext, token index: Int, _ steps: [Explanation.Step]
    ) async throws(RedisFault) -> Explanation {
        let user = device.user
        guard user.recipient.tokens.indices.contains(index) else {
            return device.explanation(.none, .suppressed, Reason.noToken.rawValue, steps)
        }
        let token = user.recipient.tokens[index]
        let app = user.event.event.app
        let standing =
            user.event.job.isBroadcast
            ? .owned : try await users.standing(app: app, uid: user.job.uid, token: token)
        var device = device
        device.pauseMs = try await users.pauseMs(
            app: app, uid: user.job.uid, device: device.route.device, nowMs: user.event.now)
        if user.event.app.context.backgroundPerHour > 0, user.event.job.isBackground {
            device.hour = try await users.hour(app: app, uid: user.job.uid, device: device.route.device)
        }
        return device.push(to: token, standing, steps)
    }

    // MARK: Recipient
    // One recipient: the facts, the decision, the claim's answer, and the result for each device.

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
        let claim = try await pairs.claimDryRun(request)
        job.note(claim, isFirst: true)
        steps.append(claim.step(of: context.job.subject))
        if claim.state == .ended { return [.duplicate(member.uid, steps)] }
        let plan = Plan(
            decision.withoutAlerts(isRead: claim.isRead, isRevoked: claim.isRevoked),
            try await progress(context, member.uid, claim), allowed: Self.addressedDevices(context, found.recipient))
        var user = RecipientContext(
            event: context, job: job, recipient: found.recipient, presenceNotes: found.notes, plan: plan, claim: claim)
        user.take(trace, after: steps)
        if let step = try await revokeStep(claim, member.uid, context.job) { user.steps.append(step) }
        return try await explain(user)
    }

    /// The work of an earlier try for the recipient, if one began and did not finish.
    private func progress(
        _ context: EventContext, _ uid: String, _ claim: ClaimReply
    ) async throws(RedisFault) -> Progress {
        var progress = Progress()
        guard claim.state == .resume else { return progress }
        progress.add(claim.notes)
        progress.earlierTry = Progress.EarlierTry(claim.notes)
        if context.job.message != nil {
            progress.acknowledged = try await users.acks(
                app: context.event.app, uid: uid, msgID: context.job.msgID)
        }
        return progress
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
        var recipient = try await users.recipient(
            app: event.app.id, uid: member.uid, conversation: event.conversationID,
            group: event.readsLevels ? event.conversationID : nil)
        if let level = member.level { recipient.groupLevel = level }
        recipient.isRevoked = event.isRevokedBefore
        var leases = LeaseCache(lifetimeNanos: .max)
        var notes: [String: String] = [:]
        for presence in recipient.presence where presence.state != .off {
            let epoch = try await users.lease(presence.gateway)
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
                state = try await users.activityState(
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
        let target = try await pairs.mark(app: event.app.id, uid: uid, kind: .message, id: revoke.targetMsgID)
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
        for device in user.claim.notes?.doneDevices ?? []
        where !user.decision.routes.contains(where: { $0.device.isSame(as: device) }) {
            explanations.append(.duplicate(user.job.uid, device: device, user.steps))
        }
        if let reason = user.plan.withoutDevice {
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

/// One app: its configuration, and the worker's form of it without an APNs client.
struct ExplainedApp {
    let settings: Configuration.App
    let context: AppContext

    init(_ app: Configuration.App) {
        settings = app
        context = AppContext(
            policy: app.policy, templates: app.templates, metrics: AppMetrics(MetricsRegistry(), app: app.policy.id),
            rate: 0, coalesceNanos: app.coalesceNanos, sendsDigest: app.sendsDigest, removals: app.limits.removals,
            suspects: app.limits.suspects, backgroundPerHour: app.limits.backgroundPerHour, clients: [])
    }
}

extension ClaimReply {
    /// Step 5.
    func step(of subject: ClaimSubject) -> Explanation.Step {
        let outcome: String
        switch state {
        case .fresh: outcome = isRevoked ? "new, and revoked before it came" : "new"
        case .resume:
            let done = notes?.doneDevices ?? []
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

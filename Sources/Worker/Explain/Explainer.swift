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
    let zones = SystemZones()
    private let apps: [String: ExplainedApp]
    private let reader: EventReader
    private let membersMax: Int

    /// - Parameter membersMax: maximum explained members of a group, those that the scan returns first.
    public init(_ configuration: Configuration, store: StateReader, membersMax: Int = 20) {
        self.store = store
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
            let kept = try await store.keptOriginal(app: event.app, msgID: target)
            job.original = try await store.original(app: event.app, msgID: target, kept)
            job.isRevokedBefore = kept?.waits(nowMs: now) ?? false
        } else if job.isScheduled {
            job.isRevokedBefore = try await store.keptOriginal(app: event.app, msgID: job.msgID)?.isRevoked ?? false
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
        let claim = try await store.claimDryRun(nobody.claimRequest(nowMs: context.now))
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
                event.audience.take(owners: try await store.owners(app: event.app.id, tokens: tokens))
            } else if let activity = event.audience.activity {
                let users = try await store.activityUsers(
                    app: event.app.id, activityID: activity, after: event.audience.lastUser, count: pageCount)
                event.audience.take(users: users, isLast: users.count < pageCount)
            } else if let group = event.audience.group, let cursor = event.audience.cursor {
                let page = try await store.members(
                    app: event.app.id, group: group, cursor: cursor, count: pageCount)
                event.audience.take(page.members, cursor: page.cursor)
            }
        }
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

/// One event with the common data of all its recipients.
struct EventContext {
    let event: Event
    /// The form that the worker uses.
    let job: EventJob
    let app: ExplainedApp
    /// Unix ms.
    let now: Int64
    /// Step 1.
    let first: Explanation.Step

    /// Step 4.
    func isWanted(_ uid: String) -> Bool { job.message?.value.isMeant(for: uid) ?? true }

    /// Step 12 of the record with an empty uid, once all recipients are explained; nil: there is none.
    ///
    /// - Parameter isCut: some recipients were not looked at.
    func nobodyStep(isCut: Bool) -> (reason: Reason, step: Explanation.Step)? {
        let reason: Reason
        let input: String
        if job.audience.hasUnownedTokens {
            (reason, input) = (.noToken, "some token has no owner")
        } else if !job.hasRecipients, !isCut {
            (reason, input) = (.noRecipients, "no recipient is left")
        } else {
            return nil
        }
        return (reason, Explanation.Step(12, "token", input: input, outcome: reason.rawValue, passes: false))
    }

    var title: String {
        switch event.body {
        case .message(let shared):
            "\(shared.value.kind.rawValue) \(shared.value.msgID) in \(shared.value.conversation.type.rawValue) "
                + "\(shared.value.conversation.id) of app \(event.app)"
        case .liveActivity(let activity):
            "live_activity \(activity.action.rawValue) \(activity.activityID) of app \(event.app)"
        case .userState(let state): "\(state.change.kind) of app \(event.app)"
        }
    }
}

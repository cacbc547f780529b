import EventLoop
import JSON
import Payload
import PushCore
public import Redis

/// Says what the worker would do with a record, by the same reading, the same `decide` and the same rendering.
///
/// It reads Redis and changes nothing there; nothing is sent. Facts are those of now: presence, settings and marks may
/// be others by the time the worker gets the record. Control plane: no care is taken to be fast.
public actor Explainer {
    let desk: RedisDesk
    let zones = SystemZones()
    private let apps: [String: Configuration.App]
    private let reader: EventReader
    private let membersMax: Int

    /// - Parameter membersMax: members of a group that are explained, of those that the scan names first.
    public init(_ configuration: Configuration, desk: RedisDesk, membersMax: Int = 20) {
        self.desk = desk
        self.membersMax = membersMax
        apps = Dictionary(configuration.apps.map { ($0.policy.id, $0) }, uniquingKeysWith: { first, _ in first })
        reader = EventReader(apps: configuration.apps.map(\.policy.id))
    }

    /// The moment that is asked about.
    public enum Moment: Sendable, Equatable {
        case now
        /// The record's own `sent_ms`: for records that are long past.
        case sent
        /// Unix ms.
        case at(Int64)
    }

    /// Explains one record of either input topic.
    ///
    /// - Parameter place: where the record stands, for the first step: `line 3`.
    public func explain(
        _ bytes: [UInt8], place: String, at moment: Moment = .now
    ) async throws(RedisFault) -> RecordExplanation {
        let event: Event
        do throws(BadRecord) {
            event = try read(bytes)
        } catch {
            let step = Explanation.Step(
                1, "record", input: "\(place), \(bytes.count) bytes", outcome: error.header, passes: false)
            return RecordExplanation(
                explanations: [
                    Explanation(uid: "", verdict: "dead_letter", reason: BadRecord.reason, steps: [step])
                ])
        }
        guard let app = apps[event.app] else { return RecordExplanation(explanations: []) }
        let now: Int64 =
            switch moment {
            case .now: Loop.wallMs()
            case .sent: event.sentMs
            case .at(let ms): ms
            }
        var context = RecordContext(
            event: event, app: app, now: now,
            first: Explanation.Step(
                1, "record", input: "\(place), \(bytes.count) bytes, event \(event.id)", outcome: "well formed"))
        if let target = context.message?.revoke?.targetMsgID {
            context.originalCollapseID = try await desk.collapseID(app: app.policy.id, msgID: target)
        }
        return try await explain(context)
    }

    /// A record does not say which topic it is for; its kind does.
    private func read(_ bytes: [UInt8]) throws(BadRecord) -> Event {
        do throws(BadRecord) {
            return try reader.read(bytes, of: .events)
        } catch {
            guard error.rule == .wrongTopic else { throw error }
            return try reader.read(bytes, of: .userState)
        }
    }

    private func explain(_ context: RecordContext) async throws(RedisFault) -> RecordExplanation {
        if case .userState(let state) = context.event.body {
            var tellsBadge = false
            if case .read = state.change { tellsBadge = context.app.policy.clearOnRead }
            let step = Explanation.Step(
                3, "user state", input: state.change.kind,
                outcome: tellsBadge
                    ? "changes state; a lower badge is sent to the devices that were pushed"
                    : "changes state only, alerts nobody")
            return RecordExplanation(
                title: context.title,
                explanations: [
                    Explanation(
                        uid: state.uid, verdict: "state_change", reason: Reason.ok.rawValue,
                        steps: [context.first, step])
                ])
        }
        if context.message?.to.uids == nil, context.message != nil, context.expireAtMs <= context.now {
            return RecordExplanation(title: context.title, explanations: [expiredUnread(context)])
        }
        var report = RecordExplanation(title: context.title, explanations: [])
        let audience = try await audience(of: context)
        report.isCut = audience.isCut
        for member in audience.members {
            report.explanations += try await explain(member, context)
        }
        return report
    }

    /// A group's message that nobody may get any more: its members are not read.
    private func expiredUnread(_ context: RecordContext) -> Explanation {
        let step = Explanation.Step(
            2, "expiry", input: "expires \(context.expireAtMs), now \(context.now)",
            outcome: Reason.expired.rawValue, passes: false)
        return Explanation(
            uid: "", verdict: Verdict.expired.rawValue, reason: Reason.expired.rawValue,
            steps: [context.first, step])
    }

    // MARK: - The audience

    private func audience(
        of context: RecordContext
    ) async throws(RedisFault) -> (members: [Audience.Member], isCut: Bool) {
        var members: [Audience.Member] = []
        switch context.event.body {
        case .liveActivity(let activity):
            var uids = activity.uids
            if activity.isForAllBound {
                uids = try await desk.activityUsers(
                    app: context.event.app, activityID: activity.activityID, count: membersMax + 1)
                if uids.count > membersMax { return (uids.prefix(membersMax).map { .init(uid: $0) }, true) }
            }
            var audience = Audience(uids: uids)
            while let member = audience.pop() { members.append(member) }
            return (members, false)
        case .userState:
            return ([], false)
        case .message(let message):
            var audience = Audience(of: message.value)
            while true {
                while let member = audience.pop() {
                    if audience.group != nil, members.count == membersMax { return (members, true) }
                    members.append(member)
                }
                guard let group = audience.group, let cursor = audience.cursor else { return (members, false) }
                let page = try await desk.members(
                    app: context.event.app, group: group, cursor: cursor, count: max(membersMax, 100))
                audience.take(page.members, cursor: page.cursor, server: 0)
            }
        }
    }
}

/// One record with what is the same for all its recipients.
struct RecordContext {
    let event: Event
    let app: Configuration.App
    /// Unix ms.
    let now: Int64
    /// Step 1.
    let first: Explanation.Step
    /// Of a recall: what its target was sent with, where its sender chose one.
    var originalCollapseID: String?

    var message: Message? {
        if case .message(let message) = event.body { return message.value }
        return nil
    }

    var expireAtMs: Int64 { message?.expireAtMs ?? (event.sentMs &+ LiveActivity.lifetimeMs) }

    /// What duplicates are recognised by; a Live Activity by its event (contract section 2).
    var claimID: String { message?.msgID ?? event.id }

    var claimKind: PairKind {
        guard let message else { return .liveActivity }
        return message.kind == .revoke ? .revoke : .message
    }

    var title: String {
        switch event.body {
        case .message(let shared):
            "\(shared.value.kind.rawValue) \(shared.value.msgID) in \(shared.value.conversation.type.rawValue) "
                + "\(shared.value.conversation.id) of app \(event.app)"
        case .liveActivity(let activity):
            "live_activity \(activity.action.rawValue) \(activity.activityID) of app \(event.app)"
        case .userState(let state):
            "\(state.change.kind) of user \(state.uid) of app \(event.app)"
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import APNs
public import PushCore
public import Redis

/// The result of a record of `im.user-state`.
public enum StateOutcome: Sendable, Equatable {
    case applied(Effect)
    /// The record changed nothing, for this reason.
    case ignored(Ignored)
    /// Known already: the same change at the same time, the same activity token, the same report.
    case repeated
    /// Bad by the stored settings (contract section 2, `settings`): the record goes to the dead-letter topic.
    case refused(DNDWindow.Fault)

    public enum Effect: Sendable, Equatable {
        case none
        /// A read or a report: the user's badge before and after it, uncapped.
        case badge(Int64, before: Int64)
    }

    /// Label values of a metric.
    public enum Ignored: String, Sendable, CaseIterable {
        /// A newer one is stored.
        case stale
        /// An unbind of another owner's token or of another version.
        case notOwner = "not_owner"
        /// A bind to a bundle id that the app does not have.
        case otherTopic = "other_topic"
        /// The bind's own unbind came before it.
        case unbound
        /// An unbind before its bind; it is kept for it.
        case early
        /// A report with a pid that does not belong to its message and a token of the device. It enters no rate.
        case unknownPush = "unknown_push"
        /// Nothing in it can be applied, or Redis gave an unreadable answer.
        case unusable
    }
}

/// One user-state record on its way through Redis: the next command, and the meaning of its reply.
///
/// A machine without sockets: `send` writes the commands of the present step under one tag; `take` receives each reply
/// and moves on. Every step may be sent again after a lost connection, and the whole record after a crash.
public struct UserStateTask: Sendable {
    public enum Progress: Sendable, Equatable {
        /// Another reply of this step is due.
        case waiting
        /// Call `send` for the next step.
        case next
        /// Call `send` for the same step after a pause, or `stopWaiting` and then `send`.
        case later
        case done(StateOutcome)
    }

    /// The present step. The order of a bind's steps guarantees that no previous owner gets a push.
    enum Step: Sendable, Equatable {
        case start
        /// Deletes a previous owner's copy, and what the account switch ends; then the next one's.
        case take(Taking)
        /// Tells the owner entries of further tokens that they end; then their copies go.
        case endTokens(Taking, [EndedToken])
        case add
        case retireReplaced(token: String, version: Int64, repeated: Bool)
        /// Tells the token's own owner entry: an account switch at this time took the device after the bind, or the user was
        /// forgotten then.
        case endOwn(atMs: Int64)
        case settle(repeated: Bool)
        /// Adds the user to those who bound the activity; then the outcome is final.
        case list(StateOutcome)
        /// Deletes the user's own copy of a token that belongs to another user; then the outcome is final.
        case dropOwn(StateOutcome)
        /// Reads the mark of a reported push's message, alone or in the members' common key.
        case mark(PairKind)
        case groupMark
        /// Counts a report with a checked pid.
        case record
    }

    let app: String
    let sentMs: Int64
    let nowMs: Int64
    let state: UserState
    private(set) var step = Step.start
    /// Replies of this step still due.
    var due = 0
    /// The users that a bind took the token from, and the other tokens that ended with that: once more if the bind is repeated
    /// (`RecentChanges`), because these keys may be on another server.
    var formerOwners: [String] = []
    private var forgetting = Forgetting()
    var endedTokens: [EndedToken] = []
    private let clearsOnRead: Bool
    /// The pid of the present report is not that of its message.
    var isUnknownPush = false
    /// The accepted alert that it reports; nil: no mark says so.
    var reported: (counts: MarkCounts, outcome: MarkCounts.Outcome)?
    /// How often its mark was not there.
    var marksMissed = 0
    /// Names its record: after a crash the same record is no repeated report.
    let record: String
    /// Number of written ids of an `ack`. A step writes a slice of the rest.
    private var acknowledged = 0
    /// One call takes no longer than some reads of a large hash.
    static let acknowledgedAtOnce = 100

    /// A read lowered the badge, now or earlier, and its devices have not been updated.
    public private(set) var owesClear = false

    /// - Parameter clearsOnRead: the app's `clear_on_read`.
    public init(
        app: String, sentMs: Int64, nowMs: Int64, state: UserState, clearsOnRead: Bool = false, record: String = ""
    ) {
        self.record = record
        self.clearsOnRead = clearsOnRead
        self.app = app
        self.sentMs = sentMs
        self.nowMs = nowMs
        self.state = state
    }

    /// The same record from its first step.
    func fromStart(nowMs: Int64) -> UserStateTask {
        var task = UserStateTask(
            app: app, sentMs: sentMs, nowMs: nowMs, state: state, clearsOnRead: clearsOnRead, record: record)
        task.formerOwners = formerOwners
        task.endedTokens = endedTokens
        return task
    }

    /// Whether the record needs nothing from Redis. It is then done as `ignored(.unusable)`.
    public var isEmpty: Bool {
        switch state.change {
        case .settings(let change): SettingsText.pairs(change).isEmpty
        case .ack(_, _, let msgIDs): msgIDs.isEmpty
        case .read(_, let mark): (mark.seq ?? -1) < 0 && (mark.ms ?? -1) < 0
        case .bind(let binding): !Self.isToken(binding.token.hex)
        case .unbind(let unbinding): !Self.isToken(unbinding.token)
        case .mute, .badgeReport, .openReport, .arrivedReport, .forget: false
        }
    }

    /// Writes the commands of the present step. After a throw the step may be sent again.
    public mutating func send(_ store: StateStore, tag: UInt64) throws(RedisFault) {
        due = 1
        switch state.change {
        case .bind(let binding): try sendBind(binding, store, tag)
        case .unbind(let unbinding): try sendUnbind(unbinding, store, tag)
        case .ack(let device, _, let msgIDs):
            let slice = msgIDs.dropFirst(acknowledged).prefix(Self.acknowledgedAtOnce)
            try store.acknowledge(app, state.uid, device: device, slice, nowMs: nowMs, tag)
        case .openReport(let report): try sendReport(report, opened: true, store, tag)
        case .arrivedReport(let report): try sendReport(report, opened: false, store, tag)
        case .settings(let change): try store.setSettings(app, state.uid, change, atMs: sentMs, nowMs: nowMs, tag)
        case .mute(let conversation, let level, let untilMs):
            try store.mute(app, state.uid, (conversation, level, untilMs), atMs: sentMs, nowMs: nowMs, tag)
        case .read(let conversation, let mark):
            try store.read(
                app, state.uid, conversation, mark, atMs: sentMs, nowMs: nowMs, clears: clearsOnRead, tag)
        case .forget:
            due = forgetting.commandCount
            let user = Forgetting.User(app: app, uid: state.uid, atMs: sentMs, nowMs: nowMs)
            for place in 0..<due { try forgetting.send(place, user, store, tag) }
        case .badgeReport(_, let value, let clientMs):
            try store.report(app, state.uid, value: value, clientMs: clientMs, nowMs: nowMs, tag)
        }
    }

    /// Handles one reply to the present step.
    public mutating func take(_ reply: borrowing RedisReply) -> Progress {
        due -= 1
        switch state.change {
        case .bind, .unbind: return due > 0 ? .waiting : move(StepAnswer(reply))
        case .openReport(let report), .arrivedReport(let report): return takeReport(report, reply)
        case .forget: return due > 0 ? .waiting : forgetting.move(StepAnswer(reply))
        case .ack(_, _, let msgIDs):
            acknowledged = min(acknowledged + Self.acknowledgedAtOnce, msgIDs.count)
            return acknowledged < msgIDs.count ? .next : .done(.applied(.none))
        case .settings, .mute:
            guard let changed = reply.int64 else { return .done(.ignored(.unusable)) }
            if let fault = Self.windowFault(changed) { return .done(.refused(fault)) }
            if changed == StateScripts.known { return .done(.repeated) }
            return .done(changed > 0 ? .applied(.none) : .ignored(.stale))
        case .read, .badgeReport:
            guard let applied = reply[0].int64, let after = reply[1].int64, let before = reply[2].int64 else {
                return .done(.ignored(.unusable))
            }
            owesClear = clearsOnRead && reply.count > 3 && reply[3].int64 == 1
            switch applied {
            case 1: return .done(.applied(.badge(after, before: before)))
            case 2: return .done(.repeated)
            default: return .done(.ignored(.stale))
            }
        }
    }

    /// What `StateScripts.settings` answers for a change that it refuses.
    static func windowFault(_ answer: Int64) -> DNDWindow.Fault? {
        switch answer {
        case -1: .noStart
        case -2: .noEnd
        case -3: .sameEnds
        default: nil
        }
    }

    /// Moves a bind or an unbind to its next step; pure.
    mutating func move(_ answer: StepAnswer) -> Progress {
        switch state.change {
        case .bind(let binding): return moved(to: nextOfBind(binding, answer))
        case .unbind: return moved(to: Self.nextOfUnbind(after: step, answer))
        case .settings, .mute, .read, .badgeReport, .ack, .openReport, .arrivedReport, .forget:
            return .done(.ignored(.unusable))
        }
    }

    enum Next {
        case step(Step)
        case done(StateOutcome)
    }

    mutating func moved(to next: Next) -> Progress {
        switch next {
        case .done(let outcome): return .done(outcome)
        case .step(let step):
            self.step = step
            return .next
        }
    }

    /// Tokens are lower-case hex. Anything else could not be pushed to, and would corrupt the records.
    private static func isToken(_ hex: String) -> Bool {
        let utf8 = hex.utf8
        return !utf8.isEmpty && utf8.count <= DeviceToken.digitsMax
            && utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
    }
}

/// A script's answer to one step: a code and its additional values.
struct StepAnswer: Equatable {
    var code: Int64
    var texts: [String]

    init(code: Int64, texts: [String] = []) {
        self.code = code
        self.texts = texts
    }

    init(_ reply: borrowing RedisReply) {
        guard reply.kind == .array else {
            self.init(code: reply.int64 ?? -1)
            return
        }
        self.init(code: reply[0].int64 ?? -1)
        var position = 0
        var texts: [String] = []
        reply.forEach { element in
            if position > 0, let text = element.string { texts.append(text) }
            position += 1
        }
        self.texts = texts
    }
}

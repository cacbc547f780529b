// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
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
    private var formerOwners: [String] = []
    private var forgetting = Forgetting()
    private var endedTokens: [EndedToken] = []
    private let clearsOnRead: Bool
    /// The pid of the present report is not that of its message.
    private var isUnknownPush = false
    /// The accepted alert that it reports; nil: no mark says so.
    var reported: (counts: MarkCounts, outcome: MarkCounts.Outcome)?
    /// How often its mark was not there.
    private var marksMissed = 0
    /// Names its record: after a crash the same record is no repeated report.
    let record: String
    /// Number of written ids of an `ack`. A step writes a slice of the rest.
    private var acknowledged = 0
    /// One call takes no longer than some reads of a large hash.
    private static let acknowledgedAtOnce = 100

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
            if changed == ScriptParts.known { return .done(.repeated) }
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

    /// What `SettingsScripts.settings` answers for a change that it refuses.
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

    // MARK: Reports
    // The steps of a report about a push. With a message's id the user's tokens are read and the pid is derived again; then the
    // message's mark says whether the push was an accepted alert, and has its subject. Then the report is noted, and counts if
    // it is the first of its push and device. One that does not match is counted separately.

    private mutating func sendReport(
        _ report: UserState.PushReport, opened: Bool, _ store: StateStore, _ tag: UInt64
    ) throws(RedisFault) {
        switch (step, report.msgID) {
        case (.start, .some): try store.readUser(app: app, uid: state.uid, tag: tag)
        case (.mark(let kind), let id?): try store.readMark(app: app, uid: state.uid, kind: kind, id: id, tag: tag)
        case (.groupMark, let id?): try store.readGroupMarks(app: app, uid: state.uid, id: id, tag: tag)
        default: try store.reportPush(app, state.uid, report, opened: opened, record: record, nowMs: nowMs, tag)
        }
    }

    /// The present step writes; those of a report before its last one only read.
    var writes: Bool {
        switch state.change {
        case .openReport(let report), .arrivedReport(let report): report.msgID == nil || step == .record
        case .bind, .unbind, .settings, .mute, .read, .badgeReport, .ack, .forget: true
        }
    }

    private mutating func takeReport(_ report: UserState.PushReport, _ reply: borrowing RedisReply) -> Progress {
        switch step {
        case .start where report.msgID != nil:
            var recipient = Recipient(uid: state.uid)
            RecipientReplies.user(reply, into: &recipient)
            guard let kind = report.genuineKind(app: app, uid: state.uid, tokens: recipient.tokens) else {
                isUnknownPush = true
                return moved(to: .step(.record))
            }
            return moved(to: .step(.mark(kind)))
        case .mark(let kind): return takeMark(report, reply, mayBeInGroup: kind == .message)
        case .groupMark: return takeMark(report, reply, mayBeInGroup: false)
        default:
            if reply.int64 == 0 { return .done(.repeated) }
            return .done(isUnknownPush ? .ignored(.unknownPush) : .applied(.none))
        }
    }

    private mutating func takeMark(
        _ report: UserState.PushReport, _ reply: borrowing RedisReply, mayBeInGroup: Bool
    ) -> Progress {
        guard PairMark.state(reply) == .ended else {
            if mayBeInGroup { return moved(to: .step(.groupMark)) }
            // The mark comes after the broker's answer, and the report may be faster.
            marksMissed += 1
            if marksMissed >= Self.marksMissedMax { return moved(to: .step(.record)) }
            if case .groupMark = step { _ = moved(to: .step(.mark(.message))) }
            return .later
        }
        let device = MarkCounts.short(report.device)
        if let counts = PairMark.counts(reply),
            let outcome = counts.outcomes.first(where: {
                $0.kind == .accepted && $0.push == .alert && $0.device == device
            })
        {
            reported = (counts, outcome)
        }
        return moved(to: .step(.record))
    }

    /// The report's mark is not awaited any more.
    mutating func stopWaiting() {
        marksMissed = Self.marksMissedMax
        _ = moved(to: .step(.record))
    }

    private static var marksMissedMax: Int { 6 }

    // MARK: Tokens
    // The steps of bind and unbind (`OwnerScripts`).

    /// An account switch: a token moves to another user, and with it the phone.
    struct Switch: Sendable, Equatable {
        /// The bind's time.
        var atMs: Int64
        /// The device (`TokenText.deviceWord`), if it is known; else it is the one under which the user has the token.
        var device = ""
        /// Other tokens of the phone. Their owner entries know that they end.
        var ended: [EndedToken] = []
    }

    /// A token that ends with an account switch, as it was bound.
    struct EndedToken: Sendable, Equatable {
        var uid: String
        var token: String
        var version: Int64
    }

    /// The users who lose a token, one after the other.
    struct Taking: Sendable, Equatable {
        /// The first one is in hand.
        var users: [String]
        var switched: Switch
        var then: Then

        enum Then: Sendable, Equatable {
            case add
            /// The user's own copy goes too; then the outcome is final.
            case dropOwn(StateOutcome)
            /// The user lost the token to another one at this time.
            case loseOwn(atMs: Int64)
            case done(StateOutcome)
        }
    }

    private mutating func sendBind(_ binding: UserState.Binding, _ store: StateStore, _ tag: UInt64) throws(RedisFault)
    {
        let token = binding.token.hex
        switch step {
        case .start:
            try store.bindOwner(app, state.uid, binding, tag)
        case .take(let taking):
            // A previous owner's later bind with a higher version remains.
            try store.dropToken(
                app: app, uid: taking.users.first ?? state.uid, token: token, upTo: binding.version, nowMs: nowMs,
                switched: taking.switched, tag: tag)
        case .endTokens(let taking, let tokens):
            due = tokens.count
            for ended in tokens {
                try store.retireOwner(
                    app: app, uid: ended.uid, token: ended.token, version: ended.version,
                    .switched(atMs: taking.switched.atMs), tag: tag)
            }
        case .add:
            try store.addToken(app, state.uid, binding, nowMs: nowMs, tag)
        case .retireReplaced(let replaced, let version, _):
            try store.retireOwner(app: app, uid: state.uid, token: replaced, version: version, .replaced, tag: tag)
        case .endOwn(let atMs):
            try store.retireOwner(
                app: app, uid: state.uid, token: token, version: binding.version, .switched(atMs: atMs), tag: tag)
        case .settle:
            try store.settleOwner(app, state.uid, token, binding.version, tag)
        case .list:
            try store.listActivityUser(app, state.uid, activityID: binding.boundActivity ?? "", tag)
        case .dropOwn, .record, .mark, .groupMark:
            let field = binding.boundActivity == nil ? "" : TokenText.field(device: binding.device, binding.token)
            try store.dropToken(
                app: app, uid: state.uid, token: token, upTo: binding.version, nowMs: nowMs, repeated: field, tag: tag)
        }
    }

    private func sendUnbind(_ unbinding: UserState.Unbinding, _ store: StateStore, _ tag: UInt64) throws(RedisFault) {
        if case .dropOwn = step {
            try store.dropToken(
                app: app, uid: state.uid, token: unbinding.token, upTo: unbinding.version, nowMs: nowMs, tag: tag)
        } else {
            try store.unbindOwner(app, state.uid, unbinding.token, unbinding.version, tag)
        }
    }

    private static func nextOfUnbind(after step: Step, _ answer: StepAnswer) -> Next {
        if case .dropOwn(let outcome) = step { return .done(outcome) }
        switch answer.code {
        case 1: return .step(.dropOwn(.applied(.none)))
        // Another owner or a newer version is stored. An unbind that this interrupted may have left this user's copy.
        case 0: return .step(.dropOwn(.ignored(.notOwner)))
        case 2: return .done(.ignored(.early))
        default: return .done(.ignored(.unusable))
        }
    }

    /// Owner first, then the previous owners, then the new one, then a check that the token still belongs to the user.
    private mutating func nextOfBind(_ binding: UserState.Binding, _ answer: StepAnswer) -> Next {
        switch step {
        case .start:
            switch answer.code {
            case 0: return take(from: [], binding, then: lost(answer))
            case 1: return take(from: answer.texts, binding, then: .add)
            case 2: return take(from: answer.texts, binding, then: .dropOwn(.ignored(.unbound)))
            default: return .done(.ignored(.unusable))
            }
        case .take(let taking): return taken(taking, answer, binding)
        case .endTokens(var taking, let tokens):
            taking.switched.ended += tokens
            return .step(.take(taking))
        case .add:
            switch answer.code {
            case 0: return .step(.dropOwn(.ignored(.stale)))
            case 1, 2:
                let isRepeat = answer.code == 2
                guard answer.texts.count == 2, let version = StateKeys.version(of: answer.texts[1]) else {
                    return .step(.settle(repeated: isRepeat))
                }
                return .step(.retireReplaced(token: answer.texts[0], version: version, repeated: isRepeat))
            case 3: return .step(.endOwn(atMs: answer.texts.first.flatMap { Int64($0) } ?? 0))
            default: return .done(.ignored(.unusable))
            }
        case .endOwn: return .step(.dropOwn(.ignored(.unbound)))
        case .retireReplaced(_, _, let repeated): return .step(.settle(repeated: repeated))
        case .settle(let repeated):
            // Another bind took the token: removes this user's copy again.
            guard answer.code == 1 else { return next(lost(answer), binding) }
            let outcome: StateOutcome = repeated ? .repeated : .applied(.none)
            return binding.boundActivity == nil ? .done(outcome) : .step(.list(outcome))
        // The field has the same activity token by a newer bind.
        case .dropOwn(.ignored(.stale)) where answer.code == -1: return .done(.repeated)
        case .dropOwn(let outcome), .list(let outcome): return .done(outcome)
        case .record, .mark, .groupMark: return .done(.ignored(.unusable))
        }
    }

    /// A newer bind has the token: of another user, if the answer has its time.
    private func lost(_ answer: StepAnswer) -> Taking.Then {
        guard let atMs = answer.texts.first.flatMap({ Int64($0) }) else { return .dropOwn(.ignored(.stale)) }
        return .loseOwn(atMs: atMs)
    }

    /// Also from the users that the same bind took it from before, if it is made once more.
    private mutating func take(from former: [String], _ binding: UserState.Binding, then: Taking.Then) -> Next {
        let again = formerOwners.filter { !former.containsSame($0) }
        formerOwners = former + again
        let taking = Taking(users: formerOwners, switched: Switch(atMs: binding.token.boundMs), then: then)
        if formerOwners.isEmpty { return next(then, binding) }
        return .step(endedTokens.isEmpty ? .take(taking) : .endTokens(taking, endedTokens))
    }

    private mutating func taken(_ taking: Taking, _ answer: StepAnswer, _ binding: UserState.Binding) -> Next {
        let uid = taking.users.first ?? state.uid
        let ended = stride(from: 0, to: answer.texts.count - 1, by: 2).compactMap { place in
            StateKeys.version(of: answer.texts[place + 1]).map {
                EndedToken(uid: uid, token: answer.texts[place], version: $0)
            }
        }
        if !ended.isEmpty {
            if case .done = taking.then {} else { endedTokens += ended }
            return .step(.endTokens(taking, ended))
        }
        var taking = taking
        taking.users.removeFirst(min(1, taking.users.count))
        taking.switched.ended = []
        return taking.users.isEmpty ? next(taking.then, binding) : .step(.take(taking))
    }

    private func next(_ then: Taking.Then, _ binding: UserState.Binding) -> Next {
        switch then {
        case .add: .step(.add)
        case .dropOwn(let outcome): .step(.dropOwn(outcome))
        case .loseOwn(let atMs):
            .step(
                .take(
                    Taking(
                        users: [state.uid],
                        switched: Switch(atMs: atMs, device: TokenText.deviceWord(binding.device)),
                        then: .done(.ignored(.stale)))))
        case .done(let outcome): .done(outcome)
        }
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

extension UserState.PushReport {
    /// Finds the kind of event by its push id for a token of the device; nil: no kind gives this pid (contract section 3, `pid`).
    ///
    /// A push to an earlier token of the device does not match, because its pid cannot be derived any more. A Live
    /// Activity's payload has no pid.
    fileprivate func genuineKind(app: String, uid: String, tokens: [BoundToken]) -> PairKind? {
        guard let msgID else { return nil }
        for kind in [PairKind.message, .revoke] {
            let stem = PushIDPrefix(app: app, uid: uid, kind: kind, id: msgID)
            for token in tokens where token.device.isSame(as: device) {
                if stem.id(tokenHex: token.record.hex).description.isSame(as: pid) { return kind }
            }
        }
        return nil
    }
}

extension UserState.Binding {
    /// The Live Activity of an update token; nil for another type, or if it names none.
    var boundActivity: String? {
        guard token.type == .activity, let id = token.activityID, !id.isEmpty else { return nil }
        return id
    }
}

// SPDX-License-Identifier: Apache-2.0
/// Compares what the world sent with what came out. It knows the contract and nothing of the worker.
struct Judge {
    let sent: [Sent]
    let states: [StateSent]
    let apps: [AppSettings]
    let observed: Observed
    let allowance: Allowance
    /// Changes of user state that Redis may have lost.
    let lostStates: Set<String>
    /// Faults of the run that may repeat a record or a push.
    var mayRepeat: Bool
    /// Faults of the run that may put pushes of a conversation out of order.
    var mayReorder: Bool
    /// How long an answer of Redis, or a request, may be on its way: a push that was checked before may leave after.
    var slackNanos: UInt64
    /// The wall clock of the world, and how far that of a worker may be from it.
    var clock = Steps.Clock(originMs: 0, slackMs: 50)
    private(set) var violations: [Violation] = []
    let outcomes: [String: [Observed.Outcome]]
    /// Requests by their `apns-id`.
    let pushes: [String: [Observed.Push]]
    /// By app and message id.
    let events: [String: Sent]
    /// By app and user.
    let histories: [String: History]
    /// By app, group and user.
    let levels: [String: Int]
    /// Binds and unbinds by token, in the order of their versions.
    let tokens: [String: [StateSent]]
    /// By event id.
    let deliveries: [String: [Observed.Delivery]]
    /// Revokes by app and target.
    let revokes: [String: Sent]
    private static let mostViolations = 20

    init(_ traffic: Sources, observed: Observed, allowance: Allowance = Allowance()) {
        self.allowance = allowance
        (mayRepeat, mayReorder, slackNanos) = (allowance.mayRepeat, allowance.mayReorder, allowance.slackNanos)
        lostStates = Self.lostStates(traffic.states, observed, allowance.losses)
        sent = traffic.sent
        states = traffic.states
        apps = traffic.apps
        self.observed = observed
        outcomes = Dictionary(grouping: observed.outcomes) { $0.eventID }
        pushes = Dictionary(grouping: observed.pushes) { $0.pid }
        events = Dictionary(sent.map { ("\($0.app) \($0.messageID)", $0) }, uniquingKeysWith: { first, _ in first })
        revokes = Dictionary(
            sent.filter { $0.kind == .revoke }.map { ("\($0.app) \($0.target ?? "")", $0) },
            uniquingKeysWith: { first, _ in first })
        deliveries = Dictionary(grouping: observed.deliveries) { $0.eventID }
        tokens = Dictionary(grouping: states.filter { $0.token != nil }) { $0.token ?? "" }
        let moves = Dictionary(grouping: traffic.moves) { "\($0.app) \($0.uid)" }
        var histories: [String: History] = [:]
        for (key, states) in Dictionary(grouping: states, by: { "\($0.app) \($0.uid)" }) {
            var unsure = lostStates
            // It may have been applied, and its answer lost, before the newer one came.
            if allowance.mayRepeat {
                unsure.formUnion(
                    states.map(\.eventID).filter { observed.results[$0]?.outcome == "stale" })
            }
            var history = History(states: states, moves: moves[key] ?? [], observed: observed, unsure: unsure)
            history.movesEndNanos = traffic.movesEndNanos
            if let first = states.first {
                history.lostFromNanos = Self.firstLoss(of: first.app, first.uid, allowance.losses)
            }
            histories[key] = history
        }
        self.histories = histories
        var levels: [String: Int] = [:]
        for group in traffic.groups {
            for member in group.levels { levels["\(group.app) \(group.id) \(member.uid)"] = member.level }
        }
        self.levels = levels
    }

    /// What the world did.
    struct Sources {
        var sent: [Sent] = []
        var states: [StateSent] = []
        var apps: [AppSettings] = []
        var groups: [Traffic.Group] = []
        var moves: [Move] = []
        var movesEndNanos: UInt64 = .max
    }

    mutating func run() -> [Violation] {
        for event in sent { checkOutcomes(of: event) }
        checkDuplicates()
        checkTokens()
        checkTaken()
        checkPushes()
        checkDeliveries()
        checkBadges()
        checkStatistics()
        checkStates()
        if !mayReorder { checkOrder() }
        for letter in observed.deadLetters { found("no dead letter", letter, "") }
        return violations
    }

    mutating func found(_ rule: String, _ text: String, _ message: String) {
        guard violations.count < Self.mostViolations else { return }
        violations.append(Violation(rule: rule, text: text, message: message))
    }

    // MARK: Facts

    func app(_ id: String) -> AppSettings { apps.first { $0.id == id } ?? AppSettings(id: id) }

    func event(of push: Observed.Push) -> Sent? { push.messageID.flatMap { events["\(push.app) \($0)"] } }

    func history(_ app: String, _ uid: String) -> History {
        histories["\(app) \(uid)"] ?? History(states: [], moves: [], observed: observed)
    }

    /// The steps for a recipient between the event and that time.
    func steps(_ event: Sent, _ uid: String, until nanos: UInt64) -> Steps {
        let revoke = revokes["\(event.app) \(event.messageID)"]
        return Steps(
            event, uid, app: app(event.app), groupLevel: levels["\(event.app) \(event.conversation) \(uid)"] ?? 0,
            history: history(event.app, uid),
            revokes: revoke.map { [Steps.StepTime(writtenNanos: $0.atNanos)] } ?? [], from: event.atNanos, to: nanos,
            clock: clock)
    }

    /// The user of a token, if its last bind was applied before the event and none followed until the push.
    func owner(of token: String, appliedBefore nanos: UInt64, at pushNanos: UInt64) -> String? {
        guard let last = lastBind(of: token, at: pushNanos), observed.applied(last) < nanos else { return nil }
        return last.uid
    }

    /// Nil: it was unbound.
    private func lastBind(of token: String, at nanos: UInt64) -> StateSent? {
        let last = tokens[token]?.last { $0.atNanos <= nanos }
        return last?.tokenType == nil ? nil : last
    }

    /// The devices whose token of the event's type was bound from before the event until the end.
    func steadyDevices(of uid: String, _ event: Sent) -> Set<String> {
        var newest: [String: StateSent] = [:]
        for state in history(event.app, uid).states {
            if case .bind(let device, _, event.tokenType) = state.kind, event.tokenType != .activity {
                newest[device] = state
            }
        }
        return Set(
            newest.filter { _, bind in
                observed.applied(bind) < event.atNanos && !lostStates.contains(bind.eventID)
                    && lastBind(of: bind.token ?? "", at: .max)?.eventID == bind.eventID
            }.keys)
    }
}

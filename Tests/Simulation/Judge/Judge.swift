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
    /// How long an answer of Redis, or a request, may be on its way: a push that was checked before may leave after.
    var slackNanos: UInt64
    /// The wall clock of the world, and how far that of a worker may be from it.
    let clock: Steps.Clock
    /// How far a reader's clock may set back the time of a record without a usable Kafka time (contract section 0, "Times").
    let lateClockMs: Int64
    /// The same for an exact time. Without a wrong clock it is 1 ms, because a worker adds two clocks that are cut to whole
    /// milliseconds.
    var setBackMs: Int64 { allowance.hasOddTimes ? max(1, lateClockMs) : 0 }
    /// Answers that APNs gave by fault.
    let answers: [AnswerPeriod]
    private(set) var violations: [Violation] = []
    let outcomes: [String: [Observed.Outcome]]
    /// Requests by their `apns-id`.
    let pushes: [String: [Observed.Push]]
    /// By app and message id.
    let events: [String: Sent]
    /// Binds that are older than the stored ones; they change nothing.
    let voidBinds: Set<String>
    /// Tokens that two users bound with one version at about the same time.
    let unsureTokens: Set<String>
    /// By app and user.
    let histories: [String: History]
    /// By app, group and user.
    let levels: [String: Int]
    /// Binds and unbinds by token, in the order of their versions.
    let tokens: [String: [StateSent]]
    /// By event id.
    let deliveries: [String: [Observed.Delivery]]
    /// By app and event id.
    let sentByID: [String: Sent]
    /// Requests by app and message id.
    let pushesByMessage: [String: [Observed.Push]]
    /// Events by app and recipient; not those to groups that are divided.
    let received: [String: [Sent]]
    /// Users with a desktop, by app and user.
    let desktopUsers: Set<String>
    /// Revokes by app and target.
    let revokes: [String: Sent]
    private static let mostViolations = 20

    init(_ traffic: Sources, observed: Observed, allowance: Allowance = Allowance()) {
        self.allowance = allowance
        (mayRepeat, slackNanos) = (allowance.mayRepeat, allowance.slackNanos)
        clock = Steps.Clock(originMs: traffic.originMs, slackMs: allowance.clockSlackMs)
        lateClockMs = allowance.hasOddTimes ? allowance.unseenClockMs : 0
        answers = traffic.answers
        lostStates = Self.lostStates(traffic.states, observed, allowance.losses)
        (voidBinds, unsureTokens) = Self.voidBinds(
            traffic.states, observed, hasRefusals: traffic.answers.contains { $0.token != nil })
        let (voidBinds, unsureTokens) = (voidBinds, unsureTokens)
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
        sentByID = Dictionary(sent.map { ("\($0.app) \($0.eventID)", $0) }, uniquingKeysWith: { first, _ in first })
        pushesByMessage = Dictionary(grouping: observed.pushes.filter { $0.messageID != nil }) {
            "\($0.app) \($0.messageID ?? "")"
        }
        var received: [String: [Sent]] = [:]
        for event in sent {
            for uid in event.recipients { received["\(event.app) \(uid)", default: []].append(event) }
        }
        self.received = received
        desktopUsers = Set(traffic.moves.filter(\.isDesktop).map { "\($0.app) \($0.uid)" })
        deliveries = Dictionary(grouping: observed.deliveries) { $0.eventID }
        let tokens = Dictionary(
            grouping: states.filter { $0.token != nil && !voidBinds.contains($0.eventID) }
        ) { $0.token ?? "" }
        self.tokens = tokens
        let moves = Dictionary(grouping: traffic.moves) { "\($0.app) \($0.uid)" }
        let leaseDoubts = Self.leaseDoubts(allowance.losses, traffic.renewals)
        let refusedTokens = Set(traffic.answers.compactMap(\.token))
        var histories: [String: History] = [:]
        for (key, states) in Dictionary(grouping: states, by: { "\($0.app) \($0.uid)" }) {
            var unsure = lostStates
            // It may have been applied, and its answer lost, before the newer one came.
            if allowance.mayRepeat {
                unsure.formUnion(
                    states.map(\.eventID).filter { observed.results[$0]?.outcome == "stale" })
            }
            unsure.formUnion(Self.overtakenStates(states, lateClockMs: lateClockMs))
            var history = History(
                states: states, moves: moves[key] ?? [], observed: observed, unsure: unsure, void: voidBinds)
            history.movesEndNanos = traffic.movesEndNanos
            history.leaseLosses = traffic.leaseLosses
            history.leaseDoubts = leaseDoubts
            history.replacedMasters = allowance.replacedMasters
            history.clockSlackNanos = UInt64(clock.slackMs) &* 1_000_000
            history.mayLoseTokens = states.contains { state in
                guard let token = state.token else { return false }
                return unsureTokens.contains(token) || refusedTokens.contains(token)
                    || (tokens[token] ?? []).contains { $0.uid != state.uid }
            }
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
        var leaseLosses: [LeaseLoss] = []
        /// When Redis took the lease of a gateway.
        var renewals: [String: [UInt64]] = [:]
        var originMs: Int64 = 0
        /// Answers that APNs gave by fault.
        var answers: [AnswerPeriod] = []
    }

    /// Binds that cannot change anything, and tokens of which that is open.
    private static func voidBinds(
        _ states: [StateSent], _ observed: Observed, hasRefusals: Bool
    ) -> (Set<String>, Set<String>) {
        var (void, unsure): (Set<String>, Set<String>) = ([], [])
        var newest: [String: StateSent] = [:]
        var newestOfDevice: [String: Int64] = [:]
        for state in states {
            guard case .bind(let device, let token, let type) = state.kind else { continue }
            let place = "\(state.app) \(state.uid) \(device) \(type)"
            if let bind = newest[token], bind.words.version >= state.words.version, bind.uid != state.uid {
                void.insert(state.eventID)
                if observed.applied(bind) >= state.atNanos { unsure.insert(token) }
                continue
            }
            // With a token that APNs refused, the version of its device is forgotten.
            let isForgotten = hasRefusals && observed.results[state.eventID]?.outcome == "applied"
            if type != .activity, let version = newestOfDevice[place], version > state.words.version, !isForgotten {
                void.insert(state.eventID)
                continue
            }
            newest[token] = state
            newestOfDevice[place] = state.words.version
        }
        return (void, unsure)
    }

    mutating func run() -> [Violation] {
        for event in sent { checkOutcomes(of: event) }
        checkDuplicates()
        checkRecords()
        checkTokens()
        checkSwitches()
        checkTaken()
        checkPushes()
        checkTexts()
        checkCollapseIDs()
        checkDeliveries()
        checkAcks()
        checkDesktops()
        checkChoices()
        checkAlerts()
        checkBadges()
        checkNumbers()
        checkClears()
        checkMerged()
        checkStatistics()
        checkNumbersByList()
        checkStates()
        checkSideRecords()
        checkWaits()
        checkOrder()
        // Lost settings can make a record bad.
        for letter in observed.deadLetters where allowance.losses.isEmpty { found("no dead letter", letter, "") }
        return violations
    }

    mutating func found(_ rule: String, _ text: String, _ message: String) {
        guard violations.count < Self.mostViolations else { return }
        violations.append(Violation(rule: rule, text: text, message: message))
    }

    // MARK: Facts

    func app(_ id: String) -> AppSettings { apps.first { $0.id == id } ?? AppSettings(id: id) }

    func event(of push: Observed.Push) -> Sent? { push.messageID.flatMap { events["\(push.app) \($0)"] } }

    func strategy(_ event: Sent) -> Int { event.push.strategy ?? app(event.app).strategy }

    func history(_ app: String, _ uid: String) -> History {
        histories["\(app) \(uid)"] ?? History(states: [], moves: [], observed: observed)
    }

    /// From so far on a worker corrects times that are ahead of its own.
    static let clockStepMs: Int64 = 60_000

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
        guard !unsureTokens.contains(token), let last = lastBind(of: token, at: pushNanos),
            observed.applied(last) < nanos
        else { return nil }
        return last.uid
    }

    /// Nil: it was unbound.
    private func lastBind(of token: String, at nanos: UInt64) -> StateSent? {
        let last = tokens[token]?.last { $0.atNanos <= nanos }
        return last?.tokenType == nil ? nil : last
    }

    /// The devices that the event addresses, and that have had a token of its type from before the event until the end.
    func steadyDevices(of uid: String, _ event: Sent) -> Set<String> {
        var newest: [String: StateSent] = [:]
        var unsteady: Set<String> = []
        for state in history(event.app, uid).states where !voidBinds.contains(state.eventID) {
            guard case .bind(let device, let token, let type) = state.kind else { continue }
            if type == event.tokenType, type != .activity { newest[device] = state }
            // With a token that moves to another user, the device's others may go too.
            let isTaken = (tokens[token] ?? []).contains { $0.uid != uid && $0.words.version > state.words.version }
            if isTaken || unsureTokens.contains(token) { unsteady.insert(device) }
        }
        return Set(
            newest.filter { device, bind in
                observed.applied(bind) < event.atNanos && !lostStates.contains(bind.eventID)
                    && lastBind(of: bind.token ?? "", at: .max)?.eventID == bind.eventID
                    && !unsteady.contains(device) && (event.toDevices.isEmpty || event.toDevices.contains(device))
                    && !isRefused(bind.token ?? "")
            }.keys)
    }

    /// APNs said at some time that the token is dead.
    func isRefused(_ token: String) -> Bool { answers.contains { $0.token == token } }

    /// The device under which the user has the token at that time, or had it until a bind that may not have been applied yet.
    func device(of token: String, _ app: String, _ uid: String, at nanos: UInt64) -> String? {
        let binds = (tokens[token] ?? []).filter { $0.atNanos <= nanos && $0.tokenType != nil }
        let bind = binds.last { $0.uid == uid && $0.app == app || observed.applied($0) <= nanos }
        guard let bind, bind.uid == uid, bind.app == app else { return nil }
        if case .bind(let device, _, _) = bind.kind { return device }
        return nil
    }
}

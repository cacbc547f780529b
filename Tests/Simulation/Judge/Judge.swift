/// Compares what the world sent with what came out. It knows the contract and nothing of the worker.
struct Judge {
    let sent: [Sent]
    let states: [StateSent]
    let people: [Person]
    let observed: Observed
    /// Faults of the run that may repeat a record or a push.
    var mayRepeat = false
    /// Faults of the run that may put pushes of a conversation out of order.
    var mayReorder = false
    /// How long an answer of Redis, or a request, may be on its way: a push that was checked before may leave after.
    var slackNanos: UInt64 = 1_500_000_000
    private(set) var violations: [Violation] = []
    private let outcomes: [String: [Observed.Outcome]]
    private let pushes: [String: [Observed.Push]]
    private static let mostViolations = 20

    init(sent: [Sent], states: [StateSent], people: [Person], observed: Observed) {
        self.sent = sent
        self.states = states
        self.people = people
        self.observed = observed
        outcomes = Dictionary(grouping: observed.outcomes) { $0.eventID }
        pushes = Dictionary(grouping: observed.pushes) { $0.pid }
    }

    mutating func run() -> [Violation] {
        for event in sent { checkOutcomes(of: event) }
        checkDuplicates()
        checkTokens()
        checkTaken()
        checkBadges()
        if !mayReorder { checkOrder() }
        for letter in observed.deadLetters { found("no dead letter", letter, "") }
        return violations
    }

    private mutating func found(_ rule: String, _ text: String, _ message: String) {
        guard violations.count < Self.mostViolations else { return }
        violations.append(Violation(rule: rule, text: text, message: message))
    }

    // MARK: Outcomes

    private mutating func checkOutcomes(of event: Sent) {
        let all = outcomes[event.eventID] ?? []
        for outcome in all where !outcome.uid.isEmpty && !event.recipients.contains(outcome.uid) {
            found("results only of recipients", "\(event.eventID) has an outcome of \(outcome.uid)", event.messageID)
        }
        for uid in event.recipients {
            let own = all.filter { $0.uid == uid && $0.isFinal }
            checkOutcomes(own, of: event, uid)
        }
    }

    private mutating func checkOutcomes(_ own: [Observed.Outcome], of event: Sent, _ uid: String) {
        guard !own.isEmpty else {
            return found("one final outcome", "\(event.eventID) has none for \(uid)", event.messageID)
        }
        let withoutDevice = own.filter { $0.device.isEmpty }
        if !withoutDevice.isEmpty, withoutDevice.count < own.count {
            found(
                "a verdict with devices or one without",
                "\(event.eventID) of \(uid): \(own.map(\.text).joined(separator: "; "))", event.messageID)
        }
        for (device, records) in Dictionary(grouping: own, by: \.device).sorted(by: { $0.key < $1.key }) {
            let texts = Set(records.map(\.text))
            if texts.count > 1, !mayRepeat || Set(records.map(\.pid)).count > 1 && records.count > 2 {
                found(
                    "one final outcome",
                    "\(event.eventID) of \(uid) \(device): \(texts.sorted().joined(separator: "; "))",
                    event.messageID)
            } else if records.count > 1, !mayRepeat {
                found(
                    "one final outcome", "\(event.eventID) of \(uid) \(device) is recorded \(records.count) times",
                    event.messageID)
            }
        }
        guard withoutDevice.isEmpty else { return }
        for device in steadyDevices(of: uid, event) where !own.contains(where: { $0.device == device }) {
            found("one final outcome", "\(event.eventID) has none for \(uid)'s device \(device)", event.messageID)
        }
    }

    /// The devices that had their token from before the event until the end.
    private func steadyDevices(of uid: String, _ event: Sent) -> [String] {
        people.first { $0.app == event.app && $0.uid == uid }?.devices.filter { device in
            states.contains { state in
                guard case .bind(device.name, device.token) = state.kind, state.uid == uid, state.app == event.app
                else { return false }
                return (observed.applied[state.eventID] ?? .max) < event.atNanos
            }
        }.map(\.name) ?? []
    }

    // MARK: Pushes

    private mutating func checkDuplicates() {
        for (pid, requests) in pushes.sorted(by: { $0.key < $1.key }) {
            let accepted = requests.filter { $0.status == 200 }
            guard accepted.count > 1, !mayRepeat else { continue }
            found(
                "no push twice", "APNs accepted \(pid) \(accepted.count) times", accepted.first?.messageID ?? "")
        }
    }

    /// Nobody gets what is for another user: a token that moved, once that is applied.
    private mutating func checkTokens() {
        let events = Dictionary(sent.map { ("\($0.app) \($0.messageID)", $0) }, uniquingKeysWith: { first, _ in first })
        for push in observed.pushes {
            guard let message = push.messageID, let event = events["\(push.app) \(message)"] else { continue }
            guard let owner = owner(of: push.token, appliedBefore: event.atNanos, at: push.atNanos) else { continue }
            if !event.recipients.contains(owner) {
                found("no push to another user", "\(message) went to a token of \(owner)", message)
            }
        }
    }

    /// No push leaves after its message was read or revoked, once that is applied and recorded.
    private mutating func checkTaken() {
        let events = Dictionary(sent.map { ("\($0.app) \($0.messageID)", $0) }, uniquingKeysWith: { first, _ in first })
        let revokes = Dictionary(
            sent.filter { $0.kind == .revoke }.map { ("\($0.app) \($0.target ?? "")", $0) },
            uniquingKeysWith: { first, _ in first })
        for push in observed.pushes {
            guard let message = push.messageID, let event = events["\(push.app) \(message)"], event.kind == .message,
                let uid = owner(of: push.token, appliedBefore: event.atNanos, at: push.atNanos)
            else { continue }
            let before = push.atNanos > slackNanos ? push.atNanos - slackNanos : 0
            if let revoke = revokes["\(push.app) \(message)"],
                (outcomes[revoke.eventID] ?? []).contains(where: { $0.uid == uid && $0.isFinal && $0.atNanos < before })
            {
                found("no push after its revoke", "\(message) left for \(uid) after \(revoke.messageID) ended", message)
            }
            let isRead = states.contains { state in
                guard case .read(event.conversation, let upTo) = state.kind, state.uid == uid, state.app == event.app
                else { return false }
                return upTo >= event.seq && (observed.applied[state.eventID] ?? .max) < before
            }
            if isRead { found("no push after its read", "\(message) left for \(uid) though it was read", message) }
        }
    }

    /// The user of a token, if its last bind was applied before the event and none followed until the push.
    private func owner(of token: String, appliedBefore nanos: UInt64, at pushNanos: UInt64) -> String? {
        let binds = states.filter { if case .bind(_, token) = $0.kind { true } else { false } }
        guard let last = binds.last(where: { $0.atNanos <= pushNanos }) else { return nil }
        return (observed.applied[last.eventID] ?? .max) < nanos ? last.uid : nil
    }

    /// The pushes of a conversation reach a device in the order of its messages.
    private mutating func checkOrder() {
        var newest: [String: Sent] = [:]
        let events = Dictionary(sent.map { ("\($0.app) \($0.messageID)", $0) }, uniquingKeysWith: { first, _ in first })
        var seen: Set<String> = []
        for push in observed.pushes where push.status == 200 {
            guard let message = push.messageID, let event = events["\(push.app) \(message)"],
                seen.insert(push.pid).inserted
            else { continue }
            let key = "\(push.token) \(event.conversation)"
            if let before = newest[key], before.seq > event.seq {
                found("the order of a conversation", "\(message) came after \(before.messageID)", message)
            }
            newest[key] = event
        }
    }

    // MARK: Badges

    /// The last message to a user shows the number of all that is unread, and itself.
    private mutating func checkBadges() {
        for event in sent where event.kind == .probe {
            guard let uid = event.recipients.first else { continue }
            let unread = unread(of: uid, event.app)
            for outcome in outcomes[event.eventID] ?? [] where outcome.verdict == "accepted" {
                if outcome.badge != unread + 1 {
                    found(
                        "the badge",
                        "\(uid)'s last push has \(outcome.badge.map(String.init) ?? "none"), not \(unread + 1)",
                        event.messageID)
                }
            }
        }
    }

    private func unread(of uid: String, _ app: String) -> Int64 {
        var count: Int64 = 0
        let revoked = Set(sent.filter { $0.kind == .revoke && $0.app == app }.compactMap(\.target))
        for event in sent where event.app == app && event.kind == .message && event.recipients.contains(uid) {
            if revoked.contains(event.messageID) { continue }
            // What denied the alert says whether it was counted.
            let reasons = Set((outcomes[event.eventID] ?? []).filter { $0.uid == uid && $0.isFinal }.map(\.reason))
            if reasons.contains("conv_muted") || reasons.contains("already_read") { continue }
            let isRead = states.contains { state in
                guard case .read(event.conversation, let upTo) = state.kind, state.uid == uid, state.app == app
                else { return false }
                return upTo >= event.seq
            }
            if !isRead { count += 1 }
        }
        return count
    }
}

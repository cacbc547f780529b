// SPDX-License-Identifier: Apache-2.0
extension Judge {
    /// Each outcome counts once, however often its record was written. Of several records of a device one counts. Of an event that
    /// its producer wrote twice each may count. If two tries parked an event, an outcome may count with each parked record
    /// (docs/decisions/statistics.md, "Not exact").
    ///
    /// A recipient's outcomes count with the end of the record. They may be missing if the record was deleted before, or if another
    /// try ended the recipient without this device.
    mutating func checkStatistics() {
        guard !allowance.mayMiscount, let counted = observed.counted else { return }
        let doubled = Set(sent.filter(\.isDoubled).map { "\($0.app) \($0.eventID)" })
        let outcomes = Dictionary(grouping: observed.outcomes.filter(\.isFinal)) {
            "\($0.app) \($0.eventID) \($0.uid) \($0.device)"
        }
        let recipients = Dictionary(grouping: observed.outcomes.filter(\.isFinal)) {
            "\($0.app) \($0.eventID) \($0.uid)"
        }.mapValues { RecipientEnds($0, mayRepeat: mayRepeat) }
        let parkings = mayRepeat ? Dictionary(grouping: observed.handedOn, by: \.eventID).mapValues(\.count) : [:]
        var (least, most): ([String: Int64], [String: Int64]) = ([:], [:])
        for case let (records, last?) in outcomes.values.map({ ($0, $0.last) }) {
            let mayCountTwice = records.count > 1 && doubled.contains("\(last.app) \(last.eventID)")
            // Of two tries with different ends either may be the one that counts.
            let verdicts = Set(records.map(\.verdict))
            if !mayCountTwice, verdicts.count == 1, !mayBeMissing(last, recipients) {
                least["\(last.app) \(last.verdict)", default: 0] += 1
            }
            if mayCountTwice {
                for record in records { most["\(record.app) \(record.verdict)", default: 0] += 1 }
            } else {
                let times = max(1, parkings[last.eventID] ?? 1)
                for verdict in verdicts { most["\(last.app) \(verdict)", default: 0] += Int64(times) }
            }
        }
        countDigests(&least, &most)
        for kind in Set(most.keys).union(counted.keys).sorted() {
            let (number, low, high) = (counted[kind] ?? 0, least[kind] ?? 0, most[kind] ?? 0)
            if number < low || number > high {
                found("the statistics equal the results", "\(kind): \(number) counted, \(low) to \(high) recorded", "")
            }
        }
    }

    /// A digest counts like an alert, with each device that it went to.
    private func countDigests(_ least: inout [String: Int64], _ most: inout [String: Int64]) {
        let digests = observed.outcomes.filter { $0.isDigest && $0.verdict != "parked" }
        for records in Dictionary(grouping: digests, by: { "\($0.app) \($0.eventID) \($0.uid) \($0.device)" }).values {
            guard let last = records.last else { continue }
            if !mayRepeat { least["\(last.app) \(last.verdict)", default: 0] += 1 }
            for record in mayRepeat ? records : [last] { most["\(record.app) \(record.verdict)", default: 0] += 1 }
        }
    }

    /// Every list of the statistics: by reason, push type, name and task; and the reports of devices.
    ///
    /// Only where each outcome is written once.
    mutating func checkNumbersByList() {
        guard !allowance.mayMiscount, !mayRepeat, allowance.losses.isEmpty, observed.counted != nil,
            !observed.numbers.isEmpty, !sent.contains(where: \.isDoubled), allowance.lostEvents.isEmpty
        else { return }
        var wanted: [String: Int64] = [:]
        let parked = Set(observed.handedOn.map(\.eventID))
        /// Apps whose `sent` is open.
        var isOpen: Set<String> = []
        for outcome in observed.outcomes where outcome.isFinal {
            guard let event = sentByID["\(outcome.app) \(outcome.eventID)"] else { continue }
            let letter = Self.letters[outcome.verdict] ?? "?"
            let hasRequest = !(pushes[outcome.pid] ?? []).isEmpty && !outcome.pid.isEmpty
            var letters = [letter]
            if outcome.verdict == "accepted" || hasRequest { letters.append("s") }
            // Parked work may have had its requests before.
            if outcome.verdict != "accepted", letters.contains("s"), parked.contains(event.eventID) {
                isOpen.insert(outcome.app)
            }
            let type = Self.type(event)
            if outcome.verdict == "accepted", type == "alert" { letters.append("A") }
            let name = event.push.template == nil ? event.push.typeName ?? "-" : "hello"
            wanted["\(outcome.app) reason \(letter) \(outcome.reason)", default: 0] += 1
            for letter in letters {
                wanted["\(outcome.app) type \(type) \(letter)", default: 0] += 1
                wanted[
                    "\(outcome.app) name \(event.kind == .activity ? "live_activity" : name) \(letter)", default: 0] +=
                    1
                if let task = event.push.taskID { wanted["\(outcome.app) task \(task) \(letter)", default: 0] += 1 }
            }
        }
        for state in states {
            guard case .pushReport(_, let pid, let messageID, let isOpened) = state.kind,
                observed.results[state.eventID]?.outcome == "applied",
                let event = events["\(state.app) \(messageID)"], Self.type(event) == "alert",
                // Known with the end of the recipient, and not once its mark is over.
                wasEnded(event, state.uid, before: state.atNanos),
                (event.push.expireMs ?? .max) > state.sentMs + 60_000,
                (pushes[pid] ?? []).contains(where: { $0.status == 200 })
            else { continue }
            wanted["\(state.app) reported - \(isOpened ? "w" : "v")", default: 0] += 1
        }
        compare(wanted, isOpen)
    }

    /// Whether the brokers had all the recipient's outcomes and deliveries: then its mark says so.
    private func wasEnded(_ event: Sent, _ uid: String, before nanos: UInt64) -> Bool {
        let own = (outcomes[event.eventID] ?? []).filter { $0.uid == uid && $0.isFinal }
        let delivered = (deliveries[event.eventID] ?? []).filter { $0.uid == uid }
        return !own.isEmpty && (own.map(\.atNanos) + delivered.map(\.atNanos)).allSatisfy { $0 &+ 500_000_000 < nanos }
    }

    private mutating func compare(_ wanted: [String: Int64], _ openApps: Set<String>) {
        var counted: [String: Int64] = [:]
        for (key, number) in observed.numbers {
            let parts = key.split(separator: " ").map(String.init)
            guard parts.count == 4 else { continue }
            switch (parts[1], parts[3]) {
            // Reports of alerts are below; others enter no rate.
            case ("all", "v"), ("all", "w"): counted["\(parts[0]) reported - \(parts[3])"] = number
            case ("all", _), (_, "v"), (_, "w"), (_, "V"), (_, "W"): break
            case ("type", _) where parts[2] == "badge": break
            case ("name", _) where ["badge", "digest"].contains(parts[2]): break
            case ("reason", _), ("type", _), ("name", _), ("task", _): counted[key] = number
            default: break
            }
        }
        for key in Set(wanted.keys).union(counted.keys).sorted() {
            // Digests and badges alone have no list of their own for reasons.
            let (number, low) = (counted[key] ?? 0, wanted[key] ?? 0)
            if key.hasSuffix(" s"), openApps.contains(where: { key.hasPrefix($0 + " ") }) { continue }
            let isOpen = apps.contains { ($0.clearsOnRead || $0.sendsDigests) && key.hasPrefix($0.id + " ") }
            if key.contains(" reason ") || key.contains(" type "), isOpen ? number >= low : false { continue }
            if number != low, !(key.contains(" reported ") && number >= low) {
                found("the lists of the statistics", "\(key): \(number) counted, \(low) recorded", "")
            }
        }
    }

    private static let letters = [
        "accepted": "a", "rejected": "r", "expired": "e", "suppressed": "x", "online": "o",
    ]

    private static func type(_ event: Sent) -> String {
        if event.kind == .activity { return "liveactivity" }
        return event.push.isVoip ? "voip" : event.push.isSilent ? "background" : "alert"
    }

    private func mayBeMissing(_ last: Observed.Outcome, _ recipients: [String: RecipientEnds]) -> Bool {
        if allowance.lostEvents.contains(last.eventID) { return true }
        guard !last.uid.isEmpty, let ends = recipients["\(last.app) \(last.eventID) \(last.uid)"] else { return false }
        return ends.areOfTwoTries || ends.lastNanos > last.atNanos
    }
}

/// How one recipient of an event ended, by all its records.
private struct RecipientEnds {
    /// One try ended it by its devices, and another without them.
    let areOfTwoTries: Bool
    /// When a try ended it without devices, or again.
    let lastNanos: UInt64

    init(_ outcomes: [Observed.Outcome], mayRepeat: Bool) {
        areOfTwoTries = mayRepeat && Set(outcomes.map(\.device.isEmpty)).count == 2
        lastNanos = outcomes.filter { $0.device.isEmpty || mayRepeat }.map(\.atNanos).max() ?? 0
    }
}

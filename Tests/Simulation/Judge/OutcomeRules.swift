// SPDX-License-Identifier: Apache-2.0
/// Outcomes: one for each device, with a reason that the contract's steps give.
extension Judge {
    mutating func checkOutcomes(of event: Sent) {
        let all = outcomes[event.eventID] ?? []
        for outcome in all where !outcome.uid.isEmpty && !event.recipients.contains(outcome.uid) {
            found("results only of recipients", "\(event.eventID) has an outcome of \(outcome.uid)", event.messageID)
        }
        let whole = all.filter { $0.uid.isEmpty && $0.isFinal }
        // Partly read, or not at all.
        if allowance.lostEvents.contains(event.eventID) { return }
        if event.recipients.isEmpty { return checkNobody(whole, event) }
        if let outcome = whole.first {
            let hasRedisAll = allowance.losses.isEmpty && !allowance.mayMiscount && !allowance.refusesWrites
            let isFirst = !all.contains { !$0.uid.isEmpty && $0.isFinal && $0.atNanos < outcome.atNanos }
            guard event.isToGroup, outcome.reason == "expired", isFirst || !hasRedisAll,
                steps(event, "", until: outcome.atNanos).expired != .never
            else { return found("one final outcome", "\(event.eventID) has \(outcome.text)", event.messageID) }
            // The members were not read; none needs an outcome of its own.
            return
        }
        for uid in event.recipients {
            let own = all.filter { $0.uid == uid && $0.isFinal }
            checkOutcomes(own, of: event, uid)
            checkReasons(own, of: event, uid)
        }
    }

    private mutating func checkNobody(_ whole: [Observed.Outcome], _ event: Sent) {
        guard let outcome = whole.first else {
            return found("one final outcome", "\(event.eventID) has none, and no recipient", event.messageID)
        }
        let isExpired = outcome.reason == "expired" && event.push.expireMs != nil
        if outcome.reason != "no_recipients", !isExpired {
            found("the reason", "\(event.eventID) has no recipient: \(outcome.text)", event.messageID)
        }
        // Without a recipient there is no mark: each copy is recorded.
        if whole.count > 1, !mayRepeat, !event.isDoubled {
            found("one final outcome", "\(event.eventID) is recorded \(whole.count) times", event.messageID)
        }
    }

    private mutating func checkOutcomes(_ own: [Observed.Outcome], of event: Sent, _ uid: String) {
        guard !own.isEmpty else {
            return found("one final outcome", "\(event.eventID) has none for \(uid)", event.messageID)
        }
        // A copy that another worker reads is resumed while the first is unfinished.
        let mayRepeat = mayRepeat || event.isDoubled
        let withoutDevice = own.filter { $0.device.isEmpty }
        // With its mark and its entry in the ledger, Redis has lost that there was an earlier try.
        if !withoutDevice.isEmpty, withoutDevice.count < own.count, !mayHaveLost(event, uid),
            !leftNoTrace(event, uid, own), !wasUnmarked(own), !wasDecidedTwice(event, uid, withoutDevice)
        {
            found(
                "a verdict with devices or one without",
                "\(event.eventID) of \(uid): \(own.map(\.text).joined(separator: "; "))", event.messageID)
        }
        for (device, records) in Dictionary(grouping: own, by: \.device).sorted(by: { $0.key < $1.key }) {
            let texts = Set(records.map(\.text))
            let pids = Set(records.map(\.pid)).subtracting([""])
            if texts.count > 1, !mayRepeat || pids.count > 1 && records.count > 2 {
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
        for device in steadyDevices(of: uid, event).sorted() where !own.contains(where: { $0.device == device }) {
            found("one final outcome", "\(event.eventID) has none for \(uid)'s device \(device)", event.messageID)
        }
    }

    /// Two processes read the copies, and the step that denied one was changing, or their clocks differ.
    private func wasDecidedTwice(_ event: Sent, _ uid: String, _ denied: [Observed.Outcome]) -> Bool {
        guard event.isCopied, !allowance.hadOneProcess, let last = denied.map(\.atNanos).max() else { return false }
        let steps = steps(event, uid, until: last)
        return denied.allSatisfy { steps.answer($0.reason) == .maybe }
    }

    // MARK: Reasons

    private mutating func checkReasons(_ own: [Observed.Outcome], of event: Sent, _ uid: String) {
        guard let last = own.map(\.atNanos).max() else { return }
        let steps = steps(event, uid, until: last)
        for outcome in own {
            if let why = fault(in: outcome, of: event, uid, steps) {
                found("the reason", "\(event.eventID) of \(uid), \(outcome.text): \(why)", event.messageID)
            }
        }
    }

    /// Why the contract gives no such outcome; nil: it does.
    private func fault(
        in outcome: Observed.Outcome, of event: Sent, _ uid: String, _ steps: Steps
    ) -> String? {
        if let certain = steps.certain, !certain.allowed.contains(outcome.reason) {
            return "the alert is denied by \(certain.reason)"
        }
        if let answer = steps.answer(outcome.reason), answer == .never, !mayEndEarly(outcome, event) {
            return "nothing denies it so"
        }
        let history = history(event.app, uid)
        switch outcome.verdict {
        case "accepted":
            let isAccepted = (pushes[outcome.pid] ?? []).contains { $0.status == 200 && $0.app == event.app }
            if !isAccepted { return "APNs accepted no such push" }
            if outcome.reason != (steps.isForced ? "forced" : "ok") { return "forced is \(steps.isForced)" }
        case "online": return faultOnline(outcome, event, uid)
        case "rejected":
            if outcome.reason == "Unanswered", !mayRepeat { return "no link broke" }
        case "suppressed":
            switch outcome.reason {
            case "no_token":
                let steady = steadyDevices(of: uid, event)
                if outcome.device.isEmpty ? !steady.isEmpty : steady.contains(outcome.device) {
                    return "it has a token"
                }
            case "connection_only": if strategy(event) != 3 { return "the strategy is another" }
            case "coalesced": if !mayBeMerged(event, history, outcome.atNanos) { return "no later push includes it" }
            case "activity_over": if !mayBeOver(event) { return "the activity goes on" }
            case "desktop_online":
                if !history.mayHaveDesktop(from: event.atNanos, to: outcome.atNanos) { return "no desktop is live" }
                if !mayWaitForDesktop(event, history, outcome.atNanos) { return "the phones need not wait" }
            case "token_moved":
                if !mayMove(event, history, outcome.atNanos), !mayBeRemoved(outcome, event) { return "no token moved" }
            case "payload_too_large":
                if (event.push.key?.utf8.count ?? 0) < 3000 { return "its payload fits" }
            case "no_recipients": return "the contract gives no such reason here"
            default: break
            }
        default: break
        }
        return nil
    }

    private func faultOnline(_ outcome: Observed.Outcome, _ event: Sent, _ uid: String) -> String? {
        let isDelivered = (deliveries[event.eventID] ?? []).contains {
            $0.uid == uid && $0.device == outcome.device
        }
        if !isDelivered { return allowance.mayLoseDeliveries ? nil : "nothing was delivered" }
        guard outcome.reason == "acked" else { return nil }
        let isAcked = history(event.app, uid).states.contains {
            if case .ack(outcome.device, event.messageID) = $0.kind { $0.atNanos <= outcome.atNanos } else { false }
        }
        return isAcked ? nil : "no device sent an ack"
    }

    /// A push that APNs could not take ends when the next try would come after its life.
    private func mayEndEarly(_ outcome: Observed.Outcome, _ event: Sent) -> Bool {
        outcome.reason == "expired" && !outcome.device.isEmpty && event.push.expireMs != nil
            && (pushes[outcome.pid] ?? []).contains { $0.status != 200 }
    }

    /// In a burst; or after a 429, where another push with the same collapse id takes its place.
    private func mayBeMerged(_ event: Sent, _ history: History, _ nanos: UInt64) -> Bool {
        if app(event.app).burstTenths > 0 { return true }
        let own = Set(history.states.compactMap(\.token))
        guard observed.pushes.contains(where: { $0.status == 429 && $0.atNanos <= nanos && own.contains($0.token) })
        else { return false }
        let ids = collapseIDs(event)
        return sent.contains { other in
            other.app == event.app && other.eventID != event.eventID && !collapseIDs(other).isDisjoint(with: ids)
        }
    }

    /// The collapse ids that a push of the event may have. A revoke has that of its original, or its own. A
    /// message without one has its own id here, in place of the hash.
    private func collapseIDs(_ event: Sent) -> Set<String> {
        var ids: Set<String> = [event.push.collapseID ?? event.messageID]
        guard let target = event.target else { return ids }
        ids.insert(target)
        if let id = events["\(event.app) \(target)"]?.push.collapseID { ids.insert(id) }
        return ids
    }

    private func mayBeOver(_ event: Sent) -> Bool {
        guard let activity = event.activity, activity.step == .update else { return false }
        return sent.contains {
            $0.app == event.app && $0.activity?.id == activity.id && $0.activity?.step == .end
        }
    }

    private func mayWaitForDesktop(_ event: Sent, _ history: History, _ nanos: UInt64) -> Bool {
        history.policies(from: event.atNanos, to: nanos).contains { !$0.pushes }
    }

    /// APNs refused a token of the device, and it was removed, while the push waited.
    private func mayBeRemoved(_ outcome: Observed.Outcome, _ event: Sent) -> Bool {
        observed.feedback.contains { feedback in
            feedback.app == event.app && feedback.uid == outcome.uid && feedback.device == outcome.device
                && feedback.atNanos >= event.atNanos
                && observed.pushes.contains {
                    $0.token == feedback.token && $0.reason == feedback.cause && $0.atNanos <= outcome.atNanos
                }
        }
    }

    /// A token of the user was bound, or replaced, or taken by another user, between the event and its outcome; or Redis lost it.
    private func mayMove(_ event: Sent, _ history: History, _ nanos: UInt64) -> Bool {
        if history.lostFromNanos <= nanos { return true }
        let own = Set(history.states.compactMap(\.token))
        return own.contains { token in
            (tokens[token] ?? []).contains { $0.atNanos <= nanos && observed.applied($0) >= event.atNanos }
        }
    }
}

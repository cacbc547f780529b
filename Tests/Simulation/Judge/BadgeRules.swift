// SPDX-License-Identifier: Apache-2.0
/// The badge's law: the last push to each user shows the number of all that is unread, and itself.
extension Judge {
    mutating func checkBadges() {
        for event in sent where event.kind == .probe && app(event.app).badge == .server {
            guard let uid = event.recipients.first, let unread = unread(of: uid, event.app) else { continue }
            let cap = app(event.app).badgeCap
            func shown(_ number: Int64) -> Int64 { cap > 0 ? min(cap, number + 1) : number + 1 }
            let range = shown(unread.lowerBound)...shown(unread.upperBound)
            // As the device has it; `RecordRules` compares the record with that.
            let shownNumbers = (outcomes[event.eventID] ?? []).flatMap { pushes[$0.pid] ?? [] }
                .filter { $0.status == 200 }
            for number in shownNumbers.map(\.badge) where !(number.map { range.contains($0) } ?? false) {
                let wanted = range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound) to \(range.upperBound)"
                found(
                    "the badge", "\(uid)'s last push has \(number.map(String.init) ?? "none"), not \(wanted)",
                    event.messageID)
            }
        }
    }

    /// A client's report is the base: messages after it count, and later reads and revokes subtract from it.
    ///
    /// - Parameters:
    ///   - from: changes until this time surely count; changes until `to` may count.
    ///   - own: an event that has surely been decided.
    /// - Returns: the least and the greatest possible number; nil where clocks leave it open.
    func unread(
        of uid: String, _ app: String, from: UInt64 = .max, to: UInt64 = .max, own: Sent? = nil
    ) -> ClosedRange<Int64>? {
        let history = history(app, uid)
        var base: (value: Int64, ms: Int64) = (0, .min)
        for (index, state) in history.states.enumerated() {
            guard case .report(let value, let ms) = state.kind, ms > base.ms, state.atNanos <= to else { continue }
            if lostStates.contains(state.eventID) { return nil }
            // Such a report may hold or not.
            if to < .max, history.applied[index] >= from { return nil }
            base = (value, ms)
        }
        // Which message came before the report is a matter of clocks.
        if base.ms > .min, clock.slackMs > 1000 { return nil }
        var (least, greatest, takenLeast, takenGreatest): (Int64, Int64, Int64, Int64) = (0, 0, 0, 0)
        for event in received["\(app) \(uid)"] ?? [] where event.atNanos <= to {
            if to == .max, event.kind == .probe { continue }
            var counted = counted(event, uid)
            guard counted.greatest > 0 else { continue }
            let isOwn = event.eventID == own?.eventID
            if to < .max, !isOwn, !wasDecided(event, uid, by: from) { counted.least = 0 }
            let perhaps = goneMs(event, uid, history, appliedBy: .max, writtenBy: to)
            let surely = to < .max ? goneMs(event, uid, history, appliedBy: from, writtenBy: to) : perhaps
            if event.sentMs > base.ms {
                if perhaps.isEmpty { least += counted.least }
                if surely.isEmpty || mayBeBack(event, uid, history) { greatest += counted.greatest }
            } else if perhaps.contains(where: { $0 > base.ms }), surely.allSatisfy({ $0 > base.ms }) {
                // Of a revoke before the report and a read after it, the read may be stored first.
                if !surely.isEmpty, perhaps.allSatisfy({ $0 > base.ms }) { takenLeast += counted.least }
                takenGreatest += counted.greatest
            }
        }
        let value = base.ms > .min ? base.value : 0
        return max(0, value - takenGreatest) + least...max(0, value - takenLeast) + greatest
    }

    /// Something came out of the event for the user: it was claimed before that.
    private func wasDecided(_ event: Sent, _ uid: String, by nanos: UInt64) -> Bool {
        (outcomes[event.eventID] ?? []).contains {
            $0.uid == uid && $0.atNanos < nanos && ($0.isFinal || !$0.pid.isEmpty)
        }
    }

    /// How often the message counts: 0 or 1, or 2 of copies with two times.
    private func counted(_ event: Sent, _ uid: String) -> (least: Int64, greatest: Int64) {
        guard event.kind == .message || event.kind == .probe || event.kind == .revoke && event.revokeBadge == "count"
        else {
            return (0, 0)
        }
        if allowance.lostEvents.contains(event.eventID) { return (0, 1) }
        let own = (outcomes[event.eventID] ?? []).filter { $0.uid == uid && $0.isFinal }
        // An earlier try may have counted it before the event expired as a whole.
        guard let last = own.map(\.atNanos).max() else { return (0, mayRepeat ? 1 : 0) }
        let steps = steps(event, uid, until: last)
        let most: Int64 = mayHaveTwoTimes(event) ? 2 : 1
        switch steps.counts {
        case .never: return (0, 0)
        case .maybe: return (0, most)
        case .always: break
        }
        // It may have expired before it was counted, or been read.
        let isOpen = own.contains { ["expired", "already_read", "revoked"].contains($0.reason) }
        if own.contains(where: { $0.device.isEmpty && $0.reason == "expired" }), !mayRepeat {
            // The process for whose clock the other copy was in time counted it.
            return event.isCopied && own.contains { !$0.device.isEmpty } ? (1, most) : (0, 0)
        }
        return (isOpen || mayHaveLost(event, uid) ? 0 : 1, most)
    }

    /// Two processes read the copies, one of which has no Kafka time, by a late clock: the badge's ledger knows a message by its time.
    private func mayHaveTwoTimes(_ event: Sent) -> Bool {
        event.isCopied && lateClockMs > 0 && !allowance.hadOneProcess
    }

    /// What took it off may be lost.
    private func mayBeBack(_ event: Sent, _ uid: String, _ history: History) -> Bool {
        if let revoke = revokes["\(event.app) \(event.messageID)"] {
            return allowance.lostEvents.contains(revoke.eventID) || mayHaveLost(revoke, uid)
        }
        return mayHaveLost(event, uid) && !lostStates.isEmpty
    }

    /// The times of the reads and the revoke that take it off.
    ///
    /// - Parameters:
    ///   - appliedBy: only changes that were surely stored before this time.
    ///   - writtenBy: only changes that were written until this time.
    private func goneMs(
        _ event: Sent, _ uid: String, _ history: History, appliedBy: UInt64, writtenBy: UInt64
    ) -> [Int64] {
        var times: [Int64] = []
        for (index, state) in history.states.enumerated() {
            guard case .read(event.conversation, let upTo) = state.kind, upTo >= event.seq, state.atNanos <= writtenBy,
                appliedBy == .max || history.applied[index] < appliedBy
            else { continue }
            times.append(state.sentMs)
        }
        if let revoke = revokes["\(event.app) \(event.messageID)"], revoke.recipients.contains(uid),
            revoke.revokeBadge == "decrease", revoke.atNanos <= writtenBy,
            appliedBy == .max || wasDecided(revoke, uid, by: appliedBy)
        {
            times.append(revoke.sentMs)
        }
        return times
    }

    // MARK: Every number

    /// A number is read when its push is sent.
    mutating func checkNumbers() {
        for push in observed.pushes where push.payload != nil && app(push.app).badge == .server {
            guard let event = event(of: push) else {
                if push.body == nil, let uid = steadyOwner(of: push.token, at: push.atNanos) {
                    checkNumber(push, uid, push.app, event: nil)
                }
                continue
            }
            if event.kind == .activity { continue }
            if event.push.isSilent {
                if push.badge != nil {
                    found("the badge", "\(event.messageID) is silent, and has one", event.messageID)
                }
                continue
            }
            guard let uid = owner(of: push.token, appliedBefore: event.atNanos, at: push.atNanos) else { continue }
            checkNumber(push, uid, event.app, event: event)
        }
    }

    private func steadyOwner(of token: String, at nanos: UInt64) -> String? {
        let before = nanos > slackNanos ? nanos - slackNanos : 0
        return owner(of: token, appliedBefore: before, at: nanos)
    }

    private mutating func checkNumber(_ push: Observed.Push, _ uid: String, _ app: String, event: Sent?) {
        let from = push.atNanos > slackNanos ? push.atNanos - slackNanos : 0
        guard let range = unread(of: uid, app, from: from, to: push.atNanos, own: event) else { return }
        let cap = self.app(app).badgeCap
        func shown(_ number: Int64) -> Int64 { cap > 0 ? min(cap, number) : number }
        let name = "\(event?.messageID ?? "a push of the badge") to \(uid)'s …\(push.token.suffix(4))"
        if let badge = push.badge {
            if badge < shown(range.lowerBound) || badge > shown(range.upperBound) {
                found(
                    "the number", "\(name) has \(badge), not \(shown(range.lowerBound)) to \(shown(range.upperBound))",
                    event?.messageID ?? "")
            }
            if badge == 0, let event, event.kind != .revoke {
                found("the number", "\(name) has 0, which an alert omits", event.messageID)
            }
        } else if range.lowerBound > 0, !allowance.mayLackNumbers, !(event?.push.isVoip ?? false) {
            found("the number", "\(name) has none, and \(range.lowerBound) or more are unread", event?.messageID ?? "")
        }
    }

    // MARK: `clear_on_read`

    /// A read or revoke that surely lowers the number sends it to the devices that were pushed.
    mutating func checkClears() {
        guard !mayRepeat, !allowance.mayLackNumbers, !allowance.mayWait, allowance.losses.isEmpty else { return }
        for settings in apps where settings.clearsOnRead && settings.badge == .server && settings.strategy != 3 {
            for state in states where state.app == settings.id {
                guard case .read = state.kind, observed.applied(state) < .max else { continue }
                checkClear(state.uid, settings.id, at: state.atNanos, done: observed.applied(state), state.eventID)
            }
            for revoke in sent
            where revoke.app == settings.id && revoke.kind == .revoke && revoke.revokeBadge == "decrease" {
                for uid in revoke.recipients {
                    guard let done = (outcomes[revoke.eventID] ?? []).filter({ $0.uid == uid }).map(\.atNanos).max()
                    else {
                        continue
                    }
                    checkClear(uid, settings.id, at: revoke.atNanos, done: done, revoke.messageID)
                }
            }
        }
    }

    private mutating func checkClear(_ uid: String, _ app: String, at nanos: UInt64, done: UInt64, _ name: String) {
        guard done < nanos &+ 10_000_000_000, nanos > slackNanos,
            let before = unread(of: uid, app, from: nanos - slackNanos, to: nanos - 1),
            let after = unread(of: uid, app, from: done, to: done), after.upperBound < before.lowerBound
        else { return }
        let cap = self.app(app).badgeCap
        if cap > 0, after.upperBound >= cap { return }
        let own = Set(history(app, uid).states.compactMap(\.token))
        for token in own.sorted() {
            let end = done &+ 8_000_000_000
            guard owner(of: token, appliedBefore: nanos - slackNanos, at: end) == uid,
                tokens[token]?.first?.tokenType == .alert, !isRefused(token)
            else { continue }
            let pushes = observed.pushes.filter { $0.token == token && $0.badge != nil && $0.status == 200 }
            guard let last = pushes.last(where: { $0.atNanos < nanos }), (last.badge ?? 0) > 0 else { continue }
            if pushes.contains(where: { $0.atNanos >= nanos && $0.atNanos <= end }) { continue }
            found("the number", "\(name) lowered it for \(uid), and …\(token.suffix(4)) did not get it", name)
        }
    }

    // MARK: Merged alerts

    /// An alert for several messages says how many they are.
    mutating func checkMerged() {
        guard !mayRepeat, !answers.contains(where: { $0.status == 429 }) else { return }
        var merged: [String: Int] = [:]
        var seen: Set<String> = []
        for push in observed.pushes where push.status == 200 && push.payload != nil {
            guard let event = event(of: push), app(event.app).burstTenths > 0, !app(event.app).sendsDigests,
                seen.insert(push.pid).inserted,
                let uid = owner(of: push.token, appliedBefore: event.atNanos, at: push.atNanos),
                // A record may be late. The token may belong to another device then.
                let device = device(of: push.token, event.app, uid, at: push.atNanos)
            else { continue }
            let number = Self.number(in: push.body ?? "")
            if number > 1 {
                merged["\(event.app) \(uid) \(event.conversation) \(push.token) \(device)", default: 0] += number - 1
            }
        }
        for (key, number) in merged.sorted(by: { $0.key < $1.key }) {
            let parts = key.split(separator: " ").map(String.init)
            let coalesced = observed.outcomes.filter { outcome in
                outcome.app == parts[0] && outcome.uid == parts[1] && outcome.device == parts[4]
                    && outcome.reason == "coalesced"
                    && sentByID["\(outcome.app) \(outcome.eventID)"]?.conversation == parts[2]
            }
            let isExact = endedInAlerts(uid: parts[1], parts[0], conversation: parts[2], token: parts[3])
            if coalesced.count < number || isExact && coalesced.count > number {
                found(
                    "the number",
                    "alerts of \(parts[2]) to \(parts[1]) say that they include \(number) others, and "
                        + "\(coalesced.count) are", "")
            }
        }
    }

    /// Whether all of a conversation's messages to a device were pushed or merged, so that each merged one is in an alert.
    private func endedInAlerts(uid: String, _ app: String, conversation: String, token: String) -> Bool {
        guard allowance.isCalm, !answers.contains(where: { $0.token != nil }) else { return false }
        let history = history(app, uid)
        let device = device(of: token, app, uid, at: .max)
        guard let device else { return false }
        let tokens = history.states.compactMap { state -> String? in
            guard case .bind(device, _, .alert) = state.kind else { return nil }
            return state.token
        }
        guard Set(tokens) == [token] else { return false }
        let events = (received["\(app) \(uid)"] ?? []).filter { $0.conversation == conversation }
        return events.allSatisfy { event in
            event.kind != .revoke && !event.isDoubled && !event.isCopied
                && (outcomes[event.eventID] ?? []).allSatisfy {
                    $0.uid != uid || $0.device != device || !$0.isFinal
                        || ["ok", "forced", "coalesced"].contains($0.reason)
                }
        }
            && !history.states.contains {
                if case .read(conversation, _) = $0.kind { return true }
                return false
            }
    }
}

// SPDX-License-Identifier: Apache-2.0
/// The badge's law: the last push to each user shows the number of all that is unread, and itself.
extension Judge {
    mutating func checkBadges() {
        for event in sent where event.kind == .probe && app(event.app).badge == .server {
            guard let uid = event.recipients.first, let unread = unread(of: uid, event.app) else { continue }
            let cap = app(event.app).badgeCap
            func shown(_ number: Int64) -> Int64 { cap > 0 ? min(cap, number + 1) : number + 1 }
            let range = shown(unread.lowerBound)...shown(unread.upperBound)
            for outcome in outcomes[event.eventID] ?? [] where outcome.verdict == "accepted" {
                if !(outcome.badge.map { range.contains($0) } ?? false) {
                    let wanted = range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound) to \(range.upperBound)"
                    found(
                        "the badge",
                        "\(uid)'s last push has \(outcome.badge.map(String.init) ?? "none"), not \(wanted)",
                        event.messageID)
                }
            }
        }
    }

    /// A client's report is the base: messages after it count, and what was taken back later is subtracted from it.
    ///
    /// - Returns: the least and the greatest possible number; nil where clocks leave it open.
    private func unread(of uid: String, _ app: String) -> ClosedRange<Int64>? {
        let history = history(app, uid)
        var base: (value: Int64, ms: Int64) = (0, .min)
        for state in history.states {
            guard case .report(let value, let ms) = state.kind, ms > base.ms else { continue }
            if lostStates.contains(state.eventID) { return nil }
            base = (value, ms)
        }
        // Which message came before the report is a matter of clocks.
        if base.ms > .min, clock.slackMs > 1000 { return nil }
        var (least, greatest, takenLeast, takenGreatest): (Int64, Int64, Int64, Int64) = (0, 0, 0, 0)
        for event in sent where event.app == app && event.kind != .probe && event.recipients.contains(uid) {
            let counted = counted(event, uid)
            guard counted.greatest > 0 else { continue }
            let goneMs = goneMs(event, uid, history)
            if event.sentMs > base.ms {
                if goneMs == nil { least += counted.least }
                if goneMs == nil || mayBeBack(event, uid, history) { greatest += counted.greatest }
            } else if let goneMs, goneMs > base.ms {
                takenLeast += counted.least
                takenGreatest += counted.greatest
            }
        }
        let value = base.ms > .min ? base.value : 0
        return max(0, value - takenGreatest) + least...max(0, value - takenLeast) + greatest
    }

    /// How often the message counts: 0 or 1.
    private func counted(_ event: Sent, _ uid: String) -> (least: Int64, greatest: Int64) {
        guard event.kind == .message else { return (0, 0) }
        if allowance.lostEvents.contains(event.eventID) { return (0, 1) }
        let own = (outcomes[event.eventID] ?? []).filter { $0.uid == uid && $0.isFinal }
        // An earlier try may have counted it before the event expired as a whole.
        guard let last = own.map(\.atNanos).max() else { return (0, mayRepeat ? 1 : 0) }
        let steps = steps(event, uid, until: last)
        switch steps.counts {
        case .never: return (0, 0)
        case .maybe: return (0, 1)
        case .always: break
        }
        // It may have expired before it was counted, or been read.
        let isOpen = own.contains { ["expired", "already_read", "revoked"].contains($0.reason) }
        if own.contains(where: { $0.device.isEmpty && $0.reason == "expired" }), !mayRepeat { return (0, 0) }
        return (isOpen || mayHaveLost(event, uid) ? 0 : 1, 1)
    }

    /// What took it off may be lost.
    private func mayBeBack(_ event: Sent, _ uid: String, _ history: History) -> Bool {
        if let revoke = revokes["\(event.app) \(event.messageID)"] {
            return allowance.lostEvents.contains(revoke.eventID) || mayHaveLost(revoke, uid)
        }
        return mayHaveLost(event, uid) && !lostStates.isEmpty
    }

    /// The time of the first read or revoke that took it off.
    private func goneMs(_ event: Sent, _ uid: String, _ history: History) -> Int64? {
        var times: [Int64] = []
        for state in history.states {
            guard case .read(event.conversation, let upTo) = state.kind, upTo >= event.seq else { continue }
            times.append(state.sentMs)
        }
        if let revoke = revokes["\(event.app) \(event.messageID)"], revoke.recipients.contains(uid) {
            times.append(revoke.sentMs)
        }
        return times.min()
    }
}

// SPDX-License-Identifier: Apache-2.0
/// What users chose for themselves: `settings.levels`, `settings.snooze_until_ms` and `bind.token.alerts`.
extension Steps {
    /// The user's own levels for the event's type; 0: none.
    static func typeLevels(_ event: Sent, _ history: History, from: UInt64, to: UInt64) -> [Int] {
        let type = event.isGroup ? "group" : event.isOfSystem ? "system" : "p2p"
        return history.possible(from: from, to: to, first: 0) { _, kind in
            if case .typeLevel(type, let level) = kind { level } else { nil }
        }
    }

    /// The levels of the windows, and 5 where a snooze may have held.
    static func snoozed(
        _ windows: [Int?], _ history: History, from: UInt64, to: UInt64, _ clock: Clock
    ) -> [Int?] {
        let ends = history.possible(from: from, to: to, first: Int64(0)) { _, kind in
            if case .snooze(let untilMs) = kind { untilMs } else { nil }
        }
        var levels: [Int?] = []
        for endMs in ends {
            if clock.ms(to) + clock.slackMs >= endMs {
                for level in windows where !levels.contains(level) { levels.append(level) }
            }
            if clock.ms(from) - clock.slackMs < endMs, !levels.contains(5) { levels.append(5) }
        }
        return levels
    }
}

/// A device that shows no alerts gets none, and only such a device ends as `alerts_off`.
extension Judge {
    mutating func checkChoices() {
        // A bind that Redis has lost says nothing.
        guard allowance.losses.isEmpty else { return }
        for push in observed.pushes where push.type == "alert" && push.body != nil {
            guard let event = event(of: push), event.tokenType == .alert,
                let uid = owner(of: push.token, appliedBefore: event.atNanos, at: push.atNanos)
            else { continue }
            let binds = history(event.app, uid).wallets(from: event.atNanos, to: push.atNanos).joined().filter {
                $0.hex == push.token
            }
            if !binds.isEmpty, binds.allSatisfy({ !$0.showsAlerts }) {
                found("no alerts", "\(event.messageID) went to \(uid)'s …\(push.token.suffix(4))", event.messageID)
            }
        }
        for outcome in observed.outcomes where outcome.reason == "alerts_off" {
            let name = "\(outcome.eventID) of \(outcome.uid), \(outcome.text)"
            guard let event = sentByID["\(outcome.app) \(outcome.eventID)"] else {
                // A digest is an alert too.
                if !outcome.isDigest { found("no alerts", "\(name): there is no such event", "") }
                continue
            }
            if event.tokenType != .alert || event.push.isSilent || event.kind == .activity {
                found("no alerts", "\(name): it is no alert", event.messageID)
            }
            let mayBeOff = history(event.app, outcome.uid).wallets(from: event.atNanos, to: outcome.atNanos).joined()
                .contains { $0.device == outcome.device && $0.type == .alert && !$0.showsAlerts }
            if !mayBeOff { found("no alerts", "\(name): the device shows alerts", event.messageID) }
        }
        checkSMSWithoutAlerts()
    }

    /// For an SMS such a token is of no use.
    private mutating func checkSMSWithoutAlerts() {
        guard !mayRepeat else { return }
        for event in sent where event.push.wantsSMS && !event.isDoubled && event.kind == .message {
            for uid in event.recipients {
                let own = (outcomes[event.eventID] ?? []).filter { $0.uid == uid && $0.isFinal }
                guard !own.isEmpty, own.allSatisfy({ $0.reason == "alerts_off" }) else { continue }
                let history = history(event.app, uid)
                let until = own.map(\.atNanos).max() ?? 0
                let isLive = history.connected.contains { history.mayBeLive($0, from: event.atNanos, to: until) }
                let isAsked = observed.sms.contains {
                    $0.app == event.app && $0.eventID == event.eventID && $0.uid == uid
                }
                if !isLive, !isAsked {
                    found("SMS", "\(event.eventID) of \(uid) reaches no alert, and none is asked for", event.messageID)
                }
            }
        }
    }
}

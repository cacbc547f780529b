// SPDX-License-Identifier: Apache-2.0
/// The results of changes of user state.
extension Judge {
    mutating func checkStates() {
        checkReports()
        checkResults()
        // A worker whose clock is behind takes a change for older than it is.
        if clock.slackMs <= Self.clockStepMs { checkStale() }
    }

    /// A change is `stale` only where a newer one was written; one whose first answer was lost is a `repeat`.
    private mutating func checkStale() {
        for history in histories.sorted(by: { $0.key < $1.key }) {
            let states = history.value.states
            for (index, state) in states.enumerated() {
                // Of a lost bind only the token's owner may be lost, or only the user's part.
                guard let result = observed.results[state.eventID], result.outcome == "stale",
                    !lostStates.contains(state.eventID), !voidBinds.contains(state.eventID)
                else { continue }
                let isLater = states.enumerated().contains { place, other in
                    place != index && other.atNanos <= result.atNanos
                        && other.replaces(state, isLater: place > index, lateClockMs: lateClockMs)
                }
                let isTaken = tokens[state.token ?? ""]?.last { $0.atNanos <= result.atNanos }
                if !isLater, !isSwitched(state, by: result.atNanos), !isOvertaken(state, by: result.atNanos),
                    isTaken.map({ $0.eventID == state.eventID }) ?? true
                {
                    found("results", "\(state.eventID) of \(state.uid) is stale, and nothing is newer", state.eventID)
                }
            }
        }
    }

    /// Changes that a late clock may have made older than an earlier one of the same user: they hold, or not, or in part.
    static func overtakenStates(_ states: [StateSent], lateClockMs: Int64) -> [String] {
        guard lateClockMs > 0 else { return [] }
        return states.indices.filter { index in
            states[..<index].contains { $0.replaces(states[index], isLater: false, lateClockMs: lateClockMs) }
        }.map { states[$0].eventID }
    }

    /// A bind that is no newer was applied first. If its first answer was lost, it is a `repeat`.
    private func isOvertaken(_ state: StateSent, by nanos: UInt64) -> Bool {
        states.contains { other in
            other.token == state.token && other.token != nil && voidBinds.contains(other.eventID)
                && other.words.version >= state.words.version
                && ["applied", "repeat"].contains(observed.results[other.eventID]?.outcome)
                && observed.applied(other) <= nanos
        }
    }

    /// Another user's newer bind of the token, in another partition, may have been read first.
    private func isTaken(_ token: String, from state: StateSent, by nanos: UInt64) -> Bool {
        (tokens[token] ?? []).contains {
            $0.uid != state.uid && $0.tokenType != nil && $0.words.version > state.words.version && $0.atNanos <= nanos
        }
    }

    /// While the slot of its user or token moves, Redis cannot always apply a bind, and it is tried again. A newer one of the same
    /// device was first.
    private func isPassed(_ index: Int, _ history: History, by nanos: UInt64) -> Bool {
        let state = history.states[index]
        let tags = ["\(state.app):\(state.uid)", "\(state.app):\(state.token ?? "")"]
        let isTriedAgain = allowance.slotMoves.contains { move in
            move.nanos.overlaps(state.atNanos...max(state.atNanos, nanos)) && !move.tags.isDisjoint(with: tags)
        }
        guard isTriedAgain else { return false }
        return history.states[(index + 1)...].contains { other in
            other.words.version > state.words.version && other.replaces(state, isLater: true, lateClockMs: 0)
                && observed.results[other.eventID]?.outcome == "applied" && observed.applied(other) <= nanos
        }
    }

    /// The bind's phone went to another user, who bound a token of it later. A bind that is applied after that one has ended.
    private func isSwitched(_ state: StateSent, by nanos: UInt64) -> Bool {
        guard case .bind(let device, _, _) = state.kind else { return false }
        let lateNanos = UInt64(lateClockMs) &* 1_000_000
        return tokens.values.contains { changes in
            zip(changes, changes.dropFirst()).contains { former, bind in
                guard case .bind(device, _, _) = former.kind else { return false }
                return former.app == state.app && former.uid == state.uid && bind.uid != state.uid
                    && bind.tokenType != nil && bind.atNanos &+ lateNanos >= state.atNanos && bind.atNanos <= nanos
            }
        }
    }

    /// Without a fault each result is the one that the records before it give.
    private mutating func checkResults() {
        for state in states where observed.results[state.eventID] == nil && allowance.lostEvents.isEmpty {
            found("results", "\(state.eventID) of \(state.uid) has none", state.eventID)
        }
        for state in states {
            guard let result = observed.results[state.eventID], let kind = result.kind else { continue }
            if kind != state.name || result.uid != state.uid {
                found(
                    "results", "that of \(state.eventID) is about a \(kind) of \(result.uid ?? "nobody")", state.eventID
                )
            }
        }
        guard !mayRepeat, allowance.losses.isEmpty, clock.slackMs <= Self.clockStepMs else { return }
        for history in histories.sorted(by: { $0.key < $1.key }) {
            for (index, state) in history.value.states.enumerated() {
                guard let result = observed.results[state.eventID] else { continue }
                if let why = fault(in: result, of: state, index, history.value) {
                    found(
                        "results", "\(state.eventID) of \(state.uid) is \(result.outcome) \(result.reason): \(why)",
                        state.eventID)
                }
            }
        }
    }

    private func fault(
        in result: Observed.StateResult, of state: StateSent, _ index: Int, _ history: History
    ) -> String? {
        let earlier = history.states[..<index]
        switch state.kind {
        case .bind(_, let token, _):
            if unsureTokens.contains(token) { return nil }
            if voidBinds.contains(state.eventID) { return result.outcome == "applied" ? "a newer bind is stored" : nil }
            let isSame = earlier.last { $0.token == token }.map {
                $0.tokenType != nil && $0.words.version == state.words.version
            }
            // A late clock may make it older than the switch before it.
            if isSame == true || lateClockMs > 0 && isSwitched(state, by: result.atNanos) { return nil }
            if result.outcome == "stale",
                isTaken(token, from: state, by: result.atNanos) || isPassed(index, history, by: result.atNanos)
            {
                return nil
            }
            return result.outcome == "applied" ? nil : "it is the newest bind"
        case .unbind(_, let token):
            guard let bind = tokens[token]?.last(where: { $0.atNanos < state.atNanos }), bind.uid == state.uid,
                observed.applied(bind) < state.atNanos, !isRefused(token)
            else { return nil }
            return result.outcome == "applied" ? nil : "the token is the user's"
        case .ack: return result.outcome == "applied" ? nil : "an ack always counts"
        case .mute, .quiet, .quietSwitch, .quietLevel, .typeLevel, .snooze, .showsDetail, .desktopPolicy, .language,
            .phone:
            return result.outcome == "ignored" ? "settings are never ignored" : nil
        case .read, .report: return result.outcome == "ignored" ? "it is never ignored" : nil
        case .pushReport: return nil
        }
    }

    /// One report per push and device counts; the worker knows its own push ids. Of two at the same time it may be the second.
    mutating func checkReports() {
        // Repeated, or with a bind that Redis has lost, the same report has another result.
        guard !mayRepeat else { return }
        var counted: Set<String> = []
        for state in states {
            guard case .pushReport(let device, let pid, let messageID, let isOpened) = state.kind,
                let outcome = observed.results[state.eventID]?.outcome
            else { continue }
            // A push to an earlier token of the device cannot be checked any more.
            let binds = history(state.app, state.uid).states.filter {
                if case .bind(device, _, .alert) = $0.kind { true } else { false }
            }
            let isSteady =
                binds.count == 1 && (tokens[binds[0].token ?? ""] ?? []).count == 1
                && !isRefused(binds[0].token ?? "")
            if outcome == "ignored", isSteady {
                found("reports", "\(state.eventID) of \(messageID) at \(state.uid)'s \(device) is ignored", messageID)
            }
            if outcome == "applied", !counted.insert("\(pid) \(device) \(isOpened)").inserted {
                found("reports", "\(state.eventID) of \(messageID) at \(state.uid)'s \(device) counts again", messageID)
            }
        }
    }
}

extension StateSent {
    /// After this change of the same user, the other one is no longer a change.
    ///
    /// - Parameter lateClockMs: how much older than its record a change may be.
    fileprivate func replaces(_ other: StateSent, isLater: Bool, lateClockMs: Int64) -> Bool {
        let otherMs = other.sentMs - lateClockMs
        return switch (kind, other.kind) {
        case (.bind(let device, _, let type), .bind(let otherDevice, _, let otherType)):
            isLater && device == otherDevice && type == otherType
        case (.mute(let conversation, _, _), .mute(let otherConversation, _, _)):
            conversation == otherConversation && sentMs >= otherMs
        case (.quiet, .quiet), (.showsDetail, .showsDetail), (.quietSwitch, .quietSwitch), (.quietLevel, .quietLevel),
            (.quiet, .quietSwitch), (.quiet, .quietLevel), (.language, .language), (.phone, .phone),
            (.desktopPolicy, .desktopPolicy), (.snooze, .snooze):
            sentMs >= otherMs
        case (.typeLevel(let type, _), .typeLevel(let otherType, _)): type == otherType && sentMs >= otherMs
        case (.report(_, let ms), .report(_, let clientMs)): ms >= min(clientMs, otherMs)
        case (.read(let conversation, let upTo), .read(let otherConversation, let otherUpTo)):
            conversation == otherConversation && upTo >= otherUpTo && sentMs - lateClockMs <= other.sentMs
        default: false
        }
    }
}

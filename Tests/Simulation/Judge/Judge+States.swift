// SPDX-License-Identifier: Apache-2.0
/// The results of changes of user state.
extension Judge {
    mutating func checkStates() {
        checkReports()
        // A worker whose clock is behind takes a change for older than it is.
        if clock.slackMs <= Self.clockStepMs { checkStale() }
    }

    /// From so far on a worker corrects times that are ahead of its own.
    private static let clockStepMs: Int64 = 60_000

    /// A change is `stale` only where a newer one was written; one whose first answer was lost is a `repeat`.
    private mutating func checkStale() {
        for history in histories.sorted(by: { $0.key < $1.key }) {
            let states = history.value.states
            for (index, state) in states.enumerated() {
                // Of a lost bind only the token's owner may be lost, or only the user's part.
                guard let result = observed.results[state.eventID], result.outcome == "stale",
                    !lostStates.contains(state.eventID)
                else { continue }
                let isLater = states.enumerated().contains { place, other in
                    place != index && other.atNanos <= result.atNanos && other.replaces(state, isLater: place > index)
                }
                let isTaken = tokens[state.token ?? ""]?.last { $0.atNanos <= result.atNanos }
                if !isLater, isTaken.map({ $0.eventID == state.eventID }) ?? true {
                    found("results", "\(state.eventID) of \(state.uid) is stale, and nothing is newer", state.eventID)
                }
            }
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
            let isSteady = binds.count == 1 && (tokens[binds[0].token ?? ""] ?? []).count == 1
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
    fileprivate func replaces(_ other: StateSent, isLater: Bool) -> Bool {
        switch (kind, other.kind) {
        case (.bind(let device, _, let type), .bind(let otherDevice, _, let otherType)):
            isLater && device == otherDevice && type == otherType
        case (.mute(let conversation, _, _), .mute(let otherConversation, _, _)):
            conversation == otherConversation && sentMs >= other.sentMs
        case (.quiet, .quiet), (.showsDetail, .showsDetail), (.desktopPolicy, .desktopPolicy): sentMs >= other.sentMs
        case (.report(_, let ms), .report(_, let otherMs)): ms >= otherMs
        case (.read(let conversation, let upTo), .read(let otherConversation, let otherUpTo)):
            conversation == otherConversation && upTo >= otherUpTo && sentMs <= other.sentMs
        default: false
        }
    }
}

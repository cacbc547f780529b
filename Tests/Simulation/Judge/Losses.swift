// SPDX-License-Identifier: Apache-2.0
/// What Redis and Kafka have lost, and what is uncertain because of it.
extension Judge {
    /// Changes of user state that Redis may have lost. The worker applies them again, at a time that nobody sees.
    static func lostStates(_ states: [StateSent], _ observed: Observed, _ losses: [Loss]) -> Set<String> {
        guard !losses.isEmpty else { return [] }
        let lost = states.filter { state in
            losses.contains { loss in
                let isNamed =
                    loss.tags.contains("\(state.app):\(state.uid)")
                    || state.token.map { loss.tags.contains("\(state.app):\($0)") } ?? false
                return isNamed && state.atNanos <= loss.toNanos && observed.applied(state) >= loss.fromNanos
            }
        }
        return Set(lost.map(\.eventID))
    }

    /// The exception of docs/contract/README.md "Repeats": the earlier try wrote nothing to Redis, because the message did not count,
    /// or a badge report took the read message out of the ledger. So a repeat finds no trace of it.
    func leftNoTrace(_ event: Sent, _ uid: String, _ own: [Observed.Outcome]) -> Bool {
        guard mayRepeat else { return false }
        let (whole, named) = (own.filter(\.device.isEmpty), own.filter { !$0.device.isEmpty })
        let firstNanos = named.map(\.atNanos).min() ?? .max
        let isUncounted = whole.allSatisfy { one in
            !event.push.isCounted || one.atNanos <= firstNanos && one.reason == "conv_muted"
        }
        if isUncounted { return true }
        // The ack came after the record, and before the next try.
        let isLateAck = whole.allSatisfy { $0.reason == "no_token" && $0.atNanos <= firstNanos }
        if isLateAck, named.allSatisfy({ $0.reason == "acked" }) { return true }
        guard whole.allSatisfy({ $0.reason == "already_read" }) else { return false }
        return states.contains { state in
            guard case .report(_, let clientMs) = state.kind else { return false }
            return state.app == event.app && state.uid == uid && clientMs >= event.sentMs
        }
    }

    /// Whether Redis refused the mark of the first try, which is the same exception.
    func wasUnmarked(_ own: [Observed.Outcome]) -> Bool {
        guard mayRepeat else { return false }
        let pushedNanos = own.flatMap { pushes[$0.pid] ?? [] }.map(\.atNanos)
        guard let first = (own.map(\.atNanos) + pushedNanos).min() else { return false }
        return allowance.refusals.contains { $0.contains(first) }
    }

    /// Whether what the worker wrote about the event and the user may be lost.
    func mayHaveLost(_ event: Sent, _ uid: String) -> Bool {
        guard !allowance.losses.isEmpty else { return false }
        let own = (outcomes[event.eventID] ?? []).filter { $0.uid == uid }
        // Without a number the claim may be owed: Redis took it later, at a time that nobody sees.
        let isOwed = own.allSatisfy { $0.badge == nil }
        let last = isOwed ? .max : own.last?.atNanos ?? .max
        return allowance.losses.contains { loss in
            (loss.tags.contains("\(event.app):\(uid)") || loss.tags.contains("\(event.app):\(event.messageID)"))
                && event.atNanos <= loss.toNanos && last >= loss.fromNanos
        }
    }

    /// When Redis may have had an older lease of a gateway, or none: from the loss of its key until the gateway has renewed it.
    static func leaseDoubts(_ losses: [Loss], _ renewals: [String: [UInt64]]) -> [History.LeaseDoubt] {
        losses.flatMap { loss in
            renewals.filter { loss.tags.contains($0.key) }.map { gateway, times in
                let renewed = times.first { $0 >= loss.toNanos }.map { $0 + History.leaseNanos }
                return History.LeaseDoubt(gateway: gateway, fromNanos: loss.fromNanos, toNanos: renewed ?? .max)
            }
        }
    }

    /// The first loss of a key of the user, such as its presence.
    static func firstLoss(of app: String, _ uid: String, _ losses: [Loss]) -> UInt64 {
        losses.filter { $0.tags.contains("\(app):\(uid)") }.map(\.fromNanos).min() ?? .max
    }
}

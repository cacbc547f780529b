// SPDX-License-Identifier: Apache-2.0
/// Waits: attempts are counted, Retry-After is kept, and what waits comes back in time.
extension Judge {
    mutating func checkWaits() {
        checkAttempts()
        checkRetryAfter()
        checkEnds()
        checkLatencies()
        checkTenants()
        checkOneInFlight()
    }

    /// `attempts` is the number of requests since the work was last parked. Some may not have reached APNs.
    private mutating func checkAttempts() {
        guard !mayRepeat else { return }
        for outcome in observed.outcomes where outcome.isFinal && outcome.verdict == "accepted" {
            guard let attempts = outcome.attempts, let event = sentByID["\(outcome.app) \(outcome.eventID)"],
                !event.isDoubled, !observed.handedOn.contains(where: { $0.eventID == event.eventID })
            else { continue }
            let requests = pushes[outcome.pid] ?? []
            // A bind of its token gives the push another route. The requests of that route count from one.
            let isBoundAgain = (tokens[requests.first?.token ?? ""] ?? []).contains {
                $0.atNanos > event.atNanos && $0.atNanos < outcome.atNanos
            }
            if isBoundAgain { continue }
            // A wait that is too long for memory parks the push. Its requests are then counted from one, also if it is decided again
            // before its record has left memory.
            let putOff = requests.last { isPutOff($0) && $0.atNanos < outcome.atNanos }
            let answered = requests.filter {
                $0.isAnswered && $0.atNanos <= outcome.atNanos && $0.atNanos > putOff?.atNanos ?? 0
            }
            if Int64(answered.count) > attempts {
                found(
                    "attempts",
                    "\(event.eventID) of \(outcome.uid), \(outcome.text): \(attempts) are recorded, and APNs "
                        + "answered \(answered.count)", event.messageID)
            }
            if Int64(requests.count) < attempts, allowance.isCalm {
                found(
                    "attempts",
                    "\(event.eventID) of \(outcome.uid), \(outcome.text): \(attempts) are recorded, and APNs "
                        + "saw \(requests.count)", event.messageID)
            }
        }
    }

    private func isPutOff(_ push: Observed.Push) -> Bool {
        push.status == 429
            && answers.contains {
                $0.status == 429 && ($0.app ?? push.app) == push.app && $0.retryAfterSeconds ?? 0 > 10
                    && $0.fromNanos <= push.atNanos && $0.toNanos >= push.atNanos
            }
    }

    /// No further request for a push before its Retry-After is over. Other workers may push to the device, and an accepted push
    /// releases the pushes that wait for the device.
    private mutating func checkRetryAfter() {
        guard !mayRepeat, !answers.isEmpty else { return }
        var waitsUntil: [String: UInt64] = [:]
        // Each of two processes pushes its copy, and knows only its own answers.
        for push in observed.pushes where allowance.hadOneProcess || event(of: push)?.isCopied != true {
            if let until = waitsUntil[push.pid], push.atNanos &+ 1_000_000 * UInt64(clock.slackMs) < until {
                found(
                    "waits", "…\(push.token.suffix(4)) has a request before its Retry-After is over",
                    push.messageID ?? "")
            }
            let period = answers.first {
                $0.fromNanos <= push.atNanos && $0.toNanos >= push.atNanos && $0.status == push.status
                    && $0.token == nil && ($0.app ?? push.app) == push.app
            }
            if push.status == 200 { waitsUntil = waitsUntil.filter { pushes[$0.key]?.first?.token != push.token } }
            // Of two periods with 429 either may have answered.
            if let seconds = period?.retryAfterSeconds, push.status == 429,
                answers.count(where: { $0.status == 429 && ($0.app ?? push.app) == push.app }) == 1
            {
                waitsUntil[push.pid] = push.atNanos &+ UInt64(seconds) * 1_000_000_000
            }
        }
    }

    private func user(of push: Observed.Push) -> String? {
        event(of: push).flatMap { outcomes[$0.eventID] }?.first { $0.pid == push.pid }?.uid
    }

    /// A device has one push in flight. Each shard has a queue of its own for it.
    private mutating func checkOneInFlight() {
        guard !mayRepeat, observed.pushes.contains(where: { $0.delayMs > 0 }) else { return }
        for (token, requests) in Dictionary(grouping: observed.pushes.filter(\.isAnswered), by: \.token) {
            for (place, later) in requests.enumerated() where later.delayMs > 0 {
                let open = requests[..<place].last {
                    $0.atNanos > later.receivedNanos &+ Self.lookNanos && haveOneQueue($0, later)
                }
                guard let open else { continue }
                found(
                    "one push in flight",
                    "…\(token.suffix(4)) has \(later.pid) before the answer to \(open.pid)", later.messageID ?? "")
            }
        }
    }

    /// An observer looks so often.
    private static let lookNanos: UInt64 = 20_000_000

    /// Whether one shard surely sent both.
    private func haveOneQueue(_ one: Observed.Push, _ other: Observed.Push) -> Bool {
        // A token that moves is a device of another user.
        if Set((tokens[one.token] ?? []).map(\.uid)).count > 1, user(of: one) != user(of: other) { return false }
        if allowance.hadOneShard { return true }
        guard let first = event(of: one), let second = event(of: other), first.partition == second.partition,
            !first.isDoubled, !second.isDoubled, !first.isCopied, !second.isCopied
        else { return false }
        return !observed.handedOn.contains { $0.eventID == first.eventID || $0.eventID == second.eventID }
    }

    /// An app's own work comes at its time, whatever waits of another app.
    private mutating func checkTenants() {
        guard allowance.isOnlyThrottled else { return }
        for outcome in observed.outcomes where outcome.isFinal && !outcome.uid.isEmpty {
            guard let event = sentByID["\(outcome.app) \(outcome.eventID)"], !event.isDoubled, event.kind == .message,
                let throttle = answers.first(where: { $0.app == event.app }), throttle.toNanos != .max,
                !mayBeSeveral(event), !hasWaits(event, outcome)
            else { continue }
            let retryNanos = UInt64(throttle.retryAfterSeconds ?? 0) * 1_000_000_000
            // Until then an earlier push to the device may wait.
            let dueNanos = max(event.atNanos, throttle.toNanos &+ retryNanos)
            if outcome.atNanos > dueNanos &+ Self.tenantNanos {
                found(
                    "an app waits for itself only",
                    "\(event.eventID) of \(outcome.uid), \(outcome.text): it was due at \(dueNanos / 1_000_000) ms, and "
                        + "ended at \(outcome.atNanos / 1_000_000)", event.messageID)
            }
        }
    }

    /// The time from the due moment of parked work to its end.
    private static let tenantNanos: UInt64 = 12_000_000_000

    /// An ack, or a desktop.
    private func hasWaits(_ event: Sent, _ outcome: Observed.Outcome) -> Bool {
        (deliveries[event.eventID] ?? []).contains { $0.uid == outcome.uid && $0.wantsAck }
            || history(event.app, outcome.uid).mayHaveDesktop(from: event.atNanos, to: outcome.atNanos)
    }

    /// `latency_ms` begins with the event's Kafka time. If that is absent it begins when a worker reads the event.
    private mutating func checkLatencies() {
        for outcome in observed.outcomes where outcome.isFinal {
            guard let latency = outcome.latencyMs, let event = sentByID["\(outcome.app) \(outcome.eventID)"] else {
                continue
            }
            let most = clock.ms(outcome.atNanos) - clock.ms(event.atNanos) + clock.slackMs + 100
            if latency < 0 || latency > most {
                found(
                    "the latency",
                    "\(event.eventID) of \(outcome.uid), \(outcome.text): \(latency) ms, at most \(most)",
                    event.messageID)
            }
        }
    }

    /// Without a fault each outcome comes within its waits.
    private mutating func checkEnds() {
        guard allowance.isCalm else { return }
        for outcome in observed.outcomes where outcome.isFinal && !outcome.uid.isEmpty {
            guard let event = sentByID["\(outcome.app) \(outcome.eventID)"], !event.isDoubled else { continue }
            let settings = app(event.app)
            let hold =
                history(event.app, outcome.uid).policies(from: 0, to: outcome.atNanos).map(\.holdSeconds).max() ?? 0
            // Two rounds of acks, a hold, a burst, and a stay in the parked topic.
            let most = 16 + 2 * hold + settings.burstTenths / 10 + 25
            if outcome.atNanos > event.atNanos &+ UInt64(most) * 1_000_000_000 {
                found(
                    "waits",
                    "\(event.eventID) of \(outcome.uid), \(outcome.text): it took "
                        + "\((outcome.atNanos - event.atNanos) / 1_000_000_000) s", event.messageID)
            }
        }
    }
}

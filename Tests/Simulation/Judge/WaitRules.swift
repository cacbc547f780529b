// SPDX-License-Identifier: Apache-2.0
/// Waits: attempts are counted, Retry-After is kept, and what waits comes back in time.
extension Judge {
    mutating func checkWaits() {
        checkAttempts()
        checkRetryAfter()
        checkEnds()
    }

    /// `attempts` is the number of requests since the work was last parked. Some may not have reached APNs.
    private mutating func checkAttempts() {
        guard !mayRepeat else { return }
        for outcome in observed.outcomes where outcome.isFinal && outcome.verdict == "accepted" {
            guard let attempts = outcome.attempts, let event = sentByID["\(outcome.app) \(outcome.eventID)"],
                !event.isDoubled, !observed.handedOn.contains(where: { $0.eventID == event.eventID })
            else { continue }
            let requests = pushes[outcome.pid] ?? []
            let answered = requests.filter { $0.isAnswered && $0.atNanos <= outcome.atNanos }
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

    /// No further request for a push before its Retry-After is over. Other workers may push to the device.
    private mutating func checkRetryAfter() {
        guard !mayRepeat, !answers.isEmpty else { return }
        var waitsUntil: [String: UInt64] = [:]
        for push in observed.pushes {
            if let until = waitsUntil[push.pid], push.atNanos &+ 1_000_000 * UInt64(clock.slackMs) < until {
                found(
                    "waits", "…\(push.token.suffix(4)) has a request before its Retry-After is over",
                    push.messageID ?? "")
            }
            let period = answers.first {
                $0.fromNanos <= push.atNanos && $0.toNanos >= push.atNanos && $0.status == push.status
                    && $0.token == nil
            }
            // Of two periods with 429 either may have answered.
            if let seconds = period?.retryAfterSeconds, push.status == 429,
                answers.count(where: { $0.status == 429 }) == 1
            {
                waitsUntil[push.pid] = push.atNanos &+ UInt64(seconds) * 1_000_000_000
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

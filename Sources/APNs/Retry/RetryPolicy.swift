// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// The end of one attempt.
enum AttemptEnd: Equatable {
    case answer(status: Int, reason: APNsReason, time: AnswerTime, retryAfterSeconds: UInt32?)
    case unprocessed(UnprocessedCause)
    case unknown(UnknownCause)

    /// The table's rule for the answer; nil without an answer.
    var rule: AnswerRule? {
        guard case .answer(let status, let reason, _, _) = self else { return nil }
        return AnswerTable.rule(status: status, reason: reason)
    }
}

/// The previous attempts of a push.
struct PushHistory: Equatable {
    /// Requests written.
    var attempts: UInt32 = 0
    /// Attempts with an unknown result.
    var unknowns: UInt32 = 0
    /// Attempts that ended unprocessed, or were answered with a request to use another connection.
    var refusals: UInt32 = 0
    /// Answers that asked for a delay.
    var delays: UInt32 = 0
}

/// The next step of a push after an attempt.
enum NextStep: Equatable {
    case finish(PushOutcome)
    /// Before all waiting pushes, on another connection.
    case resendNow
    case resendAfter(nanos: UInt64)
    /// Back to the head of the queue. The credential gate decides when it is sent.
    case awaitCredential
}

/// Decides the next step of a push, without a clock or state.
struct RetryPolicy {
    /// Immediate free resends before they are spaced, because a peer that refuses everything must not be flooded.
    static var refusalsAtOnce: UInt32 { 3 }

    let retryBackoff: Backoff
    /// After "unavailable" without a time.
    let endpointBackoff: Backoff
    /// After a 429 about a device, without a time.
    let tokenBackoff: Backoff
    let refusalBackoff = Backoff(baseNanos: 100_000_000, capNanos: 5_000_000_000)
    let retryAfterMaxNanos: UInt64
    let holdNanos: UInt64
    let unknownTries: Int

    init(_ limits: APNsLimits) {
        retryBackoff = limits.retryBackoff
        endpointBackoff = limits.retryBackoff.capped(atNanos: limits.waitingRetryMaxNanos)
        tokenBackoff = limits.retryBackoff.capped(atNanos: limits.tokenRetryMaxNanos)
        retryAfterMaxNanos = limits.retryAfterMaxNanos
        holdNanos = limits.holdNanos
        unknownTries = limits.unknownTries
    }

    /// The step after `end`; counts it in `history`.
    ///
    /// - Parameter leftMs: time until the push expires; `.max` if it never does.
    func next(
        after end: AttemptEnd, rule: AnswerRule?, history: inout PushHistory, id: PushID, isRepeatable: Bool,
        leftMs: Int64,
        random: inout SmallRandom
    ) -> NextStep {
        switch end {
        case .answer(let status, let reason, let time, let retryAfter):
            switch rule?.push ?? .reject {
            case .accept: return .finish(.accepted(apnsID: id))
            case .reject: return .finish(.rejected(status: status, reason: reason, time: time))
            case .awaitCredential: return leftMs > 0 ? .awaitCredential : .finish(ended(history, id))
            case .resend: return free(history: &history, id: id, leftMs: leftMs, random: &random)
            case .retry:
                history.delays &+= 1
                return delayed(
                    status: status, reason: reason, retryAfter: retryAfter, pace: rule?.pace ?? .keep,
                    history: history, id: id, leftMs: leftMs, random: &random)
            }
        case .unprocessed:
            return free(history: &history, id: id, leftMs: leftMs, random: &random)
        case .unknown(let cause):
            history.unknowns &+= 1
            // Too late for another attempt, and the first may have arrived: unknown, not expired.
            let mayRepeat = isRepeatable && Int(history.unknowns) <= unknownTries && leftMs > 0
            return mayRepeat ? .resendNow : .finish(.unknown(cause, apnsID: id))
        }
    }

    private func free(
        history: inout PushHistory, id: PushID, leftMs: Int64, random: inout SmallRandom
    ) -> NextStep {
        history.refusals &+= 1
        if leftMs <= 0 { return .finish(ended(history, id)) }
        if history.refusals <= Self.refusalsAtOnce { return .resendNow }
        let nanos = refusalBackoff.delayNanos(
            failures: Int(history.refusals - Self.refusalsAtOnce), random: &random)
        return within(leftMs, nanos) ? .resendAfter(nanos: nanos) : .finish(ended(history, id))
    }

    private func delayed(
        status: Int, reason: APNsReason, retryAfter: UInt32?, pace: AnswerRule.PaceStep, history: PushHistory,
        id: PushID,
        leftMs: Int64, random: inout SmallRandom
    ) -> NextStep {
        var nanos = pause(pace, after: Int(history.delays), random: &random)
        if let retryAfter {
            // The named time is the floor. The jitter on top keeps a fleet from returning in one instant.
            let floor = min(UInt64(retryAfter) &* 1_000_000_000, retryAfterMaxNanos)
            nanos = floor &+ min(nanos, max(floor / 4, 50_000_000))
        }
        if nanos > holdNanos, within(leftMs, nanos) {
            return .finish(.deferred(status: status, reason: reason, retryAfterMs: Int64(nanos / 1_000_000)))
        }
        if pace == .endpoint, retryAfter == nil {
            nanos = endpointBackoff.delayNanos(failures: Int(history.delays), random: &random)
        }
        return within(leftMs, nanos) ? .resendAfter(nanos: nanos) : .finish(ended(history, id))
    }

    /// The longest pause of a device after that many refusals, where APNs names no time.
    func tokenPauseNanos(delays: UInt32, retryAfter: UInt32?) -> UInt64 {
        retryAfter.map { min(UInt64($0) &* 1_000_000_000, retryAfterMaxNanos) }
            ?? tokenBackoff.ceilingNanos(failures: Int(delays))
    }

    private func pause(_ pace: AnswerRule.PaceStep, after delays: Int, random: inout SmallRandom) -> UInt64 {
        guard pace == .token else { return retryBackoff.delayNanos(failures: delays, random: &random) }
        // A device is no fleet: a short draw would only bring the next refusal sooner.
        return tokenBackoff.ceilingNanos(failures: delays) / 2
            &+ tokenBackoff.delayNanos(failures: delays, random: &random) / 2
    }

    /// A push that expires while an earlier attempt's result is unknown did not simply expire.
    private func ended(_ history: PushHistory, _ id: PushID) -> PushOutcome {
        history.unknowns > 0 ? .unknown(.connectionLost, apnsID: id) : .expired
    }

    private func within(_ leftMs: Int64, _ nanos: UInt64) -> Bool {
        leftMs > 0 && UInt64(leftMs) > nanos / 1_000_000
    }
}

// SPDX-License-Identifier: Apache-2.0
import EventLoop
import HTTP2
import Telemetry

/// The path of a push to a connection, to an answer, and to its outcome or next attempt: the layer above `ConnectionPool`.
final class PushAttempts {
    private(set) var breaker: EndpointBreaker
    var budget: RetryBudget
    private let policy: RetryPolicy
    /// Ordinary pushes sent since the last suspect push on the main route.
    private var sinceSuspect = 0
    /// Reasons that need an operator, with the time of the last log line.
    private var alarmedNanos: [APNsReason: UInt64] = [:]
    private var isClosed = false
    private let context: ClientContext
    private let loop: Loop
    private let metrics: APNsMetrics
    private let credential: CredentialInUse
    private let pushes: HeldPushes
    private let pool: ConnectionPool

    init(_ context: ClientContext, credential: CredentialInUse, pushes: HeldPushes, pool: ConnectionPool) {
        self.context = context
        loop = context.loop
        metrics = context.metrics
        self.credential = credential
        self.pushes = pushes
        self.pool = pool
        let limits = context.limits
        policy = RetryPolicy(limits)
        breaker = EndpointBreaker(
            threshold: limits.breakerAnswers,
            backoff: limits.breakerBackoff.capped(atNanos: limits.waitingRetryMaxNanos))
        budget = RetryBudget(inFlightMax: limits.inFlightMax, nowNanos: loop.nowNanos)
    }

    // MARK: Requests

    /// Submits waiting pushes, as far as credential, endpoint, connections and limiter allow.
    func submitWaiting() {
        let now = loop.nowNanos
        let wallMs = loop.unixMs
        submitWaiting(.main, now, wallMs)
        if pushes.table.suspectCount > 0 { submitWaiting(.suspect, now, wallMs) }
    }

    private func submitWaiting(_ route: PushTable.Route, _ now: UInt64, _ wallMs: Int64) {
        var allowance = min(credential.gate.allowance(nowNanos: now), breaker.allowance(nowNanos: now))
        var favourite: APNsConnection?
        var favouriteLeft = 0
        while allowance > 0, let slot = nextWaiting(route) {
            if !isFit(slot, now, wallMs) { continue }
            guard pushes.table.inFlightCount < pushes.limiter.limit else { return pushes.limiter.reached() }
            let bytes = pushes.table.payloadBytes(slot)
            let avoid = pushes.table[slot].avoid
            if favouriteLeft == 0 || favourite?.canCarry(bytes) != true || favourite?.serial == avoid {
                favourite = pool.choose(route, bytes: bytes, avoid: avoid)
                favouriteLeft = 16
            }
            guard let connection = favourite else { return }
            if now >= pushes.table[slot].checkDueNanos {
                guard mayCheck(route, bytes: bytes, allowance: allowance) else { return }
                pushes.check(slot)
                continue
            }
            favouriteLeft -= 1
            if submit(slot, on: connection, now, wallMs) {
                allowance -= 1
                if route == .main { sinceSuspect = pushes.table[slot].route == .suspect ? 0 : sinceSuspect &+ 1 }
            } else {
                favourite = nil
            }
        }
    }

    /// The next push. On the main route a suspect push goes now and then, if too many wait for their own connections.
    ///
    /// A route of dead tokens gets only one stream at a time, and the caller's table is bounded: suspects that are
    /// stuck there would finally block all pushes. Among enough ordinary pushes they do no harm, because the next
    /// acceptance reopens the streams that a rejection closed.
    private func nextWaiting(_ route: PushTable.Route) -> PushTable.Slot? {
        let isTheirTurn =
            route == .main && pushes.table.suspectCount > context.limits.suspectsWaitingMax
            && sinceSuspect >= context.limits.ordinaryPerSuspect
            && pushes.table.checkingCount(.suspect) == 0
        return pushes.table.nextWaiting(isTheirTurn ? .suspect : route)
    }

    /// - Returns: whether the push may go now. If not, it ends or waits elsewhere.
    private func isFit(_ slot: PushTable.Slot, _ now: UInt64, _ wallMs: Int64) -> Bool {
        if pushes.hasEnded(slot, now, wallMs: wallMs) { return false }
        if pushes.table[slot].needsBudget {
            guard budget.take(pushes.table.lane(slot), nowNanos: now) else {
                metrics.retriesDenied.add()
                pushes.table.delay(
                    slot, dueNanos: now &+ context.random.next(in: 500_000_000...1_500_000_000))
                return false
            }
            pushes.table[slot].needsBudget = false
        }
        return pushes.mayTry(slot, now)
    }

    /// - Returns: whether another push may be set aside for its check. Only as many as could be sent now: during an
    ///   outage the whole queue would otherwise be checked again and again.
    private func mayCheck(_ route: PushTable.Route, bytes: Int, allowance: Int) -> Bool {
        let checking = pushes.table.checkingCount
        guard checking < allowance, pushes.table.inFlightCount + checking < pushes.limiter.limit else { return false }
        return (route == .suspect ? pushes.table.checkingCount(.suspect) : checking) < pool.room(route, bytes: bytes)
    }

    private func submit(_ slot: PushTable.Slot, on connection: APNsConnection, _ now: UInt64, _ wallMs: Int64) -> Bool {
        let tokens = connection.tokens
        let submission = pushes.table.withPush(slot) {
            connection.submit($0, slot: slot, tokens: tokens, nowNanos: now, wallMs: wallMs)
        }
        switch submission {
        case .sent(let stream):
            pushes.table.submitted(slot, stream: stream, connection: connection.serial, nowNanos: now)
            pushes.table[slot].tokenVersion = Int32(truncatingIfNeeded: connection.token?.token.version ?? 0)
            if credential.gate.isPaused || breaker.isOpen {
                credential.submitted()
                breaker.submitted()
                pushes.table[slot].isProbe = true
            }
            connection.flush()
            return true
        case .noMoreRequests:
            pool.retire(connection, .goaway)
        case .unfit:
            pushes.finishUnsent(slot, .notSent)
        }
        return false
    }

    // MARK: Answers

    /// - Returns: whether a stream's event concerns the push that now has its slot. A late event does not concern the
    ///   next push.
    private func isCurrent(_ slot: PushTable.Slot, _ stream: HTTP2Stream, _ connection: APNsConnection) -> Bool {
        pushes.table.isInFlight(slot) && pushes.table[slot].stream == stream.id
            && pushes.table[slot].connection == connection.serial
    }

    func answerBegan(_ stream: HTTP2Stream, status: Int, retryAfterSeconds: UInt32?, on connection: APNsConnection) {
        let slot = PushTable.Slot(truncatingIfNeeded: stream.tag)
        guard isCurrent(slot, stream, connection) else { return }
        pushes.table[slot].status = Int32(truncatingIfNeeded: status)
        pushes.table[slot].retryAfterSeconds = retryAfterSeconds
    }

    func answerBody(_ stream: HTTP2Stream, _ bytes: UnsafeRawBufferPointer, on connection: APNsConnection) {
        let slot = PushTable.Slot(truncatingIfNeeded: stream.tag)
        guard isCurrent(slot, stream, connection), pushes.table[slot].status != 200, !bytes.isEmpty else { return }
        pushes.keepBody(slot, bytes)
    }

    /// A stream has ended: applies the consequences for connection, credential and push.
    func streamEnded(_ stream: HTTP2Stream, _ end: StreamEnd, on connection: APNsConnection) {
        let slot = PushTable.Slot(truncatingIfNeeded: stream.tag)
        guard isCurrent(slot, stream, connection) else { return }
        let status = pushes.table[slot].status
        // 410 also comes after the check of the provider token.
        _ = connection.machine.ended(isProof: status == 200 || status == 410)
        if status == 200 { return accepted(slot, on: connection) }
        let entry = pushes.table[slot]
        settle(slot, entry, attemptEnd(slot, entry, end), on: connection)
    }

    /// The usual end, on the shortest path.
    private func accepted(_ slot: PushTable.Slot, on connection: APNsConnection) {
        let now = loop.nowNanos
        let trip = now &- pushes.table[slot].submittedNanos
        metrics.accepted.add()
        metrics.latencyAccepted.observe(trip)
        connection.health.answered(tripNanos: trip, nowNanos: now)
        pushes.limiter.accepted(tripNanos: trip, nowNanos: now)
        budget.succeeded(pushes.table.lane(slot))
        if !connection.isProven { pool.proved(connection) }
        if credential.gate.isPaused { credential.proven() }
        if breaker.succeeded() { breakerClosed() }
        if pushes.table[slot].route == .suspect { pushes.noteConfirmed(slot) }
        pushes.finish(slot, .accepted(apnsID: pushes.table.id(slot)))
    }

    private func attemptEnd(_ slot: PushTable.Slot, _ entry: PushTable.Entry, _ end: StreamEnd) -> AttemptEnd {
        if entry.status != 0 {
            // The answer is valid whatever code closed the stream.
            let body = entry.status == 200 ? nil : pushes.takeBody(slot)
            return .answer(
                status: Int(entry.status), reason: body?.reason ?? .absent, time: body?.time ?? .absent,
                retryAfterSeconds: entry.retryAfterSeconds)
        }
        return switch end {
        case .unprocessed(.refused): .unprocessed(.refused)
        case .unprocessed(.aboveGoAway): .unprocessed(.aboveGoaway)
        case .unprocessed(.notSent): .unprocessed(.notSent)
        case .lost: .unknown(.connectionLost)
        case .closed(.noError): .unknown(.badAnswer)
        case .closed: .unknown(entry.isTimedOut ? .timeout : .reset)
        }
    }

    private func settle(
        _ slot: PushTable.Slot, _ entry: PushTable.Entry, _ attempt: AttemptEnd, on connection: APNsConnection
    ) {
        let now = loop.nowNanos
        count(attempt, entry, on: connection, nowNanos: now)
        let rule = attempt.rule
        let isProven = rule.map { judge($0, attempt, entry, on: connection) } ?? false
        if let rule, rule.token != .keep { pushes.noteRefused(pushes.table.token(slot)) }
        var history = entry.history
        let expiresAtMs = pushes.table.expiresAtMs(slot)
        let leftMs = expiresAtMs == .max ? .max : expiresAtMs &- loop.unixMs
        let step = policy.next(
            after: attempt, rule: rule, history: &history, id: pushes.table.id(slot),
            isRepeatable: pushes.table.isRepeatable(slot), leftMs: leftMs, random: &context.random)
        pushes.table[slot].history = history
        pushes.table[slot].avoid = connection.serial
        if isClosed { return finishAtClose(slot, attempt, step) }
        switch step {
        case .finish(let outcome):
            if rule?.pace == .token, case .answer(_, let reason, _, let retryAfter) = attempt {
                pushes.endRefused(
                    slot, outcome, reason, policy.tokenPauseNanos(delays: history.delays, retryAfter: retryAfter), now)
            }
            pushes.finish(slot, outcome)
        case .resendNow:
            countResend(attempt)
            if attempt == .unknown(.timeout) { pushes.table[slot].needsBudget = true }
            resendElsewhere(slot, nowNanos: now)
        case .resendAfter(let nanos):
            countResend(attempt)
            if case .answer = attempt { pushes.table[slot].needsBudget = true }
            if case .answer(_, let reason, _, _) = attempt, rule?.pace == .token {
                pushes.holdRefused(slot, reason, dueNanos: now &+ nanos, now)
            } else {
                pushes.table.delay(slot, dueNanos: now &+ nanos)
            }
        case .awaitCredential:
            metrics.retry("credential")
            pushes.table.requeue(slot)
        }
        if !isProven, entry.isProbe {
            credential.probeLost(nowNanos: now)
            breaker.probeLost(nowNanos: now, random: &context.random)
        }
    }

    /// Sends it before all waiting pushes if another connection can take it; else a moment later.
    ///
    /// The refusing connection would refuse it again, and a push that waits at the head for another connection would
    /// block all behind it. The pool opens another connection within its bounds. If there is none yet, the same
    /// connection gets the push again.
    private func resendElsewhere(_ slot: PushTable.Slot, nowNanos: UInt64) {
        if pool.mayResend(pushes.table[slot].route, avoid: pushes.table[slot].avoid) {
            return pushes.table.requeue(slot)
        }
        pushes.table.delay(slot, dueNanos: nowNanos &+ context.random.next(in: 20_000_000...100_000_000))
    }

    // MARK: Consequences of answers

    /// Applies the table's rules for connection, credential, pace and operator to an answer other than acceptance.
    ///
    /// - Returns: true if the answer proves the credential: APNs judged the push itself.
    private func judge(
        _ rule: AnswerRule, _ attempt: AttemptEnd, _ entry: PushTable.Entry, on connection: APNsConnection
    ) -> Bool {
        guard case .answer(let status, let reason, _, let retryAfter) = attempt else { return false }
        if rule.credential != .keep || rule.connection == .drain { pool.noteFarewell(status: status, reason) }
        switch rule.credential {
        case .keep: break
        case .pause: pool.refuse(reason, connection.identity)
        case .pauseIfFresh: if !connection.isProven { pool.refuse(reason, connection.identity) }
        case .holdSigning: connection.tokens?.holdSigning(nowMs: loop.unixMs)
        case .resign: renewToken(version: Int(entry.tokenVersion), reason, on: connection)
        }
        if rule.connection == .drain { pool.retire(connection, .credential) }
        if rule.needsOperator { alarm(rule, reason) }
        if rule.pace == .endpoint {
            pushes.limiter.cut(.slow, nowNanos: loop.nowNanos)
            let wait = min(UInt64(retryAfter ?? 0) &* 1_000_000_000, context.limits.retryAfterMaxNanos)
            if breaker.failed(retryAfterNanos: wait, nowNanos: loop.nowNanos, random: &context.random) {
                breakerOpened(reason)
            }
        } else if status < 500, breaker.succeeded() {
            breakerClosed()
        }
        guard status != 403 && status != 429 && status < 500 else { return false }
        credential.proven()
        return true
    }

    /// 403 ExpiredProviderToken: signs one new token, and replaces the connections that used the old one.
    private func renewToken(version: Int, _ reason: APNsReason, on connection: APNsConnection) {
        // A sleeping machine stops the monotonic clock. By the loop's time the next token would be as old as this one.
        if loop.wallMs &- loop.unixMs > TokenPlan.aheadMaxMs { loop.takeWallClock() }
        guard let tokens = connection.tokens, tokens.renewAfterExpiry(version: version, nowMs: loop.unixMs) else {
            return pool.refuse(reason, connection.identity)
        }
        pool.retireExpired(tokens, version: version)
    }

    private func breakerOpened(_ reason: APNsReason) {
        metrics.breakerOpenings[1].add()
        context.log.error(
            "APNs is unavailable: pushes wait, single probes are sent",
            ["host": .string(context.endpoint.host), "reason": .string(reason.text)])
    }

    private func breakerClosed() {
        context.log.info("APNs is available again", ["host": .string(context.endpoint.host)])
    }

    /// Notifies the operator of an answer that no retry can change, at most once a minute per reason.
    private func alarm(_ rule: AnswerRule, _ reason: APNsReason) {
        metrics.alarm(reason)
        let now = loop.nowNanos
        if let last = alarmedNanos[reason], now &- last < 60_000_000_000 { return }
        // Known reasons are few; unknown ones are not kept.
        if reason.isKnown { alarmedNanos[reason] = now }
        context.log.error(
            "APNs rejects pushes because of configuration or program, not the device",
            ["status": .int(rule.status), "reason": .string(reason.text)])
    }

    /// Counts an attempt that was not accepted.
    private func count(
        _ attempt: AttemptEnd, _ entry: PushTable.Entry, on connection: APNsConnection, nowNanos: UInt64
    ) {
        switch attempt {
        case .answer(let status, _, let time, _):
            if status == 410, time == .unreadable { metrics.unreadableTimes.add() }
            let trip = nowNanos &- entry.submittedNanos
            metrics.rejected.add()
            metrics.latencyOther.observe(trip)
            connection.health.answered(tripNanos: trip, nowNanos: nowNanos)
        case .unprocessed: metrics.refused.add()
        case .unknown: metrics.ambiguous.add()
        }
    }

    private func countResend(_ attempt: AttemptEnd) {
        switch attempt {
        case .answer(_, let reason, _, _): metrics.retry(reason.label)
        case .unprocessed(let cause): metrics.retry(cause.rawValue)
        case .unknown(let cause):
            metrics.ambiguousResends.add()
            metrics.retry(cause.rawValue)
        }
    }

    // MARK: Time

    /// Abandons streams without an answer in time. Only these streams are reset; the connection continues.
    func timeOutAnswers() {
        let now = loop.nowNanos
        while let slot = pushes.table.oldestInFlight,
            now &- pushes.table[slot].submittedNanos >= context.limits.answerNanos
        {
            let serial = pushes.table[slot].connection
            guard let connection = pool.connections.first(where: { $0.serial == serial }) else {
                // The push's connection has disappeared without an event. This cannot happen, and must not block if it does.
                pushes.finish(slot, pushes.lost(slot))
                continue
            }
            pushes.table[slot].isTimedOut = true
            pushes.limiter.cut(.slow, nowNanos: now)
            let stream = HTTP2Stream(id: pushes.table[slot].stream, tag: UInt64(UInt32(bitPattern: slot)))
            connection.reset(stream.id)
            // Already reported, unless the session has lost the stream.
            streamEnded(stream, .closed(.cancel), on: connection)
        }
    }

    /// Closes all connections and ends all pushes.
    ///
    /// - Parameter isOutermost: no call of a link or session is on the stack, so that all streams are reported here.
    func close(isOutermost: Bool) {
        isClosed = true
        pool.close()
        for slot in pushes.table.all() where pushes.table[slot].place != .inFlight {
            pushes.finishUnsent(slot, .closed)
        }
        guard isOutermost else { return }
        for slot in pushes.table.all() { pushes.finish(slot, pushes.lost(slot)) }
    }

    private func finishAtClose(_ slot: PushTable.Slot, _ attempt: AttemptEnd, _ step: NextStep) {
        if case .finish(let outcome) = step { return pushes.finish(slot, outcome) }
        if case .unknown(let cause) = attempt { return pushes.finish(slot, pushes.lost(slot, cause)) }
        pushes.finishUnsent(slot, .closed)
    }

    /// Updates the gauges; on ticks, never per push.
    func showState() {
        metrics.breakerStates[1].set(breaker.state == .closed ? 0 : breaker.state == .probing ? 1 : 2)
        for (lane, gauge) in zip(PushLane.allCases, metrics.retryBudget) { gauge.set(budget.left(lane)) }
    }
}

// SPDX-License-Identifier: Apache-2.0
import EventLoop
import HTTP2
import Telemetry

// The path of a push: to a connection, to an answer, to its outcome.
extension APNsClient {
    /// Submits waiting pushes, as far as credential, endpoint, connections and limiter allow.
    func submitWaiting() {
        let now = loop.nowNanos
        let wallMs = loop.unixMs
        submitWaiting(.main, now, wallMs)
        if table.suspectCount > 0 { submitWaiting(.suspect, now, wallMs) }
    }

    private func submitWaiting(_ route: PushTable.Route, _ now: UInt64, _ wallMs: Int64) {
        var allowance = min(gate.allowance(nowNanos: now), breaker.allowance(nowNanos: now))
        var favourite: APNsConnection?
        var favouriteLeft = 0
        while allowance > 0, let slot = nextWaiting(route) {
            if !isFit(slot, now, wallMs) { continue }
            guard table.inFlightCount < limiter.limit else { return limiter.reached() }
            let bytes = table.payloadBytes(slot)
            let avoid = table[slot].avoid
            if favouriteLeft == 0 || favourite?.canCarry(bytes) != true || favourite?.serial == avoid {
                favourite = choose(route, bytes: bytes, avoid: avoid)
                favouriteLeft = 16
            }
            guard let connection = favourite else { return }
            if now >= table[slot].checkDueNanos {
                guard mayCheck(route, bytes: bytes, allowance: allowance) else { return }
                check(slot)
                continue
            }
            favouriteLeft -= 1
            if submit(slot, on: connection, now, wallMs) {
                allowance -= 1
                if route == .main { sinceSuspect = table[slot].route == .suspect ? 0 : sinceSuspect &+ 1 }
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
            route == .main && table.suspectCount > limits.suspectsWaitingMax
            && sinceSuspect >= limits.ordinaryPerSuspect
            && table.checkingCount(.suspect) == 0
        return table.nextWaiting(isTheirTurn ? .suspect : route)
    }

    /// - Returns: whether the push may go now. If not, it ends or waits elsewhere.
    private func isFit(_ slot: PushTable.Slot, _ now: UInt64, _ wallMs: Int64) -> Bool {
        if table[slot].ending != .none, hasEnded(slot, now) { return false }
        if table.expiresAtMs(slot) <= wallMs {
            finish(slot, expiredOutcome(slot))
            return false
        }
        if table[slot].needsBudget {
            guard budget.take(table.lane(slot), nowNanos: now) else {
                metrics.retriesDenied.add()
                table.delay(slot, dueNanos: now &+ random.next(in: 500_000_000...1_500_000_000))
                return false
            }
            table[slot].needsBudget = false
        }
        // Its kind is known when it has its content again.
        return backoff.isEmpty || table.lacksContent(slot) || mayTry(slot, now)
    }

    /// - Returns: false if it goes on: its device may be pushed again.
    private func hasEnded(_ slot: PushTable.Slot, _ now: UInt64) -> Bool {
        guard table[slot].ending == .deferred else {
            finish(slot, .superseded)
            return true
        }
        table[slot].ending = .none
        guard let pause = backoff.pause(table.token(slot), nowNanos: now) else { return false }
        finish(slot, .deferred(status: 429, reason: pause.reason, retryAfterMs: Int64(pause.nanos / 1_000_000)))
        return true
    }

    private func submit(_ slot: PushTable.Slot, on connection: APNsConnection, _ now: UInt64, _ wallMs: Int64) -> Bool {
        let tokens = connection.tokens
        let submission = table.withPush(slot) {
            connection.submit($0, slot: slot, tokens: tokens, nowNanos: now, wallMs: wallMs)
        }
        switch submission {
        case .sent(let stream):
            table.submitted(slot, stream: stream, connection: connection.serial, nowNanos: now)
            table[slot].tokenVersion = Int32(truncatingIfNeeded: connection.token?.token.version ?? 0)
            if gate.isPaused || breaker.isOpen {
                gate.submitted()
                breaker.submitted()
                table[slot].isProbe = true
            }
            connection.flush()
            return true
        case .noMoreRequests:
            retire(connection, .goaway)
        case .unfit:
            finishUnsent(slot, .notSent)
        }
        return false
    }

    /// The least loaded connection of the route that can carry the push. Avoids the connection that refused it and
    /// connections with a pending replacement if there is another (so the next push proves the successor). Never a
    /// frozen connection.
    private func choose(_ route: PushTable.Route, bytes: Int, avoid: Int32) -> APNsConnection? {
        var best: APNsConnection?
        var second: APNsConnection?
        for connection in connections where connection.route == route && connection.canCarry(bytes) {
            if connection.isFrozen { continue }
            if connection.serial == avoid || connection.isReplacing {
                second = connection
            } else if best == nil || connection.machine.inFlight < best?.machine.inFlight ?? 0 {
                best = connection
            }
        }
        return best ?? second
    }

    /// Suspect pushes use separate connections if the limits provide some.
    func route(of push: borrowing Push) -> PushTable.Route {
        guard limits.suspectConnectionsMax > 0 else { return .main }
        if !refused.isEmpty, refused.contains(push.token, nowSeconds: nowSeconds) { return .suspect }
        guard push.isSuspect else { return .main }
        return confirmed.contains(push.token, nowSeconds: nowSeconds) ? .main : .suspect
    }

    var nowSeconds: UInt32 { UInt32(truncatingIfNeeded: loop.nowNanos / 1_000_000_000) }

    // MARK: Tokens that back off

    /// Accepts a push for a token that APNs asked to leave alone for a time.
    func hold(_ push: consuming Push) -> Admission {
        let (token, kind) = (push.token, push.headers.backoffKind)
        let route = route(of: push)
        guard let slot = table.admit(push, route: route, checkDueNanos: checkDueNanos) else {
            noteFull(route)
            return .full
        }
        let now = loop.nowNanos
        if let wait = backoff.wait(token, kind, slot, order: table[slot].order) {
            table[slot].history.delays = wait.refusals
            apply(wait, slot, now)
        }
        armTimers()
        return .held
    }

    /// - Returns: whether the push's device may be pushed now. If not, the push waits.
    private func mayTry(_ slot: PushTable.Slot, _ now: UInt64) -> Bool {
        let wait = backoff.asks(
            table.token(slot), table.kind(slot), slot, order: table[slot].order, nowNanos: now)
        guard let wait else { return true }
        apply(wait, slot, now)
        if wait.superseded != slot { delegate?.apns(self, didHold: table.tag(slot)) }
        return false
    }

    /// 429 TooManyRequests to a push that ends. After a pause that is longer than pushes wait here, nothing of the device does.
    private func endRefused(
        _ slot: PushTable.Slot, _ outcome: PushOutcome, _ reason: APNsReason, _ pauseNanos: UInt64, _ now: UInt64
    ) {
        guard case .deferred(_, _, let waitMs) = outcome else {
            return backoff.note(table.token(slot), reason, dueNanos: now &+ pauseNanos)
        }
        let dueNanos = now &+ UInt64(max(0, waitMs)) &* 1_000_000
        for other in backoff.deferred(table.token(slot), slot, reason, dueNanos: dueNanos) {
            endInNextTurn(other, as: .deferred, now)
        }
    }

    /// 429 TooManyRequests: only this token waits.
    private func holdRefused(_ slot: PushTable.Slot, _ reason: APNsReason, dueNanos: UInt64, _ now: UInt64) {
        let wait = backoff.refused(
            table.token(slot), table.kind(slot), slot, reason, order: table[slot].order, dueNanos: dueNanos)
        apply(wait, slot, now)
        if wait.superseded != slot { delegate?.apns(self, didHold: table.tag(slot)) }
    }

    private func apply(_ wait: TokenBackoff.Wait, _ slot: PushTable.Slot, _ now: UInt64) {
        table.delay(slot, dueNanos: wait.dueNanos)
        if let superseded = wait.superseded { endInNextTurn(superseded, as: .superseded, now) }
        if let next = wait.next { start(next, now) }
        guard wait.superseded != slot, let pause = backoff.pause(table.token(slot), nowNanos: now),
            pause.nanos > limits.holdNanos
        else { return }
        endInNextTurn(slot, as: .deferred, now)
    }

    private func start(_ turn: TokenBackoff.Turn, _ now: UInt64) {
        guard table.isDelayed(turn.slot) else { return }
        if turn.dueNanos <= now {
            table.requeueLast(turn.slot)
        } else {
            table.delay(turn.slot, dueNanos: turn.dueNanos)
        }
    }

    /// The owner may be inside the call that sends another push.
    private func endInNextTurn(_ slot: PushTable.Slot, as ending: PushTable.Ending, _ now: UInt64) {
        table[slot].ending = ending
        table[slot].needsBudget = false
        table.delay(slot, dueNanos: now)
    }

    /// Starts the push that waited for the end of another one of the same token.
    func release(_ token: DeviceToken, _ slot: PushTable.Slot, isOver: Bool) {
        if let turn = backoff.ended(token, slot, isOver: isOver) { start(turn, loop.nowNanos) }
    }

    // MARK: Answers

    /// - Returns: whether a stream's event concerns the push that now has its slot. A late event does not concern the
    ///   next push.
    private func isCurrent(_ slot: PushTable.Slot, _ stream: HTTP2Stream, _ connection: APNsConnection) -> Bool {
        table.isInFlight(slot) && table[slot].stream == stream.id && table[slot].connection == connection.serial
    }

    func answerBegan(_ stream: HTTP2Stream, status: Int, retryAfterSeconds: UInt32?, on connection: APNsConnection) {
        let slot = PushTable.Slot(truncatingIfNeeded: stream.tag)
        guard isCurrent(slot, stream, connection) else { return }
        table[slot].status = Int32(truncatingIfNeeded: status)
        table[slot].retryAfterSeconds = retryAfterSeconds
    }

    /// Keeps the first bytes of an error's body and drops the rest.
    func answerBody(_ stream: HTTP2Stream, _ bytes: UnsafeRawBufferPointer, on connection: APNsConnection) {
        let slot = PushTable.Slot(truncatingIfNeeded: stream.tag)
        guard isCurrent(slot, stream, connection), table[slot].status != 200, !bytes.isEmpty else { return }
        let room = AnswerBody.bytesMax - (bodies[slot]?.count ?? 0)
        if room > 0 { bodies[slot, default: []].append(contentsOf: bytes.prefix(room)) }
    }

    /// A stream has ended: applies the consequences for connection, credential and push.
    func streamEnded(_ stream: HTTP2Stream, _ end: StreamEnd, on connection: APNsConnection) {
        let slot = PushTable.Slot(truncatingIfNeeded: stream.tag)
        guard isCurrent(slot, stream, connection) else { return }
        let status = table[slot].status
        // 410 also comes after the check of the provider token.
        _ = connection.machine.ended(isProof: status == 200 || status == 410)
        if status == 200 { return accepted(slot, on: connection) }
        let entry = table[slot]
        settle(slot, entry, attemptEnd(slot, entry, end), on: connection)
    }

    /// The usual end, on the shortest path.
    private func accepted(_ slot: PushTable.Slot, on connection: APNsConnection) {
        let now = loop.nowNanos
        let trip = now &- table[slot].submittedNanos
        metrics.accepted.add()
        metrics.latencyAccepted.observe(trip)
        connection.health.answered(tripNanos: trip, nowNanos: now)
        limiter.accepted(tripNanos: trip, nowNanos: now)
        budget.succeeded(table.lane(slot))
        if !connection.isProven { connectionProved(connection) }
        if gate.isPaused { credentialProven() }
        if breaker.succeeded() { breakerClosed() }
        if table[slot].route == .suspect {
            // Others were not known as refused on arrival. Looking each of them up would cost a cache miss per push.
            if !refused.isEmpty { refused.remove(table.token(slot)) }
            confirmed.insert(table.token(slot), nowSeconds: nowSeconds)
        }
        finish(slot, .accepted(apnsID: table.id(slot)))
    }

    private func attemptEnd(_ slot: PushTable.Slot, _ entry: PushTable.Entry, _ end: StreamEnd) -> AttemptEnd {
        if entry.status != 0 {
            // The answer is valid whatever code closed the stream.
            let body = entry.status == 200 ? nil : bodies.removeValue(forKey: slot).map { AnswerBody($0) }
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
        if let rule, rule.token != .keep { refused.insert(table.token(slot), nowSeconds: nowSeconds) }
        var history = entry.history
        let expiresAtMs = table.expiresAtMs(slot)
        let leftMs = expiresAtMs == .max ? .max : expiresAtMs &- loop.unixMs
        let step = policy.next(
            after: attempt, rule: rule, history: &history, id: table.id(slot), isRepeatable: table.isRepeatable(slot),
            leftMs: leftMs, random: &random)
        table[slot].history = history
        table[slot].avoid = connection.serial
        if isClosed { return finishAtClose(slot, attempt, step) }
        switch step {
        case .finish(let outcome):
            if rule?.pace == .token, case .answer(_, let reason, _, let retryAfter) = attempt {
                endRefused(
                    slot, outcome, reason, policy.tokenPauseNanos(delays: history.delays, retryAfter: retryAfter), now)
            }
            finish(slot, outcome)
        case .resendNow:
            countResend(attempt)
            if attempt == .unknown(.timeout) { table[slot].needsBudget = true }
            resendElsewhere(slot, nowNanos: now)
        case .resendAfter(let nanos):
            countResend(attempt)
            if case .answer = attempt { table[slot].needsBudget = true }
            if case .answer(_, let reason, _, _) = attempt, rule?.pace == .token {
                holdRefused(slot, reason, dueNanos: now &+ nanos, now)
            } else {
                table.delay(slot, dueNanos: now &+ nanos)
            }
        case .awaitCredential:
            metrics.retry("credential")
            table.requeue(slot)
        }
        if !isProven, entry.isProbe {
            gate.probeLost(nowNanos: now)
            breaker.probeLost(nowNanos: now, random: &random)
        }
    }

    /// Sends it before all waiting pushes if another connection can take it; else a moment later.
    ///
    /// The refusing connection would refuse it again, and a push that waits at the head for another connection would
    /// block all behind it. The pool opens another connection within its bounds. If there is none yet, the same
    /// connection gets the push again.
    private func resendElsewhere(_ slot: PushTable.Slot, nowNanos: UInt64) {
        let avoid = table[slot].avoid
        let route = table[slot].route
        let hasOther = connections.contains { $0.serial != avoid && $0.route == route && !$0.machine.isDraining }
        let isUsable = connections.contains { $0.serial == avoid && $0.machine.isReady }
        if hasOther || !isUsable { return table.requeue(slot) }
        wantsAnother = true
        table.delay(slot, dueNanos: nowNanos &+ random.next(in: 20_000_000...100_000_000))
    }

    // MARK: Ends

    /// Removes the push from the table and reports its outcome. The only place that does this.
    func finish(_ slot: PushTable.Slot, _ outcome: PushOutcome) {
        guard table.holds(slot) else { return }
        let attempts = Int(table[slot].history.attempts)
        let tag = remove(slot, isOver: outcome.isJudgement)
        endedCount &+= 1
        delegate?.apns(self, didFinish: tag, outcome: outcome, attempts: attempts)
        if wasFull || wereSuspectsFull { noteRoom() }
    }

    /// Removes a push from all structures and returns its tag. `isOver`: APNs' answer shows that its device may be
    /// pushed.
    func remove(_ slot: PushTable.Slot, isOver: Bool = false) -> UInt64 {
        if !bodies.isEmpty { bodies[slot] = nil }
        if !backoff.isEmpty { release(table.token(slot), slot, isOver: isOver) }
        return table.remove(slot)
    }

    /// Ends a push that is not in flight. If an earlier attempt may have arrived, it does not end as unprocessed.
    func finishUnsent(_ slot: PushTable.Slot, _ cause: UnprocessedCause) {
        finish(slot, table[slot].history.unknowns > 0 ? lost(slot) : .unprocessed(cause))
    }

    /// It was sent, and its result is unknown.
    func lost(_ slot: PushTable.Slot, _ cause: UnknownCause = .connectionLost) -> PushOutcome {
        .unknown(cause, apnsID: table.id(slot))
    }

    private func finishAtClose(_ slot: PushTable.Slot, _ attempt: AttemptEnd, _ step: NextStep) {
        if case .finish(let outcome) = step { return finish(slot, outcome) }
        if case .unknown(let cause) = attempt { return finish(slot, lost(slot, cause)) }
        finishUnsent(slot, .closed)
    }

    func expiredOutcome(_ slot: PushTable.Slot) -> PushOutcome {
        table[slot].history.unknowns > 0 ? lost(slot) : .expired
    }
}

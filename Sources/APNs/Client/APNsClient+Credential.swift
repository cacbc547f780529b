// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Telemetry

// Consequences of answers for the credential, and counters of answers.
extension APNsClient {
    /// Applies the table's rules for connection, credential, pace and operator to an answer other than acceptance.
    ///
    /// - Returns: true if the answer proves the credential: APNs judged the push itself.
    func judge(
        _ rule: AnswerRule, _ attempt: AttemptEnd, _ entry: PushTable.Entry, on connection: APNsConnection
    ) -> Bool {
        guard case .answer(let status, let reason, _, let retryAfter) = attempt else { return false }
        if rule.credential != .keep || rule.connection == .drain {
            farewell = .answer(status: status, reason: reason)
        }
        switch rule.credential {
        case .keep: break
        case .pause: refuse(reason, connection.identity)
        case .pauseIfFresh: if !connection.isProven { refuse(reason, connection.identity) }
        case .holdSigning: connection.tokens?.holdSigning(nowMs: loop.unixMs)
        case .resign: renewToken(version: Int(entry.tokenVersion), reason, on: connection)
        }
        if rule.connection == .drain { retire(connection, .credential) }
        if rule.needsOperator { alarm(rule, reason) }
        if rule.pace == .endpoint {
            limiter.cut(.slow, nowNanos: loop.nowNanos)
            let wait = min(UInt64(retryAfter ?? 0) &* 1_000_000_000, limits.retryAfterMaxNanos)
            if breaker.failed(retryAfterNanos: wait, nowNanos: loop.nowNanos, random: &random) { breakerOpened(reason) }
        } else if status < 500, breaker.succeeded() {
            breakerClosed()
        }
        guard status != 403 && status != 429 && status < 500 else { return false }
        credentialProven()
        return true
    }

    func credentialProven() {
        guard gate.proven() else { return }
        pausedReason = nil
        log.info("APNs accepts the credential again")
        delegate?.apns(self, stateChanged: .credentialResumed)
    }

    private func breakerOpened(_ reason: APNsReason) {
        metrics.breakerOpenings[1].add()
        log.error(
            "APNs is unavailable: pushes wait, single probes are sent",
            ["host": .string(endpoint.host), "reason": .string(reason.text)])
    }

    func breakerClosed() {
        log.info("APNs is available again", ["host": .string(endpoint.host)])
    }

    /// 403 ExpiredProviderToken: signs one new token, and replaces the connections that used the old one.
    private func renewToken(version: Int, _ reason: APNsReason, on connection: APNsConnection) {
        // A machine that slept: its monotonic clock stood still, and by the loop's time the next token would be as old as this one.
        if loop.wallMs &- loop.unixMs > TokenPlan.aheadMaxMs { loop.takeWallClock() }
        guard let tokens = connection.tokens, tokens.renewAfterExpiry(version: version, nowMs: loop.unixMs) else {
            return refuse(reason, connection.identity)
        }
        for other in connections
        where other.tokens === tokens && other.token.map({ $0.token.version <= version }) == true {
            retire(other, .credential)
        }
    }

    /// APNs refused a credential: returns to the previous one if there is one, else stops sending.
    func refuse(_ reason: APNsReason, _ refused: ClientIdentity) {
        // The answer concerns a credential that is no longer in use.
        guard refused === identity else { return }
        guard let previous = previousIdentity else { return pause(reason) }
        previousIdentity = nil
        identity = previous
        refusedReplacement = reason
        for connection in connections {
            if connection.identity === refused {
                retire(connection, .credential)
            } else if connection.replaceCause == .credential {
                connection.replaceCause = nil
            }
        }
        log.error(
            "APNs refuses the new credential; the old one stays in use",
            ["host": .string(endpoint.host), "reason": .string(reason.text)])
    }

    /// Stops sending with this credential until a probe is accepted.
    private func pause(_ reason: APNsReason) {
        guard gate.refused(nowNanos: loop.nowNanos) else { return }
        pausedReason = reason
        metrics.breakerOpenings[0].add()
        log.error(
            "APNs refuses the credential: check key, team, environment and clock; pushes wait",
            ["host": .string(endpoint.host), "reason": .string(reason.text)])
        delegate?.apns(self, stateChanged: .credentialPaused(reason))
    }

    /// Reads the peer's clock from an answer: a provider token signed under a wrong clock is refused without a clear
    /// reason.
    func noteServerDate(_ dateSeconds: Int64) {
        let skew = loop.unixMs / 1000 - dateSeconds
        clockAheadSeconds = skew
        metrics.clockSkew.set(Double(skew))
        guard abs(skew) > 60, !hasLoggedSkew else { return }
        hasLoggedSkew = true
        log.error(
            "our clock differs from APNs': provider tokens will be refused",
            ["host": .string(endpoint.host), "ahead_s": .int(Int(clamping: skew))])
    }

    /// Notifies the operator of an answer that no retry can change, at most once a minute per reason.
    private func alarm(_ rule: AnswerRule, _ reason: APNsReason) {
        metrics.alarm(reason)
        let now = loop.nowNanos
        if let last = alarmedNanos[reason], now &- last < 60_000_000_000 { return }
        // Known reasons are few; unknown ones are not kept.
        if reason.isKnown { alarmedNanos[reason] = now }
        log.error(
            "APNs rejects pushes because of configuration or program, not the device",
            ["status": .int(rule.status), "reason": .string(reason.text)])
    }

    /// Counts an attempt that was not accepted.
    func count(_ attempt: AttemptEnd, _ entry: PushTable.Entry, on connection: APNsConnection, nowNanos: UInt64) {
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

    func countResend(_ attempt: AttemptEnd) {
        switch attempt {
        case .answer(_, let reason, _, _): metrics.retry(reason.label)
        case .unprocessed(let cause): metrics.retry(cause.rawValue)
        case .unknown(let cause):
            metrics.ambiguousResends.add()
            metrics.retry(cause.rawValue)
        }
    }

    /// Updates the gauges; on ticks, never per push.
    func showState() {
        let counts = connectionCounts
        metrics.connectionsReady.set(counts.ready)
        metrics.connectionsOpening.set(counts.opening)
        metrics.connectionsDraining.set(counts.draining)
        metrics.streamsLimit.set(connections.reduce(0) { $0 + $1.machine.limit })
        metrics.pending.set(queued)
        metrics.inFlight.set(inFlight)
        metrics.paused.set(gate.isPaused ? 1 : 0)
        metrics.limit.set(limiter.limit)
        metrics.decreases.add(UInt64(limiter.takeDecreases()))
        metrics.heldTokens.set(backoff.count)
        metrics.breakerStates[0].set(gate.state == .open ? 0 : gate.state == .probing ? 1 : 2)
        metrics.breakerStates[1].set(breaker.state == .closed ? 0 : breaker.state == .probing ? 1 : 2)
        for (lane, gauge) in zip(PushLane.allCases, metrics.retryBudget) { gauge.set(budget.left(lane)) }
        let oldest = table.oldestInFlight.map { loop.nowNanos &- table[$0].submittedNanos } ?? 0
        metrics.oldestStream.set(Double(oldest) * 1e-9)
        if let tokens = identity.tokens {
            metrics.minted.add(UInt64(tokens.takeMinted()))
            metrics.tokenAge.set(tokens.ageSeconds(nowMs: loop.unixMs) ?? 0)
        }
    }
}

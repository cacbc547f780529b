import EventLoop
import Telemetry

// What answers say of the credential, and the numbers that answers move.
extension APNsClient {
    enum GateStep { case proven, unproven }

    /// Applies the rule table's connection and credential steps.
    func judgeCredential(_ attempt: AttemptEnd, _ entry: PushTable.Entry, on connection: APNsConnection) -> GateStep {
        guard case .answer(let status, let reason, _, _) = attempt else { return .unproven }
        let rule = AnswerTable.rule(status: status, reason: reason)
        switch rule.credential {
        case .keep: break
        case .pause: pause(reason)
        case .pauseIfFresh: if !connection.isProven { pause(reason) }
        case .holdSigning: tokens?.holdSigning(nowMs: Loop.wallMs())
        case .resign: renewToken(version: Int(entry.tokenVersion), reason)
        }
        if rule.connection == .drain { retire(connection, .credential) }
        if rule.needsOperator { alarm(rule, reason) }
        if status == 200, !connection.isProven { connectionProved(connection) }
        let isProof = status != 403 && status != 429 && status < 500
        guard isProof else { return .unproven }
        if gate.proven() {
            pausedReason = nil
            log.info("APNs takes the credential again")
            delegate?.apns(self, stateChanged: .credentialResumed)
        }
        return .proven
    }

    /// 403 ExpiredProviderToken: one new token, and none of the connections that showed the old one.
    private func renewToken(version: Int, _ reason: APNsReason) {
        guard let tokens, tokens.renewAfterExpiry(version: version, nowMs: Loop.wallMs()) else { return pause(reason) }
        for other in connections where other.token.map({ $0.token.version <= version }) == true {
            retire(other, .credential)
        }
    }

    /// Stops sending with this credential until a probe is accepted.
    func pause(_ reason: APNsReason) {
        guard gate.refused(nowNanos: loop.nowNanos) else { return }
        pausedReason = reason
        log.error(
            "APNs refuses the credential: check key, team, environment and clock; pushes wait",
            ["host": .string(endpoint.host), "reason": .string(reason.text)])
        delegate?.apns(self, stateChanged: .credentialPaused(reason))
    }

    /// Tells the operator of an answer that no retry mends; once a minute per reason, whatever the rate.
    private func alarm(_ rule: AnswerRule, _ reason: APNsReason) {
        metrics.alarm(reason)
        let now = loop.nowNanos
        if let last = told[reason], now &- last < 60_000_000_000 { return }
        // Known words are few; unknown ones are not kept.
        if reason.isKnown { told[reason] = now }
        log.error(
            "APNs rejects pushes for a reason that is not the device's",
            ["status": .int(rule.status), "reason": .string(reason.text)])
    }

    func count(_ attempt: AttemptEnd, _ entry: PushTable.Entry, nowNanos: UInt64) {
        switch attempt {
        case .answer(200, _, _, _):
            metrics.accepted.add()
            metrics.latencyAccepted.observe(nowNanos &- entry.submittedNanos)
        case .answer:
            metrics.rejected.add()
            metrics.latencyOther.observe(nowNanos &- entry.submittedNanos)
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

    /// Brings the gauges up to date; on ticks, never per push.
    func showState() {
        let counts = connectionCounts
        metrics.connectionsReady.set(counts.ready)
        metrics.connectionsOpening.set(counts.opening)
        metrics.connectionsDraining.set(counts.draining)
        metrics.streamsLimit.set(connections.reduce(0) { $0 + $1.machine.limit })
        metrics.pending.set(queued)
        metrics.inFlight.set(inFlight)
        metrics.paused.set(gate.isPaused ? 1 : 0)
        let oldest = table.oldestInFlight.map { loop.nowNanos &- table[$0].submittedNanos } ?? 0
        metrics.oldestStream.set(Double(oldest) * 1e-9)
        if let tokens {
            metrics.minted.add(UInt64(tokens.takeMinted()))
        }
    }
}

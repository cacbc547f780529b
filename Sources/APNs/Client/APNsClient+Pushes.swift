import EventLoop
import HTTP2

// The way of a push: to a connection, to an answer, to its outcome.
extension APNsClient {
    /// Submits what waits, as far as credential, connections and our own cap allow.
    func submitWaiting() {
        let now = loop.nowNanos
        let wallMs = Loop.wallMs()
        var allowance = gate.allowance(nowNanos: now)
        var favourite: APNsConnection?
        var favouriteLeft = 0
        while allowance > 0, table.inFlightCount < limits.inFlightMax, let slot = table.firstWaiting {
            if table.expiresAtMs(slot) <= wallMs {
                finish(slot, expiredOutcome(slot))
                continue
            }
            let bytes = table.payloadBytes(slot)
            let avoid = table[slot].avoid
            if favouriteLeft == 0 || favourite?.canCarry(bytes) != true || favourite?.serial == avoid {
                favourite = choose(bytes: bytes, avoid: avoid)
                favouriteLeft = 16
            }
            guard let connection = favourite else { return }
            favouriteLeft -= 1
            let tokens = tokens
            let submission = table.withPush(slot) {
                connection.submit($0, slot: slot, tokens: tokens, nowNanos: now, wallMs: wallMs)
            }
            switch submission {
            case .sent(let stream):
                table.submitted(slot, stream: stream, connection: connection.serial, nowNanos: now)
                table[slot].tokenVersion = Int32(truncatingIfNeeded: connection.token?.token.version ?? 0)
                if gate.isPaused {
                    gate.submitted()
                    table[slot].isProbe = true
                }
                allowance -= 1
                connection.flush()
            case .noMoreRequests:
                retire(connection, .goaway)
                favourite = nil
            case .unfit:
                finishUnsent(slot, .notSent)
            }
        }
    }

    /// The least loaded connection that can carry the push; another than `avoid` where there is one.
    private func choose(bytes: Int, avoid: Int32) -> APNsConnection? {
        var best: APNsConnection?
        var second: APNsConnection?
        for connection in connections where connection.canCarry(bytes) {
            if connection.serial == avoid {
                second = connection
            } else if best == nil || connection.machine.inFlight < best?.machine.inFlight ?? 0 {
                best = connection
            }
        }
        return best ?? second
    }

    // MARK: Answers

    /// Whether a stream's event is about the push that holds its slot now; a late one says nothing of the next push.
    private func isCurrent(_ slot: PushTable.Slot, _ stream: HTTP2Stream, _ connection: APNsConnection) -> Bool {
        table.isInFlight(slot) && table[slot].stream == stream.id && table[slot].connection == connection.serial
    }

    func answerBegan(_ stream: HTTP2Stream, status: Int, retryAfterSeconds: UInt32?, on connection: APNsConnection) {
        let slot = PushTable.Slot(truncatingIfNeeded: stream.tag)
        guard isCurrent(slot, stream, connection) else { return }
        table[slot].status = Int32(truncatingIfNeeded: status)
        table[slot].retryAfterSeconds = retryAfterSeconds
    }

    /// Keeps the first bytes of an error's body; the rest is thrown away as it comes.
    func answerBody(_ stream: HTTP2Stream, _ bytes: UnsafeRawBufferPointer, on connection: APNsConnection) {
        let slot = PushTable.Slot(truncatingIfNeeded: stream.tag)
        guard isCurrent(slot, stream, connection), table[slot].status != 200, !bytes.isEmpty else { return }
        let room = AnswerBody.bytesMax - (bodies[slot]?.count ?? 0)
        if room > 0 { bodies[slot, default: []].append(contentsOf: bytes.prefix(room)) }
    }

    /// A stream is over: what that means for connection, credential and push.
    func streamEnded(_ stream: HTTP2Stream, _ end: StreamEnd, on connection: APNsConnection) {
        let slot = PushTable.Slot(truncatingIfNeeded: stream.tag)
        guard isCurrent(slot, stream, connection) else { return }
        let entry = table[slot]
        let attempt = attemptEnd(slot, entry, end)
        // 410 comes from behind the check of the provider token as well.
        _ = connection.machine.ended(isProof: entry.status == 200 || entry.status == 410)
        settle(slot, entry, attempt, on: connection)
    }

    private func attemptEnd(_ slot: PushTable.Slot, _ entry: PushTable.Entry, _ end: StreamEnd) -> AttemptEnd {
        if entry.status != 0 {
            // The answer stands whatever code the stream was closed with.
            let body = entry.status == 200 ? nil : bodies.removeValue(forKey: slot).map { AnswerBody($0) }
            return .answer(
                status: Int(entry.status), reason: body?.reason ?? .absent, timestampMs: body?.timestampMs,
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
        count(attempt, entry, nowNanos: now)
        let gateStep = judgeCredential(attempt, entry, on: connection)
        var history = entry.history
        let expiresAtMs = table.expiresAtMs(slot)
        let leftMs = expiresAtMs == .max ? .max : expiresAtMs &- Loop.wallMs()
        let step = policy.next(
            after: attempt, history: &history, id: table.id(slot), isRepeatable: table.isRepeatable(slot),
            leftMs: leftMs,
            random: &random)
        table[slot].history = history
        table[slot].avoid = connection.serial
        if isClosed { return finishAtClose(slot, attempt, step) }
        switch step {
        case .finish(let outcome): finish(slot, outcome)
        case .resendNow:
            countResend(attempt)
            resendElsewhere(slot, nowNanos: now)
        case .resendAfter(let nanos):
            countResend(attempt)
            table.delay(slot, dueNanos: now &+ nanos)
        case .awaitCredential:
            metrics.retry("credential")
            table.requeue(slot)
        }
        if gateStep == .unproven, entry.isProbe { gate.probeLost(nowNanos: now) }
    }

    /// Ahead of all that wait, where another connection can take it; else a moment later.
    ///
    /// What a connection refused it would refuse again, and a push that waits at the head for another one would hold up
    /// all behind it. The pool opens the other connection meanwhile, within its bounds; where there is none still, the
    /// same connection gets the push again.
    private func resendElsewhere(_ slot: PushTable.Slot, nowNanos: UInt64) {
        let avoid = table[slot].avoid
        let hasOther = connections.contains { $0.serial != avoid && !$0.machine.isDraining }
        let isUsable = connections.contains { $0.serial == avoid && $0.machine.isReady }
        if hasOther || !isUsable { return table.requeue(slot) }
        wantsAnother = true
        table.delay(slot, dueNanos: nowNanos &+ random.next(in: 20_000_000...100_000_000))
    }

    // MARK: Ends

    /// The push leaves the table and its owner hears of it; the only place where that happens.
    func finish(_ slot: PushTable.Slot, _ outcome: PushOutcome) {
        guard table.holds(slot) else { return }
        if !bodies.isEmpty { bodies[slot] = nil }
        let attempts = Int(table[slot].history.attempts)
        let tag = table.remove(slot)
        delegate?.apns(self, didFinish: tag, outcome: outcome, attempts: attempts)
        if wasFull, table.count <= table.capacity / 4 * 3 {
            wasFull = false
            delegate?.apns(self, stateChanged: .hasRoom)
        }
    }

    /// Ends a push that is not in flight; one that may have arrived by an earlier try is not called unprocessed.
    func finishUnsent(_ slot: PushTable.Slot, _ cause: UnprocessedCause) {
        finish(slot, table[slot].history.unknowns > 0 ? lost(slot) : .unprocessed(cause))
    }

    /// Sent, and nobody knows what became of it.
    func lost(_ slot: PushTable.Slot, _ cause: UnknownCause = .connectionLost) -> PushOutcome {
        .unknown(cause, apnsID: table.id(slot))
    }

    private func finishAtClose(_ slot: PushTable.Slot, _ attempt: AttemptEnd, _ step: NextStep) {
        if case .finish(let outcome) = step { return finish(slot, outcome) }
        if case .unknown(let cause) = attempt { return finish(slot, lost(slot, cause)) }
        finishUnsent(slot, .closed)
    }

    private func expiredOutcome(_ slot: PushTable.Slot) -> PushOutcome {
        table[slot].history.unknowns > 0 ? lost(slot) : .expired
    }

    /// Ends waiting and delayed pushes whose time ran out, once a second.
    func sweepExpired() {
        let wallMs = Loop.wallMs()
        guard wallMs - lastSweepMs >= 1000 || wallMs < lastSweepMs else { return }
        lastSweepMs = wallMs
        for slot in table.expired(nowMs: wallMs) { finish(slot, expiredOutcome(slot)) }
    }

    /// Gives up streams that got no answer in time; only they are touched, the connection goes on.
    func timeOutAnswers() {
        let now = loop.nowNanos
        while let slot = table.oldestInFlight, now &- table[slot].submittedNanos >= limits.answerNanos {
            guard let connection = connections.first(where: { $0.serial == table[slot].connection }) else {
                // Its connection is gone without a word on it: cannot happen, and must not hang if it does.
                finish(slot, lost(slot))
                continue
            }
            table[slot].isTimedOut = true
            let stream = HTTP2Stream(id: table[slot].stream, tag: UInt64(UInt32(bitPattern: slot)))
            connection.reset(stream.id)
            // Told already, unless the session had lost sight of the stream.
            streamEnded(stream, .closed(.cancel), on: connection)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Telemetry

/// The pushes in a client's hands, from their admission to their ends: the layer above `ClientContext`.
///
/// Connections and answers are unknown here. The layers above move a push through `table`, and end it by `finish`.
final class HeldPushes {
    var table: PushTable
    /// The bound of pushes in flight.
    var limiter: InFlightLimiter
    private(set) var backoff = TokenBackoff()
    /// Bodies of incomplete error answers, by slot.
    private(set) var bodies: [PushTable.Slot: [UInt8]] = [:]
    /// Pushes that end per second, of late.
    private(set) var perSecond = 0.0
    /// Pushes that ended since `paceNanos`.
    private var endedCount = 0
    private var paceNanos: UInt64 = 0
    /// Tokens that APNs rejected. Pushes to them use separate connections.
    private var refused = TokenMemory(places: 4096)
    /// Suspect tokens that APNs accepted. Pushes to them use the main connections again.
    private var confirmed = TokenMemory(places: 65_536)
    private var wasFull = false
    private var wereSuspectsFull = false
    private var lastSweepMs: Int64 = 0
    private let context: ClientContext
    private let loop: Loop

    init(_ context: ClientContext) {
        self.context = context
        loop = context.loop
        let limits = context.limits
        table = PushTable(capacity: limits.pushesMax, shares: limits.lanes)
        limiter = InFlightLimiter(start: limits.inFlightStart, ceiling: limits.inFlightMax)
    }

    /// Pushes that wait for a stream, a retry, their owner's check or the credential.
    var queuedCount: Int { table.waitingCount + table.delayedCount + table.checkingCount }
    private var nowSeconds: UInt32 { UInt32(truncatingIfNeeded: loop.nowNanos / 1_000_000_000) }

    /// When a push that was sent or checked now must be checked again.
    private var checkDueNanos: UInt64 {
        let (due, overflow) = loop.nowNanos.addingReportingOverflow(context.limits.checkAfterNanos)
        return overflow ? .max : due
    }

    // MARK: Admission

    /// Takes a push, or returns why not. The push of a device that backs off waits.
    ///
    /// - Parameter isBare: its content is not kept, because its owner can make it again.
    func admit(_ push: consuming Push, isBare: Bool) -> Admission {
        let backsOff = !backoff.isEmpty && backoff.holds(push.token)
        let route = route(of: push)
        guard let slot = table.admit(push, route: route, checkDueNanos: checkDueNanos) else {
            noteFull(route)
            return .full
        }
        guard backsOff else {
            if isBare { table.dropContent(slot) }
            return .taken
        }
        if let wait = backoff.wait(table.token(slot), table.kind(slot), slot, order: table[slot].order) {
            table[slot].history.delays = wait.refusals
            apply(wait, slot, loop.nowNanos)
        }
        return .held
    }

    /// Suspect pushes use separate connections if the limits provide some.
    func route(of push: borrowing Push) -> PushTable.Route {
        guard context.limits.suspectConnectionsMax > 0 else { return .main }
        if !refused.isEmpty, refused.contains(push.token, nowSeconds: nowSeconds) { return .suspect }
        guard push.isSuspect else { return .main }
        return confirmed.contains(push.token, nowSeconds: nowSeconds) ? .main : .suspect
    }

    /// APNs judged the token itself: it may be dead.
    func noteRefused(_ token: DeviceToken) { refused.insert(token, nowSeconds: nowSeconds) }

    /// APNs accepted a push of the suspect route.
    func noteConfirmed(_ slot: PushTable.Slot) {
        // Others were not known as refused on arrival. Looking each of them up would cost a cache miss per push.
        if !refused.isEmpty { refused.remove(table.token(slot)) }
        confirmed.insert(table.token(slot), nowSeconds: nowSeconds)
    }

    /// `send` refused a push. `hasRoom` will report the end of this state.
    private func noteFull(_ route: PushTable.Route) {
        if route == .suspect, table.suspectCount >= table.suspectsMax {
            wereSuspectsFull = true
        } else {
            wasFull = true
        }
    }

    /// Reports `hasRoom` when a quarter of the full part is free.
    func noteRoom() {
        guard wasFull || wereSuspectsFull else { return }
        let hasRoom = wasFull && table.count <= table.capacity / 4 * 3
        let haveSuspectsRoom = wereSuspectsFull && table.suspectCount <= table.suspectsMax / 4 * 3
        guard hasRoom || haveSuspectsRoom else { return }
        if hasRoom { wasFull = false }
        if haveSuspectsRoom { wereSuspectsFull = false }
        context.changed(.hasRoom)
    }

    // MARK: Checks

    /// Sets a push aside and asks its owner.
    func check(_ slot: PushTable.Slot) {
        let ticket = table.check(slot)
        context.wantsCheck(table.tag(slot), ticket)
    }

    /// The owner sends a checked push with other content.
    func renew(_ slot: PushTable.Slot, with push: consuming Push) {
        let old = table.token(slot)
        if push.token != old, !backoff.isEmpty { release(old, slot, isOver: false) }
        table.replace(slot, with: push)
        putBack(slot)
    }

    /// The owner has checked a push.
    func putBack(_ slot: PushTable.Slot) { table.putBack(slot, checkDueNanos: checkDueNanos) }

    /// Takes back every push without a stream with a wanted tag.
    func withdrawUnsent(where isWanted: (UInt64) -> Bool) -> [(tag: UInt64, mayHaveArrived: Bool)] {
        var withdrawn: [(tag: UInt64, mayHaveArrived: Bool)] = []
        for slot in table.all() where !table.isInFlight(slot) && isWanted(table.tag(slot)) {
            let mayHaveArrived = table[slot].history.unknowns > 0
            withdrawn.append((remove(slot), mayHaveArrived))
        }
        return withdrawn
    }

    // MARK: Tokens that back off

    /// - Returns: whether the push's device may be pushed now. If not, the push waits.
    func mayTry(_ slot: PushTable.Slot, _ now: UInt64) -> Bool {
        // The push's kind is known when it has its content again.
        if backoff.isEmpty || table.lacksContent(slot) { return true }
        let wait = backoff.asks(
            table.token(slot), table.kind(slot), slot, order: table[slot].order, nowNanos: now)
        guard let wait else { return true }
        begin(wait, slot, now)
        return false
    }

    /// 429 TooManyRequests to a push that ends. After a pause that is longer than pushes wait here, nothing of the device does.
    func endRefused(
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
    func holdRefused(_ slot: PushTable.Slot, _ reason: APNsReason, dueNanos: UInt64, _ now: UInt64) {
        let wait = backoff.refused(
            table.token(slot), table.kind(slot), slot, reason, order: table[slot].order, dueNanos: dueNanos)
        begin(wait, slot, now)
    }

    /// A push that its owner has given away begins to wait.
    private func begin(_ wait: TokenBackoff.Wait, _ slot: PushTable.Slot, _ now: UInt64) {
        apply(wait, slot, now)
        if wait.superseded != slot { context.held(table.tag(slot)) }
    }

    private func apply(_ wait: TokenBackoff.Wait, _ slot: PushTable.Slot, _ now: UInt64) {
        table.delay(slot, dueNanos: wait.dueNanos)
        if let superseded = wait.superseded { endInNextTurn(superseded, as: .superseded, now) }
        if let next = wait.next { start(next, now) }
        guard wait.superseded != slot, let pause = backoff.pause(table.token(slot), nowNanos: now),
            pause.nanos > context.limits.holdNanos
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
    private func release(_ token: DeviceToken, _ slot: PushTable.Slot, isOver: Bool) {
        if let turn = backoff.ended(token, slot, isOver: isOver) { start(turn, loop.nowNanos) }
    }

    // MARK: Bodies of answers

    /// Keeps the first bytes of an error's body and drops the rest.
    func keepBody(_ slot: PushTable.Slot, _ bytes: UnsafeRawBufferPointer) {
        let room = AnswerBody.bytesMax - (bodies[slot]?.count ?? 0)
        if room > 0 { bodies[slot, default: []].append(contentsOf: bytes.prefix(room)) }
    }

    func takeBody(_ slot: PushTable.Slot) -> AnswerBody? { bodies.removeValue(forKey: slot).map { AnswerBody($0) } }

    // MARK: Ends

    /// Ends a push that has expired, or that waited too long for its device to end a pause.
    ///
    /// - Returns: false if it goes on.
    func hasEnded(_ slot: PushTable.Slot, _ now: UInt64, wallMs: Int64) -> Bool {
        if table[slot].ending != .none, hasWaitEnded(slot, now) { return true }
        guard table.expiresAtMs(slot) <= wallMs else { return false }
        finish(slot, expiredOutcome(slot))
        return true
    }

    /// - Returns: false if it goes on: its device may be pushed again.
    private func hasWaitEnded(_ slot: PushTable.Slot, _ now: UInt64) -> Bool {
        guard table[slot].ending == .deferred else {
            finish(slot, .superseded)
            return true
        }
        table[slot].ending = .none
        guard let pause = backoff.pause(table.token(slot), nowNanos: now) else { return false }
        finish(slot, .deferred(status: 429, reason: pause.reason, retryAfterMs: Int64(pause.nanos / 1_000_000)))
        return true
    }

    /// Removes the push from the table and reports its outcome. The only place that does this.
    func finish(_ slot: PushTable.Slot, _ outcome: PushOutcome) {
        guard table.holds(slot) else { return }
        let attempts = Int(table[slot].history.attempts)
        let tag = remove(slot, isOver: outcome.isJudgement)
        endedCount &+= 1
        context.finished(tag, outcome, attempts: attempts)
        noteRoom()
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

    /// The outcome of a push that was sent, with an unknown result.
    func lost(_ slot: PushTable.Slot, _ cause: UnknownCause = .connectionLost) -> PushOutcome {
        .unknown(cause, apnsID: table.id(slot))
    }

    private func expiredOutcome(_ slot: PushTable.Slot) -> PushOutcome {
        table[slot].history.unknowns > 0 ? lost(slot) : .expired
    }

    // MARK: Time

    func tick() {
        sweepExpired()
        backoff.sweep(nowNanos: loop.nowNanos)
    }

    /// Ends expired pushes without a stream, once a second.
    private func sweepExpired() {
        let wallMs = loop.unixMs
        guard wallMs - lastSweepMs >= 1000 || wallMs < lastSweepMs else { return }
        lastSweepMs = wallMs
        // An owner that receives an outcome may take back other pushes and send new ones, which may reuse the slots.
        for slot in table.expired(nowMs: wallMs)
        where table.holds(slot) && !table.isInFlight(slot) && table.expiresAtMs(slot) <= wallMs {
            finish(slot, expiredOutcome(slot))
        }
    }

    /// Updates the recent number of pushes that end per second.
    func measurePace() {
        let now = loop.nowNanos
        let elapsed = Double(now &- paceNanos) * 1e-9
        guard elapsed >= 0.1 else { return }
        let pace = Double(endedCount) / elapsed
        perSecond = perSecond == 0 ? pace : perSecond * 0.5 + pace * 0.5
        endedCount = 0
        paceNanos = now
    }

    /// Updates the gauges; on ticks, never per push.
    func showState() {
        let metrics = context.metrics
        metrics.pending.set(queuedCount)
        metrics.inFlight.set(table.inFlightCount)
        metrics.limit.set(limiter.limit)
        metrics.decreases.add(UInt64(limiter.takeDecreases()))
        metrics.heldTokens.set(backoff.count)
        let oldest = table.oldestInFlight.map { loop.nowNanos &- table[$0].submittedNanos } ?? 0
        metrics.oldestStream.set(Double(oldest) * 1e-9)
    }
}

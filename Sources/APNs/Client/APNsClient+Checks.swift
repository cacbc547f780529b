// SPDX-License-Identifier: Apache-2.0
import EventLoop

// A push that waited is checked again by its owner before it is sent, and before each further attempt.
extension APNsClient {
    /// When a push that was sent or checked now must be checked again.
    var checkDueNanos: UInt64 {
        let (due, overflow) = loop.nowNanos.addingReportingOverflow(limits.checkAfterNanos)
        return overflow ? .max : due
    }

    /// - Returns: whether another push may be set aside for its check. Only as many as could be sent now: during an
    ///   outage the whole queue would otherwise be checked again and again.
    func mayCheck(_ route: PushTable.Route, bytes: Int, allowance: Int) -> Bool {
        let checking = table.checkingCount
        guard checking < allowance, table.inFlightCount + checking < limiter.limit else { return false }
        var room = 0
        for connection in connections where connection.route == route && !connection.isFrozen {
            room += connection.room(for: bytes)
        }
        return (route == .suspect ? table.checkingCount(.suspect) : checking) < room
    }

    /// Sets a push aside and asks its owner.
    func check(_ slot: PushTable.Slot) {
        let ticket = table.check(slot)
        delegate?.apns(self, wantsCheck: table.tag(slot), ticket: ticket)
    }

    // MARK: Answers of the owner

    /// Whether only `renew` can send the push: its content was not kept. False for a stale ticket.
    public func lacksContent(_ ticket: PushTicket) -> Bool {
        guard let slot = table.slot(of: ticket) else { return false }
        return table.lacksContent(slot)
    }

    /// Sends the push unchanged, before the others in its lane. A stale ticket has no effect. A push that lacks its content ends
    /// as `unprocessed(.notSent)`.
    public func confirm(_ ticket: PushTicket) {
        loop.assertOnLoop()
        guard let slot = table.slot(of: ticket) else { return }
        if table.lacksContent(slot) { return finishUnsent(slot, .notSent) }
        table.putBack(slot, checkDueNanos: checkDueNanos)
        pumpAtEndOfTurn()
    }

    /// Sends the push with another payload, headers, lane or expiry, before the others in its lane. Its previous
    /// attempts still count. A stale ticket has no effect.
    ///
    /// - Parameters:
    ///   - ticket: identifies the push that was set aside.
    ///   - push: must have the tag and id of the replaced push. A push that APNs can never accept (`PushFault`) ends
    ///     before this returns, as `unprocessed(.notSent)` if no attempt of it may have arrived.
    public func renew(_ ticket: PushTicket, with push: consuming Push) {
        loop.assertOnLoop()
        guard let slot = table.slot(of: ticket) else { return }
        precondition(
            push.tag == table.tag(slot) && push.id == table.id(slot), "a push is renewed under its own tag and id")
        if push.fault(hasToken: hasToken) != nil { return finishUnsent(slot, .notSent) }
        let old = table.token(slot)
        if push.token != old, !backoff.isEmpty { release(old, slot, isOver: false) }
        table.replace(slot, with: push)
        table.putBack(slot, checkDueNanos: checkDueNanos)
        pumpAtEndOfTurn()
    }

    /// The number of its requests so far; 0 for a stale ticket.
    public func attempts(of ticket: PushTicket) -> Int {
        loop.assertOnLoop()
        return table.slot(of: ticket).map { Int(table[$0].history.attempts) } ?? 0
    }

    /// Removes the push without an outcome. Returns false for a stale ticket: the outcome has come or will come.
    @discardableResult
    public func withdraw(_ ticket: PushTicket) -> Bool {
        loop.assertOnLoop()
        guard let slot = table.slot(of: ticket) else { return false }
        _ = remove(slot)
        pumpAtEndOfTurn()
        return true
    }

    /// Takes back every push without a stream (waiting, delayed or being checked) with a wanted tag. No outcome follows
    /// for these. Pushes on a stream end normally.
    ///
    /// - Parameter isWanted: called once for each push without a stream. Must not call the client.
    /// - Returns: the tags, in no order. `mayHaveArrived`: the result of an earlier attempt is unknown.
    public func withdrawUnsent(where isWanted: (UInt64) -> Bool) -> [(tag: UInt64, mayHaveArrived: Bool)] {
        loop.assertOnLoop()
        var withdrawn: [(tag: UInt64, mayHaveArrived: Bool)] = []
        for slot in table.all() where !table.isInFlight(slot) && isWanted(table.tag(slot)) {
            let mayHaveArrived = table[slot].history.unknowns > 0
            withdrawn.append((remove(slot), mayHaveArrived))
        }
        if !withdrawn.isEmpty { pumpAtEndOfTurn() }
        return withdrawn
    }
}

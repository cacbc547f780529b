import EventLoop

// A push that waited is looked at again by its owner before it leaves, and before each further try.
extension APNsClient {
    /// When a push that was sent or checked now has to be checked again.
    var checkDueNanos: UInt64 {
        let (due, overflow) = loop.nowNanos.addingReportingOverflow(limits.checkAfterNanos)
        return overflow ? .max : due
    }

    /// Whether one more push may be set aside for its check: only as many as could leave now, or an outage would have the
    /// whole queue asked again and again.
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

    /// The push goes, unchanged, ahead of what waits in its lane. A stale ticket does nothing.
    public func confirm(_ ticket: PushTicket) {
        loop.assertOnLoop()
        guard let slot = table.slot(of: ticket) else { return }
        table.putBack(slot, checkDueNanos: checkDueNanos)
        pumpAtEndOfTurn()
    }

    /// The push goes with another payload, headers, lane or expiry, ahead of what waits in its lane; what was tried for it
    /// still counts. A stale ticket does nothing.
    ///
    /// - Parameters:
    ///   - ticket: of the push that was set aside.
    ///   - push: with the tag and id of the one that it replaces. One that could never be accepted (`PushFault`) ends
    ///     before this returns, as `unprocessed(.notSent)` where no try of it may have arrived.
    public func renew(_ ticket: PushTicket, with push: consuming Push) {
        loop.assertOnLoop()
        guard let slot = table.slot(of: ticket) else { return }
        precondition(
            push.tag == table.tag(slot) && push.id == table.id(slot), "a push is renewed under its own tag and id")
        if push.fault(hasToken: identity.tokens != nil) != nil { return finishUnsent(slot, .notSent) }
        let old = table.token(slot)
        if push.token != old, !backoff.isEmpty { release(old, slot, isOver: false) }
        table.replace(slot, with: push)
        table.putBack(slot, checkDueNanos: checkDueNanos)
        pumpAtEndOfTurn()
    }

    /// The push leaves the client without an outcome. False where the ticket is stale: then its outcome came or will come.
    @discardableResult
    public func withdraw(_ ticket: PushTicket) -> Bool {
        loop.assertOnLoop()
        guard let slot = table.slot(of: ticket) else { return false }
        _ = remove(slot)
        pumpAtEndOfTurn()
        return true
    }

    /// Takes back every push that is on no stream (it waits, is delayed or is being checked) and whose tag is wanted: no
    /// outcome comes for them. What is on a stream ends as always.
    ///
    /// - Parameter isWanted: called once for each push that is on no stream; must not call the client.
    /// - Returns: the tags, in no order; `mayHaveArrived` where the fate of an earlier try is unknown.
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

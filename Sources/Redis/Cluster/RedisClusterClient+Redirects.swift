// SPDX-License-Identifier: Apache-2.0
internal import EventLoop
internal import Telemetry

/// Commands that nodes did not execute, and commands that wait for the cluster to agree.
extension RedisClusterClient {
    private static let lookNanos: UInt64 = 10_000_000

    func take(_ command: KeptCommand, turnedAwayBy node: RedisNode, _ fault: RedisFault, _ redirect: Redirect?) {
        if RedirectRule.asksForMap(fault.code) { renewMap() }
        // No server can make this client open unlimited links. The map reports new nodes in time.
        let isKnown = redirect.map { nodes[$0.address] != nil } ?? false
        let mayFollow = redirect.map { RedisTopology.allows($0.address, namedBy: seeds) } ?? false
        let redirect = isKnown || (mayFollow && nodes.count < SlotMap.mastersMax) ? redirect : nil
        if let redirect, redirect.kind == .moved, redirect.slot == command.head.slot {
            give([redirect.slot], to: self.node(at: redirect.address))
        }
        let step = RedirectRule.step(
            fault.code, redirect, command.head, nowNanos: loop.nowNanos, limitNanos: limits.commandTimeoutNanos)
        var next = command
        next.call.head.tries = min(next.call.head.tries, .max - 1) + 1
        switch step {
        case .fail: tell(command, fault)
        case .wait(let nanos): hold(next, nanos, fault)
        case .send(let address, let asking): send(next, to: self.node(at: address), asking: asking, fault)
        }
    }

    private func send(_ command: KeptCommand, to node: RedisNode, asking: Bool, _ fault: RedisFault) {
        // Earlier commands of the slot wait, or the previous node has open ones: keep the order.
        if held.holds(command.head.slot) { return hold(command, 0, fault) }
        guard node.client.isReady else { return hold(command, Self.lookNanos, fault) }
        let isSent = command.encoded.withUnsafeBytes { bytes in
            do throws(RedisFault) {
                try node.send(command.call, bytes, asking: asking)
                return true
            } catch {
                return false
            }
        }
        if !isSent { hold(command, Self.lookNanos, fault) }
    }

    private func hold(_ command: KeptCommand, _ nanos: UInt64, _ fault: RedisFault) {
        held.hold(command, untilNanos: loop.nowNanos &+ nanos, because: fault)
        armHeldTimer()
    }

    func armHeldTimer() {
        if let heldTimer, !heldTimer.isArmed { heldTimer.arm(afterNanos: Self.lookNanos) }
    }

    private func tell(_ command: KeptCommand, _ fault: RedisFault) {
        delegate?.redis(anyClient(), didFail: command.call.tag, fault: fault)
    }

    /// Sends commands with an expired delay to the present owner of their slot. Commands that waited too long fail.
    func releaseHeld() {
        let now = loop.nowNanos
        let since = now &- min(now, limits.commandTimeoutNanos)
        for (command, fault) in held.takeExpired(startedBefore: since) { tell(command, fault) }
        for slot in held.due(nowNanos: now) where !isClosed { release(slot, now) }
        if !isClosed, !held.isEmpty { armHeldTimer() }
    }

    private func release(_ slot: UInt16, _ now: UInt64) {
        guard let owner = owners[Int(slot)], owner.client.isReady else {
            return held.putOff(slot, untilNanos: now &+ Self.lookNanos)
        }
        for command in held.release(slot) {
            send(command, to: owner, asking: false, RedisFault(.moved))
        }
    }

    /// All commands sent to the node before its slots moved are answered.
    func unfence(_ node: RedisNode) {
        let slots = node.takeUnfenced()
        if slots.isEmpty { return }
        for slot in slots { held.unfence(slot) }
        if !isClosed { releaseHeld() }
    }
}

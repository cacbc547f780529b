// SPDX-License-Identifier: Apache-2.0
/// Device tokens that back off (429 TooManyRequests), each with its waiting pushes.
///
/// While a token backs off nothing is sent to it. After the wait, or once a push was accepted, one push goes at a time, in their
/// order, until none waits. A waiting push is superseded by a newer one with its collapse id, of which a device shows only the
/// newest. Other tokens are not affected.
/// While empty it costs one comparison per push.
struct TokenBackoff {
    typealias Slot = PushTable.Slot

    /// A newer push supersedes an older one if both have the same kind with a collapse id.
    struct Kind: Equatable {
        var type: PushType
        var collapseID: [UInt8]?

        init(_ type: PushType, collapseID: [UInt8]? = nil) {
            self.type = type
            self.collapseID = collapseID
        }

        func supersedes(_ older: Kind) -> Bool { collapseID != nil && self == older }
    }

    private struct Hold {
        /// 0: APNs takes pushes of the token again, and those that waited go.
        var untilNanos: UInt64 = 0
        /// APNs' reason.
        var reason = APNsReason.absent
        var refusals: UInt32 = 0
        /// Waiting pushes with their slots; at most one per collapse id.
        var waiting: [(kind: Kind, slot: Slot, order: UInt64)] = []
        /// The push that goes next: it waits until `untilNanos`, or is in flight. All others wait for its end. Nil only
        /// while nothing waits; `elect` ensures this after every change.
        var turn: Slot?
        /// The push with the turn was sent and has not ended.
        var isTrying = false

        mutating func leave(_ slot: Slot) {
            waiting.removeAll { $0.slot == slot }
            guard turn == slot else { return }
            turn = nil
            isTrying = false
        }

        /// Gives the turn to the oldest waiting push, if no push has it.
        mutating func elect() -> Turn? {
            guard turn == nil, let next = waiting.min(by: { $0.order < $1.order }) else { return nil }
            turn = next.slot
            return Turn(slot: next.slot, dueNanos: untilNanos)
        }

        /// A push begins to wait and replaces an older one with its collapse id. A newer one keeps the place.
        mutating func wait(_ kind: Kind, _ slot: Slot, order: UInt64) -> Wait {
            leave(slot)
            var superseded: Slot?
            if let other = waiting.first(where: { kind.supersedes($0.kind) }) {
                superseded = other.order > order ? slot : other.slot
                if other.order < order { leave(other.slot) }
            }
            if superseded != slot { waiting.append((kind, slot, order)) }
            let next = elect()
            return Wait(
                dueNanos: turn == slot ? untilNanos : .max, refusals: refusals, superseded: superseded,
                next: next?.slot == slot ? nil : next)
        }
    }

    private var holds: [DeviceToken: Hold] = [:]

    var isEmpty: Bool { holds.isEmpty }
    var count: Int { holds.count }

    func holds(_ token: DeviceToken) -> Bool { holds[token] != nil }

    /// Tokens to which nothing may be sent now.
    func heldCount(nowNanos: UInt64) -> Int { holds.values.reduce(0) { $0 + ($1.untilNanos > nowNanos ? 1 : 0) } }

    /// APNs' reason, and the time until a push of the token may go; nil if one may go now.
    func pause(_ token: DeviceToken, nowNanos: UInt64) -> (reason: APNsReason, nanos: UInt64)? {
        guard let hold = holds[token], hold.untilNanos > nowNanos else { return nil }
        return (hold.reason, hold.untilNanos &- nowNanos)
    }

    /// A push that may go from `dueNanos` on.
    struct Turn: Equatable {
        var slot: Slot
        var dueNanos: UInt64
    }

    /// The result when a push begins to wait.
    struct Wait: Equatable {
        /// `.max`: until a `Turn` names it.
        var dueNanos: UInt64
        /// Number of such answers so far. The next wait rises with it.
        var refusals: UInt32
        /// A newer push replaced it.
        var superseded: Slot?
        /// Another push of the token that now has the turn.
        var next: Turn?
    }

    /// A push was refused with 429. It waits at least until `dueNanos`, unless a newer one with its collapse id waits already.
    mutating func refused(
        _ token: DeviceToken, _ kind: Kind, _ slot: Slot, _ reason: APNsReason = .absent, order: UInt64,
        dueNanos: UInt64
    ) -> Wait {
        var hold = holds[token] ?? Hold()
        hold.refusals &+= 1
        hold.untilNanos = max(dueNanos, hold.untilNanos)
        hold.reason = reason
        hold.leave(slot)
        defer { holds[token] = hold }
        return hold.wait(kind, slot, order: order)
    }

    /// A push was refused with 429 and ends: the token backs off all the same.
    mutating func note(_ token: DeviceToken, _ reason: APNsReason, dueNanos: UInt64) {
        var hold = holds[token] ?? Hold()
        hold.refusals &+= 1
        hold.untilNanos = max(dueNanos, hold.untilNanos)
        hold.reason = reason
        holds[token] = hold
    }

    /// A push was refused with 429, for longer than pushes wait here. The token backs off, and all that wait leave.
    ///
    /// - Returns: the other pushes that waited.
    mutating func deferred(_ token: DeviceToken, _ slot: Slot, _ reason: APNsReason, dueNanos: UInt64) -> [Slot] {
        note(token, reason, dueNanos: dueNanos)
        guard var hold = holds[token] else { return [] }
        hold.leave(slot)
        let others = hold.waiting.map(\.slot)
        hold.waiting = []
        (hold.turn, hold.isTrying) = (nil, false)
        holds[token] = hold
        return others
    }

    /// A push is about to be sent. Returns nil if it may go. Otherwise it waits for the time or for the push with the
    /// turn.
    mutating func asks(
        _ token: DeviceToken, _ kind: Kind, _ slot: Slot, order: UInt64, nowNanos: UInt64
    ) -> Wait? {
        guard let hold = holds[token] else { return nil }
        guard hold.turn == slot else { return wait(token, kind, slot, order: order) }
        if hold.isTrying { return nil }
        guard nowNanos >= hold.untilNanos else { return Wait(dueNanos: hold.untilNanos, refusals: hold.refusals) }
        holds[token]?.waiting.removeAll { $0.slot == slot }
        holds[token]?.isTrying = true
        return nil
    }

    /// A push of a token that backs off begins to wait; nil if the token does not back off.
    mutating func wait(_ token: DeviceToken, _ kind: Kind, _ slot: Slot, order: UInt64) -> Wait? {
        holds[token]?.wait(kind, slot, order: order)
    }

    /// A push of the token ended. `isOver`: its answer shows that the token may be pushed again.
    ///
    /// - Returns: the push that may go, if it is another one than before, or earlier.
    mutating func ended(_ token: DeviceToken, _ slot: Slot, isOver: Bool) -> Turn? {
        guard var hold = holds[token] else { return nil }
        hold.leave(slot)
        if isOver { (hold.untilNanos, hold.refusals) = (0, 0) }
        var next = hold.elect()
        // The push with the turn waited for its time.
        if isOver, next == nil, !hold.isTrying { next = hold.turn.map { Turn(slot: $0, dueNanos: 0) } }
        holds[token] = hold.turn == nil && hold.untilNanos == 0 ? nil : hold
        return next
    }

    /// Forgets tokens with an expired back-off and no waiting push.
    mutating func sweep(nowNanos: UInt64) {
        guard !holds.isEmpty else { return }
        holds = holds.filter { _, hold in
            hold.turn != nil || hold.untilNanos &+ 60_000_000_000 > nowNanos
        }
    }
}

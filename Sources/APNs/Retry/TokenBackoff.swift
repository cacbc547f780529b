/// Device tokens that APNs wants left alone for a while (429 TooManyRequests), each with what waits for it.
///
/// While a token backs off nothing is sent to it; of each kind only the newest push waits, and the one before it is
/// superseded: a device that is told too much is told the latest. After the wait one push goes at a time until one is
/// accepted. Other tokens are not touched. Empty, it costs one comparison per push.
struct TokenBackoff {
    typealias Slot = PushTable.Slot

    /// A newer push takes an older one's place only within a kind: a number alone says nothing of what an alert said.
    struct Kind: Equatable {
        var type: PushType
        var isSilent: Bool

        init(_ type: PushType, _ lane: PushLane = .direct) {
            self.type = type
            isSilent = lane == .silent
        }
    }

    private struct Hold {
        var untilNanos: UInt64 = 0
        var refusals: UInt32 = 0
        /// Pushes that wait, each with its slot; at most one per kind.
        var waiting: [(kind: Kind, slot: Slot, order: UInt64)] = []
        /// The push that goes next: it waits for `untilNanos`, or is on its way. All others wait for its end. Nil only
        /// while nothing waits; `elect` sees to it after every change.
        var turn: Slot?
        /// The push whose turn it is was let go and has not ended.
        var isTrying = false

        mutating func leave(_ slot: Slot) {
            waiting.removeAll { $0.slot == slot }
            guard turn == slot else { return }
            turn = nil
            isTrying = false
        }

        /// Gives the turn to the oldest that waits, where nobody has it.
        mutating func elect() -> Turn? {
            guard turn == nil, let next = waiting.min(by: { $0.order < $1.order }) else { return nil }
            turn = next.slot
            return Turn(slot: next.slot, dueNanos: untilNanos)
        }

        /// A push comes to wait, in the place of an older one of its kind; a newer one keeps the place.
        mutating func wait(_ kind: Kind, _ slot: Slot, order: UInt64) -> Wait {
            leave(slot)
            var superseded: Slot?
            if let other = waiting.first(where: { $0.kind == kind }) {
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

    /// A push that may go from `dueNanos` on.
    struct Turn: Equatable {
        var slot: Slot
        var dueNanos: UInt64
    }

    /// What a push that comes to wait means for it and the others.
    struct Wait: Equatable {
        /// `.max`: until a `Turn` names it.
        var dueNanos: UInt64
        /// Answers of this kind so far: the next wait rises with it.
        var refusals: UInt32
        /// Its place is taken by a newer one.
        var superseded: Slot?
        /// Another one of the token whose turn it is now.
        var next: Turn?
    }

    /// A push was refused with 429; it waits until `dueNanos` at least, unless a newer one of its kind does already.
    mutating func refused(_ token: DeviceToken, _ kind: Kind, _ slot: Slot, order: UInt64, dueNanos: UInt64) -> Wait {
        var hold = holds[token] ?? Hold()
        hold.refusals &+= 1
        hold.untilNanos = max(dueNanos, hold.untilNanos)
        hold.leave(slot)
        defer { holds[token] = hold }
        return hold.wait(kind, slot, order: order)
    }

    /// A push is about to be sent. Nil: it may. Else it is to wait, for the time to pass or for the push whose turn it is.
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

    /// A push of a token that backs off comes to wait; nil where the token does not.
    mutating func wait(_ token: DeviceToken, _ kind: Kind, _ slot: Slot, order: UInt64) -> Wait? {
        holds[token]?.wait(kind, slot, order: order)
    }

    /// A push of the token ended; `isOver` where its answer shows that the token may be pushed again.
    ///
    /// Returns the pushes that may go: all that wait where the back-off is over, else the next one where it was this one's
    /// turn.
    mutating func ended(_ token: DeviceToken, _ slot: Slot, isOver: Bool) -> [Turn] {
        guard var hold = holds[token] else { return [] }
        hold.leave(slot)
        if isOver {
            holds[token] = nil
            return hold.waiting.map { Turn(slot: $0.slot, dueNanos: 0) }
        }
        let next = hold.elect()
        holds[token] = hold
        return next.map { [$0] } ?? []
    }

    /// Forgets tokens whose wait is long over and for which nothing waits.
    mutating func sweep(nowNanos: UInt64) {
        guard !holds.isEmpty else { return }
        holds = holds.filter { _, hold in
            hold.turn != nil || hold.untilNanos &+ 60_000_000_000 > nowNanos
        }
    }
}

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
        var untilNanos: UInt64
        var refusals: UInt32 = 1
        /// Waits with its slot; at most one per kind.
        var waiting: [(kind: Kind, slot: Slot, order: UInt64)] = []
        /// The one that tries whether the token may be pushed again.
        var trying: Slot?
    }

    private var holds: [DeviceToken: Hold] = [:]

    var isEmpty: Bool { holds.isEmpty }
    var count: Int { holds.count }

    func holds(_ token: DeviceToken) -> Bool { holds[token] != nil }

    /// What a push that comes to wait means for the others.
    struct Wait: Equatable {
        var dueNanos: UInt64
        /// Answers of this kind so far: the next wait rises with it.
        var refusals: UInt32
        /// Its place is taken by a newer one.
        var superseded: Slot?
    }

    /// A push was refused with 429; it waits until `dueNanos`, unless a newer one of its kind does already.
    mutating func refused(
        _ token: DeviceToken, _ kind: Kind, _ slot: Slot, order: UInt64, dueNanos: UInt64
    ) -> Wait {
        if var hold = holds[token] {
            hold.refusals &+= 1
            hold.untilNanos = max(dueNanos, hold.untilNanos)
            if hold.trying == slot { hold.trying = nil }
            holds[token] = hold
        } else {
            holds[token] = Hold(untilNanos: dueNanos)
        }
        return wait(token, kind, slot, order: order, dueNanos: dueNanos)
    }

    /// A new push for a token that backs off.
    mutating func came(_ token: DeviceToken, _ kind: Kind, _ slot: Slot, order: UInt64, nowNanos: UInt64) -> Wait {
        wait(token, kind, slot, order: order, dueNanos: nowNanos)
    }

    private mutating func wait(
        _ token: DeviceToken, _ kind: Kind, _ slot: Slot, order: UInt64, dueNanos: UInt64
    ) -> Wait {
        guard var hold = holds[token] else { return Wait(dueNanos: dueNanos, refusals: 0) }
        defer { holds[token] = hold }
        // While one tries, the others wait for its answer and no clock.
        let due = hold.trying != nil ? UInt64.max : max(dueNanos, hold.untilNanos)
        guard let index = hold.waiting.firstIndex(where: { $0.kind == kind && $0.slot != slot }) else {
            hold.waiting.removeAll { $0.slot == slot }
            hold.waiting.append((kind, slot, order))
            return Wait(dueNanos: due, refusals: hold.refusals)
        }
        let other = hold.waiting[index]
        if other.order > order { return Wait(dueNanos: due, refusals: hold.refusals, superseded: slot) }
        hold.waiting[index] = (kind, slot, order)
        return Wait(dueNanos: due, refusals: hold.refusals, superseded: other.slot)
    }

    /// A push is about to be sent. False: another one of the token tries at the moment; it is to wait on.
    mutating func tries(_ token: DeviceToken, _ slot: Slot) -> Bool {
        guard let hold = holds[token] else { return true }
        if let trying = hold.trying { return trying == slot }
        holds[token]?.trying = slot
        holds[token]?.waiting.removeAll { $0.slot == slot }
        return true
    }

    /// A push of the token ended; `isOver` where its answer shows that the token may be pushed again.
    ///
    /// Returns the slots that may go now: all that wait where the back-off is over, else one where the one that tried is
    /// gone without an answer.
    mutating func ended(_ token: DeviceToken, _ slot: Slot, isOver: Bool) -> [Slot] {
        guard var hold = holds[token] else { return [] }
        if isOver {
            holds[token] = nil
            return hold.waiting.map(\.slot).filter { $0 != slot }
        }
        hold.waiting.removeAll { $0.slot == slot }
        let wasTrying = hold.trying == slot
        if wasTrying { hold.trying = nil }
        holds[token] = hold
        guard wasTrying, let next = hold.waiting.min(by: { $0.order < $1.order }) else { return [] }
        return [next.slot]
    }

    /// Forgets tokens whose wait is long over and for which nothing waits.
    mutating func sweep(nowNanos: UInt64) {
        guard !holds.isEmpty else { return }
        holds = holds.filter { _, hold in
            !hold.waiting.isEmpty || hold.trying != nil || hold.untilNanos &+ 60_000_000_000 > nowNanos
        }
    }
}

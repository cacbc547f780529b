// SPDX-License-Identifier: Apache-2.0
/// Selects the next lane: smooth weighted round robin over the lanes with work.
struct LaneTurns {
    private let shares: LaneShares
    private var credits: (Int32, Int32, Int32, Int32, Int32) = (0, 0, 0, 0, 0)

    init(_ shares: LaneShares = LaneShares()) { self.shares = shares }

    /// - Parameter busy: one bit per lane with work, by raw value; 0 gives nil.
    mutating func next(busy: UInt8) -> PushLane? {
        // A single busy lane needs no turns. The credits remain, so that this costs it nothing later.
        if busy & (busy &- 1) == 0 {
            return busy == 0 ? nil : PushLane(rawValue: UInt8(busy.trailingZeroBitCount))
        }
        var total: Int32 = 0
        var best: PushLane?
        var bestCredit = Int32.min
        for lane in PushLane.allCases where busy & (1 << lane.rawValue) != 0 {
            let share = Int32(clamping: shares[lane])
            self[lane] += share
            total += share
            if self[lane] > bestCredit {
                best = lane
                bestCredit = self[lane]
            }
        }
        if let best { self[best] -= total }
        return best
    }

    private subscript(lane: PushLane) -> Int32 {
        get {
            switch lane {
            case .urgent: credits.0
            case .direct: credits.1
            case .group: credits.2
            case .bulk: credits.3
            case .silent: credits.4
            }
        }
        set {
            switch lane {
            case .urgent: credits.0 = newValue
            case .direct: credits.1 = newValue
            case .group: credits.2 = newValue
            case .bulk: credits.3 = newValue
            case .silent: credits.4 = newValue
            }
        }
    }
}

/// What kind of traffic a push is, where many wait: each lane is sure of its share of what leaves.
///
/// Idle shares are lent, so that one busy lane alone has everything. The shares are percent of the pushes sent while
/// all lanes have work: a giant group drains without holding up the chats beside it.
public enum PushLane: UInt8, Sendable, CaseIterable {
    /// Calls and security codes: 10 %.
    case urgent
    /// One to one, and mentions: 45 %.
    case direct
    /// Ordinary groups: 25 %.
    case group
    /// Giant groups: 15 %.
    case bulk
    /// Background pushes and badges: 5 %.
    case silent

    /// Percent of what leaves while every lane has work.
    var share: Int32 {
        switch self {
        case .urgent: 10
        case .direct: 45
        case .group: 25
        case .bulk: 15
        case .silent: 5
        }
    }

    /// Percent of `APNsLimits.pushesMax` up to which the lane may fill the client: the rest is for lanes above it.
    var fillPercent: Int {
        switch self {
        case .urgent, .direct: 100
        case .group: 90
        case .bulk, .silent: 80
        }
    }
}

/// Which lane is next: smooth weighted round robin over the lanes that have work.
struct LaneShares: Equatable {
    private var credits: (Int32, Int32, Int32, Int32, Int32) = (0, 0, 0, 0, 0)

    static func == (one: LaneShares, other: LaneShares) -> Bool { one.credits == other.credits }

    /// - Parameter busy: one bit per lane with work, by raw value; 0 gives nil.
    mutating func next(busy: UInt8) -> PushLane? {
        // One lane alone needs no turns; its credits stay, so that a moment alone costs it nothing.
        if busy & (busy &- 1) == 0 {
            return busy == 0 ? nil : PushLane(rawValue: UInt8(busy.trailingZeroBitCount))
        }
        var total: Int32 = 0
        var best: PushLane?
        var bestCredit = Int32.min
        for lane in PushLane.allCases where busy & (1 << lane.rawValue) != 0 {
            self[lane] += lane.share
            total += lane.share
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

// SPDX-License-Identifier: Apache-2.0
/// The guaranteed share of each lane while all have work, as parts of the sum. Unused share goes to the others, so a
/// busy lane alone has everything.
public struct LaneShares: Sendable, Equatable {
    /// 1-100 each, so that no lane stops.
    public var urgent = 10
    public var direct = 45
    public var group = 25
    public var bulk = 15
    public var silent = 5

    public init() {}

    public subscript(lane: PushLane) -> Int {
        get {
            switch lane {
            case .urgent: urgent
            case .direct: direct
            case .group: group
            case .bulk: bulk
            case .silent: silent
            }
        }
        set {
            let value = min(max(newValue, 1), 100)
            switch lane {
            case .urgent: urgent = value
            case .direct: direct = value
            case .group: group = value
            case .bulk: bulk = value
            case .silent: silent = value
            }
        }
    }

    /// The lane's part of a number of places.
    public func part(of count: Int, for lane: PushLane) -> Int {
        let sum = PushLane.allCases.reduce(0) { $0 + self[$1] }
        return count / sum * self[lane] + count % sum * self[lane] / sum
    }
}

/// Which of several partitions gives the next record, so that records come in the order of their times.
///
/// Each partition keeps its own order. Where every one of them shows a record, or has none any more, the oldest is next; one
/// whose next record is not here yet is waited for, except at its present end, where nobody knows when one comes.
public struct TimeMerge: Sendable {
    /// What is known of a partition.
    public enum Lane: Equatable, Sendable {
        /// More is to come, and not here yet.
        case awaited
        /// Its next record, Unix ms.
        case head(Int64)
        /// Read to its present end.
        case idle
        /// Nothing more is wanted of it.
        case ended
    }

    public enum Next: Equatable, Sendable {
        case take(Int)
        /// A record must come first.
        case wait
        case ended
    }

    public var lanes: [Lane]

    public init(count: Int) {
        lanes = Array(repeating: .awaited, count: count)
    }

    public var next: Next {
        var oldest: (lane: Int, ms: Int64)?
        var isEnded = true
        for (index, lane) in lanes.enumerated() {
            switch lane {
            case .awaited: return .wait
            case .idle: isEnded = false
            case .ended: break
            case .head(let ms):
                if oldest.map({ ms < $0.ms }) ?? true { oldest = (index, ms) }
            }
        }
        if let oldest { return .take(oldest.lane) }
        return isEnded ? .ended : .wait
    }
}

// SPDX-License-Identifier: Apache-2.0
/// Selects the partition with the next record, so that records come in the order of their times.
///
/// Each partition keeps its own order. If every partition has a record or has ended, the oldest is next. A partition
/// without an available record is waited for, except at its present end.
public struct TimeMerge: Sendable {
    /// The state of a partition.
    public enum Lane: Equatable, Sendable {
        /// More records exist, and none is available yet.
        case awaited
        /// Time of its next record, Unix ms.
        case head(Int64)
        /// Read to its present end.
        case idle
        /// Finished.
        case ended
    }

    public enum Next: Equatable, Sendable {
        case take(Int)
        /// Wait for a record.
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

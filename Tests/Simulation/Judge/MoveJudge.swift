// SPDX-License-Identifier: Apache-2.0
/// Judges what workers say and do about older data in Redis, and about another Kafka cluster.
struct MoveJudge {
    /// A move of all workers to another cluster.
    private struct Move {
        /// Workers start from then on.
        var startNanos: UInt64 = .max
        /// Whether Redis had user state that was committed in the first cluster.
        var knewCluster: Bool
        /// A worker said so.
        var isTold = false
        /// All user state is applied again; nil: not yet.
        var endNanos: UInt64?
    }

    /// Workers may need so long until they say it.
    private static let tellNanos: UInt64 = 5_000_000_000
    private static let rule = "another Kafka cluster"
    private var moves: [Move] = []
    private var claims = 0
    private var hasRestored = false
    private(set) var violations: [Violation] = []

    mutating func didMove(_ nanos: UInt64, knewCluster: Bool) {
        if let last = moves.indices.last, moves[last].endNanos == nil {
            moves[last].endNanos = nanos
            // The workers ended too soon.
            if !moves[last].isTold, moves[last].startNanos > max(nanos, Self.tellNanos) - Self.tellNanos {
                moves[last].knewCluster = false
            }
        }
        moves.append(Move(knewCluster: knewCluster))
    }

    /// Redis starts with a backup.
    mutating func didRestore(knewCluster: Bool) {
        hasRestored = true
        guard let last = moves.indices.last else { return }
        moves[last].knewCluster = knewCluster
    }

    mutating func didStart(_ nanos: UInt64) {
        guard let last = moves.indices.last else { return }
        moves[last].startNanos = nanos
    }

    /// A line of a worker's log.
    mutating func didSay(_ line: String, _ nanos: UInt64) {
        if line.contains("Redis returned with older data") { claims += 1 }
        guard let last = moves.indices.last else { return }
        if line.contains("Redis has the user state of another Kafka cluster or topic") { moves[last].isTold = true }
        if line.contains("Redis has its data again"), moves[last].endNanos == nil { moves[last].endNanos = nanos }
    }

    /// - Parameters:
    ///   - pushes: the times of all requests to APNs.
    ///   - mayBeOlder: a fault may give Redis older data.
    mutating func finish(pushes: [UInt64], mayBeOlder: Bool) {
        if claims > 0, !hasRestored, !mayBeOlder { found("older data in Redis is claimed, and there was none") }
        for (number, move) in moves.enumerated() where move.knewCluster {
            if !move.isTold {
                found("move \(number + 1): no worker says that Redis has the user state of the former cluster")
            }
            let end = move.endNanos ?? .max
            let early = pushes.count { $0 > move.startNanos && $0 < end }
            if early > 0 { found("move \(number + 1): \(early) pushes left before all user state was applied again") }
        }
    }

    private mutating func found(_ text: String) {
        violations.append(Violation(rule: Self.rule, text: text, message: ""))
    }
}

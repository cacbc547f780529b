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
        /// Redis took writes for long enough before it refused them.
        var hadTime = false
        /// Whether the workers had the time to say so.
        var mustTell = true
        /// All user state is applied again; nil: not yet.
        var endNanos: UInt64?
    }

    /// Workers may need so long until they say it.
    private static let tellNanos: UInt64 = 5_000_000_000
    private static let rule = "another Kafka cluster"
    private var moves: [Move] = []
    private var claims = 0
    private var hasRestored = false
    /// The start of the time in which Redis takes writes; nil: no server takes any. Workers learn from a write what Redis has.
    private var writableNanos: UInt64? = 0
    /// When the workers were ended last.
    private var stopNanos: UInt64 = .max
    private(set) var violations: [Violation] = []

    /// - Parameter takesWrites: some server of Redis takes writes, from now on.
    mutating func redisChanged(takesWrites: Bool, _ nanos: UInt64) {
        if takesWrites == (writableNanos != nil) { return }
        if let last = moves.indices.last, hadTime(moves[last], by: nanos) { moves[last].hadTime = true }
        writableNanos = takesWrites ? nanos : nil
    }

    private func hadTime(_ move: Move, by nanos: UInt64) -> Bool {
        guard let writableNanos else { return move.hadTime }
        let sinceNanos = max(move.startNanos, writableNanos)
        return move.hadTime || sinceNanos <= nanos && nanos - sinceNanos >= Self.tellNanos
    }

    /// All workers end, by a signal or at once.
    mutating func didStop(_ nanos: UInt64) { stopNanos = nanos }

    mutating func didMove(_ nanos: UInt64, knewCluster: Bool) {
        if let last = moves.indices.last, moves[last].endNanos == nil {
            moves[last].endNanos = nanos
            // The workers ended too soon, or Redis took no write.
            if !hadTime(moves[last], by: min(nanos, stopNanos)) { moves[last].mustTell = false }
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
    ///   - pushes: the times of the requests to APNs.
    ///   - mayBeOlder: a fault may give Redis older data.
    mutating func finish(pushes: some Sequence<UInt64>, mayBeOlder: Bool) {
        if claims > 0, !hasRestored, !mayBeOlder { found("older data in Redis is claimed, and there was none") }
        for (number, move) in moves.enumerated() where move.knewCluster {
            if !move.isTold, move.mustTell {
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

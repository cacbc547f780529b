// SPDX-License-Identifier: Apache-2.0
import Kafka

/// What an operator is to know of one consumer, although it reads.
struct IntakeNotes {
    private static let shownNanos: UInt64 = 600_000_000_000
    /// A refused commit is sent again each second. A rebalance may cost some of them.
    private static let commitsNanos: UInt64 = 30_000_000_000

    /// Until when (monotonic) an operator is to see a time that is not in milliseconds, by topic.
    private var oddTimesUntil: [Int: UInt64] = [:]
    /// The last refusal of a commit, and when the first of them came; nil after a commit that the group took.
    private var refusal: (error: KafkaError, sinceNanos: UInt64)?

    mutating func noteOddTime(_ topic: Int, nowNanos: UInt64) { oddTimesUntil[topic] = nowNanos &+ Self.shownNanos }

    /// - Parameter error: nil: the group took the offsets.
    mutating func noteCommit(_ error: KafkaError?, nowNanos: UInt64) {
        refusal = error.map { ($0, refusal?.sinceNanos ?? nowNanos) }
    }

    func texts(_ topics: [String], group: String, nowNanos: UInt64) -> [String] {
        let odd = oddTimesUntil.filter { $0.value > nowNanos && topics.indices.contains($0.key) }.keys.sorted().map {
            "Kafka times of \(topics[$0]) are not in milliseconds: they count as absent; correct its producers"
        }
        guard let refusal, refusal.error.isDenied || nowNanos &- refusal.sinceNanos >= Self.commitsNanos else {
            return odd
        }
        return odd + ["commits of the group \(group) are refused: \(refusal.error)"]
    }
}

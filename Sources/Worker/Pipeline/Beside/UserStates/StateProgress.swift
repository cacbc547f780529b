// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The time up to which each shard of the process has applied the user state of its partitions.
///
/// Events and user state come from two topics without an order between them. An ack, a bind or a read counts as missing
/// only if everything that was in the topic at that time is applied (contract section 5). From any thread, without
/// locks.
final class StateProgress: Sendable {
    private let shards: [Cell]

    /// One shard's time: monotonic nanoseconds; 0 if unknown.
    private final class Cell: Sendable {
        let appliedNanos = Atomic<UInt64>(0)
    }

    init(shardCount: Int) {
        shards = (0..<max(1, shardCount)).map { _ in Cell() }
    }

    /// Everything that was in the shard's user-state partitions at that time is applied.
    func advance(shard: Int, toNanos nanos: UInt64) {
        if !shards.indices.contains(shard) { return }
        shards[shard].appliedNanos.store(nanos, ordering: .relaxed)
    }

    /// The earliest such time of all shards.
    var appliedNanos: UInt64 { shards.map { $0.appliedNanos.load(ordering: .relaxed) }.min() ?? 0 }
}

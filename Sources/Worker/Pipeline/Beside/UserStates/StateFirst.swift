// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// The wait of events for the user state that was in the topic at an assignment: the layer above `Intakes`.
final class StateFirst {
    private let shard: ShardContext
    private let intakes: Intakes
    /// Since this time (monotonic); nil if they do not wait.
    private var sinceNanos: UInt64?

    init(_ shard: ShardContext, _ intakes: Intakes) {
        self.shard = shard
        self.intakes = intakes
    }

    var isWaiting: Bool { sinceNanos != nil }

    /// Binds and reads that were in the topic are applied before events of the same backlog are read.
    func begin() {
        sinceNanos = shard.nowNanos
        block(true)
    }

    func endWhenApplied() {
        guard let sinceNanos else { return }
        let isOver = shard.nowNanos &- sinceNanos >= shard.limits.stateFirstNanos
        guard isOver || shard.stateProgress.appliedNanos > sinceNanos else { return }
        self.sinceNanos = nil
        block(false)
    }

    private func block(_ waits: Bool) {
        for intake in [intakes.events, intakes.chunks] { intake.block(.stateFirst, waits) }
    }
}

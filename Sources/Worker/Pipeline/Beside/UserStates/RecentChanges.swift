// SPDX-License-Identifier: Apache-2.0
/// The newest user-state changes that Redis accepted, in order: they are repeated if another process serves their keys.
///
/// Redis replicates after its answer. Changes that a master had accepted and not replicated are lost when another takes
/// its place, while the records' offsets are committed: possibly a bind that gave a token to another user. Each change
/// may be repeated at any time, because versions and times show whether a newer one exists. Pure.
struct RecentChanges<Change> {
    private struct Kept {
        let change: Change
        let generation: UInt32
        let takenNanos: UInt64
        let weight: Int
    }

    /// Oldest first; up to twice the kept weight, so that old ones are dropped together.
    private var changes: [Kept] = []
    private var weight = 0
    private let capacity: Int
    private let spanNanos: UInt64

    /// - Parameters:
    ///   - capacity: the kept weight: a few megabytes.
    ///   - spanNanos: changes this much older than the newest are certainly replicated: a replica that is further
    ///     behind is not made master. A cluster's other nodes continue in this time, so it is longer than a failover.
    init(capacity: Int = 8_192, spanNanos: UInt64 = 30_000_000_000) {
        self.capacity = max(1, capacity)
        self.spanNanos = spanNanos
    }

    /// Number of kept changes, before old ones are dropped.
    var count: Int { changes.count }

    /// - Parameters:
    ///   - weight: its part of the capacity, in ordinary changes of some hundred bytes; at least 1.
    ///   - generation: the process that served the change's keys at its start.
    ///   - takenNanos: when it was done, monotonic.
    mutating func append(_ change: Change, weight: Int = 1, generation: UInt32, takenNanos: UInt64) {
        let weight = max(1, weight)
        changes.append(Kept(change: change, generation: generation, takenNanos: takenNanos, weight: weight))
        self.weight += weight
        if self.weight >= 2 * capacity { forgetOld() }
    }

    private mutating func forgetOld() {
        var gone = 0
        while weight > capacity, gone < changes.count - 1 {
            weight -= changes[gone].weight
            gone += 1
        }
        changes.removeFirst(gone)
    }

    /// Removes the changes of keys that another process now serves.
    ///
    /// - Parameter generation: the present process of a change's keys.
    mutating func takeMoved(_ generation: (Change) -> UInt32) -> [Change] {
        guard let newest = changes.last?.takenNanos else { return [] }
        forgetOld()
        var moved: [Change] = []
        var kept: [Kept] = []
        for one in changes where newest &- one.takenNanos < spanNanos {
            if generation(one.change) == one.generation { kept.append(one) } else { moved.append(one.change) }
        }
        changes = kept
        weight = kept.reduce(0) { $0 + $1.weight }
        return moved
    }
}

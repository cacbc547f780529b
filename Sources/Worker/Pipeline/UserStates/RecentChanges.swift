/// The newest changes of user state that Redis has taken, in their order: they are made once more where another process
/// serves their keys.
///
/// Redis copies to its replicas after it has answered. What a master had taken and not copied when another one took its place
/// is gone, while the records' offsets are committed: a bind that gave a token to another user among them. Each change may be
/// made again at any time, since versions and times tell whether a newer one is there. Pure.
struct RecentChanges<Change> {
    private struct Kept {
        let change: Change
        let generation: UInt32
        let takenNanos: UInt64
        let weight: Int
    }

    /// The oldest first; up to twice the weight that is kept, so that the old ones go together.
    private var changes: [Kept] = []
    private var weight = 0
    private let capacity: Int
    private let spanNanos: UInt64

    /// - Parameters:
    ///   - capacity: the weight that is kept: a few megabytes.
    ///   - spanNanos: what was taken so long before the newest was copied: a replica whose master is longer ahead is no
    ///     longer made master. A cluster's other nodes go on meanwhile, so it is longer than they take to replace one.
    init(capacity: Int = 8_192, spanNanos: UInt64 = 30_000_000_000) {
        self.capacity = max(1, capacity)
        self.spanNanos = spanNanos
    }

    /// Changes that are kept, before the old ones are forgotten.
    var count: Int { changes.count }

    /// - Parameters:
    ///   - weight: what it takes of the capacity, in usual changes of some hundred bytes; at least 1.
    ///   - generation: which process served the change's keys when it was begun.
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

    /// Takes out those whose keys another process serves by now.
    ///
    /// - Parameter generation: which one does.
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

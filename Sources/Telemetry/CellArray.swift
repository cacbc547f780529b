// SPDX-License-Identifier: Apache-2.0
internal import Synchronization

/// A fixed row of counters, written by one thread and read by any.
///
/// An `[Atomic]` is impossible because atomics do not move, so the words are in their own memory.
struct CellArray: ~Copyable, @unchecked Sendable {
    // Unchecked: the pointer never changes after init, and every access to its memory is atomic.
    private let base: UnsafeMutablePointer<Atomic<UInt64>>
    let count: Int

    init(count: Int) {
        self.count = count
        base = .allocate(capacity: count)
        for index in 0..<count { (base + index).initialize(to: Atomic(0)) }
    }

    deinit {
        base.deinitialize(count: count)
        base.deallocate()
    }

    /// Adds one. For the owner's thread only. An index out of range is our own bug and counts nothing.
    @inline(__always)
    func increment(_ index: Int) {
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { return }
        base[index].store(base[index].load(ordering: .relaxed) &+ 1, ordering: .relaxed)
    }

    func load(_ index: Int) -> UInt64 {
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { return 0 }
        return base[index].load(ordering: .relaxed)
    }
}

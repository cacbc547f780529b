// SPDX-License-Identifier: Apache-2.0
internal import Synchronization

/// A counter that only rises, written by one thread and read by any scrape.
///
/// Each shard asks the registry for its own cell, and the registry adds up the cells of one series. So `add` needs no
/// locked instruction: it is a plain load and a plain store of one aligned word.
public final class Counter: Sendable {
    private let cell = Atomic<UInt64>(0)

    /// A counter outside any registry, for tests and for series beyond a registry's cap.
    public init() {}

    /// Adds `amount`. Only the thread that owns this cell may call it.
    @inline(__always)
    public func add(_ amount: UInt64 = 1) {
        cell.store(cell.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    /// Adds `amount` from any thread, with a locked instruction. Never use it together with `add` on one cell.
    public func addShared(_ amount: UInt64 = 1) {
        cell.wrappingAdd(amount, ordering: .relaxed)
    }

    /// The total so far. Any thread.
    public var value: UInt64 { cell.load(ordering: .relaxed) }
}

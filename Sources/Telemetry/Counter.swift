internal import Synchronization

/// A number that only rises, written by one thread and read by whoever scrapes.
///
/// Each shard asks the registry for a cell of its own; the registry adds up the cells of one series. That is why
/// `add` needs no locked instruction: it is a plain load and a plain store of one aligned word.
public final class Counter: Sendable {
    private let cell = Atomic<UInt64>(0)

    /// A counter outside any registry, for tests and for series beyond a registry's cap.
    public init() {}

    /// Adds `amount`; only the thread that owns this cell may call it.
    @inline(__always)
    public func add(_ amount: UInt64 = 1) {
        cell.store(cell.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
    }

    /// Adds `amount` from any thread, at the price of a locked instruction. Never mix with `add` on one cell.
    public func addShared(_ amount: UInt64 = 1) {
        cell.wrappingAdd(amount, ordering: .relaxed)
    }

    /// What was added so far; any thread.
    public var value: UInt64 { cell.load(ordering: .relaxed) }
}

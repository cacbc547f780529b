internal import Synchronization

/// A number that rises and falls, written by one thread and read by whoever scrapes.
public final class Gauge: Sendable {
    /// How the cells of one series become one number.
    public enum Combine: Sendable {
        /// Amounts that add up over shards: queue lengths, connections.
        case sum
        /// Ages and ratios, where the worst shard is the news.
        case max
    }

    private let bits = Atomic<UInt64>(Double(0).bitPattern)

    /// A gauge outside any registry, for tests and for series beyond a registry's cap.
    public init() {}

    /// Replaces the value; only the thread that owns this cell may call it.
    @inline(__always)
    public func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

    /// Replaces the value; only the thread that owns this cell may call it.
    @inline(__always)
    public func set(_ value: Int) { set(Double(value)) }

    /// The cell has no part in its series, which is left out where that holds for all; only the thread that owns this cell
    /// may call it.
    public func setUnknown() { set(Double.nan) }

    /// Adds to the value; only the thread that owns this cell may call it.
    @inline(__always)
    public func add(_ amount: Double) { set(value + amount) }

    /// The value now; any thread.
    public var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }
}

// SPDX-License-Identifier: Apache-2.0
internal import Synchronization

/// A value that rises and falls, written by one thread and read by any scrape.
public final class Gauge: Sendable {
    /// How the cells of one series combine to one value.
    public enum Combine: Sendable {
        /// Amounts that add up over shards: queue lengths, connections.
        case sum
        /// Ages and ratios, where the worst shard matters.
        case max
    }

    private let bits = Atomic<UInt64>(Double(0).bitPattern)

    /// A gauge outside any registry, for tests and for series beyond a registry's cap.
    public init() {}

    /// Sets the value. Only the thread that owns this cell may call it.
    @inline(__always)
    public func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

    /// Sets the value. Only the thread that owns this cell may call it.
    @inline(__always)
    public func set(_ value: Int) { set(Double(value)) }

    /// Excludes the cell from its series; the series disappears if all its cells are excluded. Only the thread that
    /// owns this cell may call it.
    public func setUnknown() { set(Double.nan) }

    /// Adds to the value. Only the thread that owns this cell may call it.
    @inline(__always)
    public func add(_ amount: Double) { set(value + amount) }

    /// The present value. Any thread.
    public var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }
}

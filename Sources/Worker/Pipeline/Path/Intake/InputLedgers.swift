// SPDX-License-Identifier: Apache-2.0
import Kafka

/// The offset ledgers of an intake, and the partitions with a full window.
///
/// `carillon.parked` has a ledger of its own: its records wait for long and must not fill the window of the others.
struct InputLedgers: ~Copyable {
    /// The ledger of all other topics.
    private(set) var main: OffsetLedger
    private var parked: OffsetLedger
    private let classes: [InputClass]
    private(set) var fullPartitions: Set<TopicPartition> = []

    init(_ classes: [InputClass], limits: OffsetLedger.Limits) {
        self.classes = classes
        main = OffsetLedger(limits: limits)
        var limits = limits
        limits.bytes /= 2
        // A window that is full of one app's records has room as soon as these are written again, and others' records are due. They
        // end more slowly than other records: a third of a window keeps the pauses apart.
        limits.minimumPauseNanos = 0
        parked = OffsetLedger(limits: limits)
    }

    var unsettledCount: Int { main.unsettledCount + parked.unsettledCount }
    var unsettledBytes: Int { main.unsettledBytes + parked.unsettledBytes }

    func isParked(_ partition: TopicPartition) -> Bool { classes[partition.topic] == .parked }

    @inline(__always)
    mutating func with<Result>(_ inputClass: InputClass, _ body: (inout OffsetLedger) -> Result) -> Result {
        inputClass == .parked ? body(&parked) : body(&main)
    }

    @inline(__always) @discardableResult
    mutating func with<Result>(_ partition: TopicPartition, _ body: (inout OffsetLedger) -> Result) -> Result {
        with(classes[partition.topic], body)
    }

    /// It is read from its committed offset, or from the beginning of a new epoch.
    mutating func assign(_ partition: TopicPartition, nowNanos: UInt64) {
        with(partition) { $0.assign(partition) }
        fullPartitions.remove(partition)
        applyPressure(on: partition, nowNanos: nowNanos)
    }

    mutating func revoke(_ partition: TopicPartition) {
        with(partition) { $0.revoke(partition) }
        fullPartitions.remove(partition)
    }

    /// At the common byte bound no partition is read, because each would add a batch before it is paused.
    ///
    /// - Returns: whether the set of full partitions has changed.
    mutating func relieve(_ partition: TopicPartition, of assignment: Set<TopicPartition>, nowNanos: UInt64) -> Bool {
        var hasChanged = applyPressure(on: partition, nowNanos: nowNanos)
        if with(partition, { $0.isReadAtByteBound }) {
            let isParked = isParked(partition)
            for other in assignment where self.isParked(other) == isParked {
                if applyPressure(on: other, nowNanos: nowNanos) { hasChanged = true }
            }
        }
        return hasChanged
    }

    @discardableResult
    private mutating func applyPressure(on partition: TopicPartition, nowNanos: UInt64) -> Bool {
        switch with(partition, { $0.pressure(on: partition, nowNanos: nowNanos) }) {
        case .unchanged: return false
        case .pause: fullPartitions.insert(partition)
        case .resume: fullPartitions.remove(partition)
        }
        return true
    }
}

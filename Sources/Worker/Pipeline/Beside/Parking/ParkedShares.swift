// SPDX-License-Identifier: Apache-2.0
import Kafka

/// The parts of the windows of `carillon.parked` that the apps hold.
///
/// The topic is read in order, so an app's backlog would keep others' records from being read. Above the app's share its further
/// records are written again behind the others at once.
struct ParkedShares {
    private struct Held {
        var records = 0
        var bytes = 0
    }

    private var held: [TopicPartition: [String: Held]] = [:]
    /// Bytes that may be written again now.
    private var allowance = 0
    private var filledMs: Int64 = 0

    /// Memory of a recipient that waits.
    static let recipientBytes = 1_024
    /// A record that was written a moment ago has seen all that is before it.
    static let restMs: Int64 = 1_000
    /// The bytes that a shard writes again per second, at most.
    static let bytesPerSecond = 8 << 20

    mutating func add(_ batch: ParkedBatch) {
        held[batch.partition, default: [:]][batch.size.app, default: Held()].records += 1
        held[batch.partition, default: [:]][batch.size.app, default: Held()].bytes += batch.size.bytes
    }

    /// The record is settled, or another one has its work.
    mutating func remove(_ batch: ParkedBatch) {
        guard var one = held[batch.partition]?[batch.size.app] else { return }
        one.records -= 1
        one.bytes -= batch.size.bytes
        held[batch.partition]?[batch.size.app] = one.records > 0 ? one : nil
    }

    /// These partitions go to another owner.
    mutating func forget(_ isGoing: (TopicPartition) -> Bool) { held = held.filter { !isGoing($0.key) } }

    /// - Returns: whether the app has its share of the partition's window, or of the bytes of all partitions.
    func isFull(_ app: String, _ partition: TopicPartition, share: Double, _ limits: PipelineLimits) -> Bool {
        let part = share * Double(limits.window.pausePercent) / 100
        let bytes = held.values.reduce(0) { $0 + ($1[app]?.bytes ?? 0) }
        return Double(held[partition]?[app]?.records ?? 0) >= part * Double(limits.window.records)
            || Double(bytes) >= part * Double(limits.window.bytes / 2)
    }

    /// Takes the bytes of a record that is to be written again from the allowance.
    mutating func mayMove(_ bytes: Int, nowMs: Int64) -> Bool {
        let passedMs = min(1_000, max(0, nowMs &- filledMs))
        allowance = min(Self.bytesPerSecond, allowance + Int(passedMs) * Self.bytesPerSecond / 1_000)
        filledMs = nowMs
        guard allowance > 0 else { return false }
        allowance -= bytes + Self.recipientBytes
        return true
    }
}

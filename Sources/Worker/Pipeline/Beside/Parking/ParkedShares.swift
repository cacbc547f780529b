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

        /// Nothing left is nil.
        mutating func change(_ sign: Int, _ size: Int) -> Held? {
            records += sign
            bytes += sign * size
            return records > 0 ? self : nil
        }
    }

    private var held: [TopicPartition: [String: Held]] = [:]
    /// Of all partitions.
    private var total: [String: Held] = [:]
    /// Bytes that may be written again now.
    private var allowance = 0
    private var filledMs: Int64 = 0

    /// Memory of a recipient that waits.
    static let recipientBytes = 1_024
    /// A record that was written a moment ago has seen all that is before it.
    static let restMs: Int64 = 1_000
    /// The bytes that a shard writes again per second, at most.
    static let bytesPerSecond = 8 << 20

    mutating func add(_ batch: ParkedBatch) { change(batch, 1) }

    /// The record is settled, or another one has its work.
    mutating func remove(_ batch: ParkedBatch) {
        if held[batch.partition]?[batch.size.app] != nil { change(batch, -1) }
    }

    private mutating func change(_ batch: ParkedBatch, _ sign: Int) {
        let (app, bytes) = batch.size
        var (here, all) = (held[batch.partition]?[app] ?? Held(), total[app] ?? Held())
        held[batch.partition, default: [:]][app] = here.change(sign, bytes)
        total[app] = all.change(sign, bytes)
    }

    /// These partitions go to another owner.
    mutating func forget(_ isGoing: (TopicPartition) -> Bool) {
        held = held.filter { !isGoing($0.key) }
        total = [:]
        for (app, one) in held.values.joined() {
            total[app, default: Held()].records += one.records
            total[app, default: Held()].bytes += one.bytes
        }
    }

    /// - Returns: whether the app has its share of the partition's window, or of the bytes of all partitions. If all apps together have
    ///   so much that a paused partition stays paused, the app with most has too much.
    func isFull(_ app: String, _ partition: TopicPartition, share: Double, _ limits: PipelineLimits) -> Bool {
        let window = limits.window
        func isFull(_ held: [String: Held], _ size: KeyPath<Held, Int>, of limit: Int) -> Bool {
            let own = held[app]?[keyPath: size] ?? 0
            if Double(own) >= share * Double(window.pausePercent) / 100 * Double(limit) { return true }
            let (all, most) = held.values.reduce((0, 0)) { ($0.0 + $1[keyPath: size], max($0.1, $1[keyPath: size])) }
            return own > 0 && own == most && Double(all + 1) >= Double(window.resumePercent) / 100 * Double(limit)
        }
        return isFull(held[partition] ?? [:], \.records, of: window.records)
            || isFull(total, \.bytes, of: window.bytes / 2)
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

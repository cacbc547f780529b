// SPDX-License-Identifier: Apache-2.0
import Kafka
import PushCore
import Synchronization

/// Records that shards of this process have written to `carillon.parked` and none has read yet, by their conversation: later work
/// of their recipients may be in the topic already, and waits until these are read.
///
/// From any thread. The lock is taken only while something is on the way, and never for a push that is not parked.
final class ParkedOnTheWay: Sendable {
    private struct Record {
        /// Identifies the record among those of its conversation.
        var mark: UInt64
        var source: EventSource
        /// Hashes of its recipients.
        var users: Set<UInt64>
        /// A time of the steady clock, which all shards share.
        var untilMs: Int64
        /// The partition that it was read from before; nil if it is written for the first time.
        var from: TopicPartition?
    }

    private let lines = Mutex<[UInt64: [Record]]>([:])
    private let lineCount = Atomic(0)
    private static let linesMax = 16_384
    /// The mark of a record that is not written yet.
    private static let unwritten: UInt64 = 0
    /// A full window delays the reading of the topic. Where another process reads the record, nobody waits longer for it here.
    static let waitMs: Int64 = 60_000
    /// The process that writes a record again also reads it, unless its partition goes.
    static let againMs: Int64 = 900_000

    private func change(_ body: (inout [UInt64: [Record]]) -> Void) {
        lines.withLock {
            body(&$0)
            lineCount.store($0.count, ordering: .releasing)
        }
    }

    private var isEmpty: Bool { lineCount.load(ordering: .acquiring) == 0 }

    private static func line(_ record: ParkedRecord) -> UInt64 {
        DeviceKey.make(app: record.app, uid: record.conversation, device: "")
    }

    private static func user(_ record: ParkedRecord) -> UInt64 {
        DeviceKey.make(
            app: record.app, uid: record.uid ?? "", device: record.cause.holdsDevice ? "" : record.cause.rawValue)
    }

    private static func mark(_ record: Deferred) -> UInt64? {
        record.open.first.map { first in
            DeviceKey.make(app: first.id, uid: first.uid ?? "", device: String(record.open.count))
        }
    }

    func add(_ record: Deferred, from partition: TopicPartition?, nowMs: Int64) {
        guard let first = record.open.first, let mark = Self.mark(record), first.uid != nil, first.source.offset >= 0
        else { return }
        let users = Set(record.open.map(Self.user))
        let untilMs = nowMs &+ (partition == nil ? Self.waitMs : Self.againMs)
        change { lines in
            if lines.count >= Self.linesMax { return }
            lines[Self.line(first)]?.removeAll { $0.mark == Self.unwritten && $0.source == first.source }
            lines[Self.line(first), default: []].append(
                Record(mark: mark, source: first.source, users: users, untilMs: untilMs, from: partition))
        }
    }

    /// A recipient waits in memory for the record of its event.
    func add(_ record: ParkedRecord, nowMs: Int64) {
        if record.source.offset < 0 { return }
        let (user, untilMs) = (Self.user(record), nowMs &+ Self.againMs)
        change { lines in
            let line = Self.line(record)
            let known = lines[line]?.firstIndex { $0.mark == Self.unwritten && $0.source == record.source }
            if let known {
                lines[line]?[known].users.insert(user)
                lines[line]?[known].untilMs = untilMs
            } else if lines.count < Self.linesMax {
                lines[line, default: []].append(
                    Record(mark: Self.unwritten, source: record.source, users: [user], untilMs: untilMs))
            }
        }
    }

    /// Its recipients leave memory with their partition, for the next owner.
    func forget(_ source: EventSource, of record: ParkedRecord) {
        if isEmpty { return }
        change { lines in
            guard var left = lines[Self.line(record)] else { return }
            left.removeAll { $0.mark == Self.unwritten && $0.source == source }
            lines[Self.line(record)] = left.isEmpty ? nil : left
        }
    }

    /// It was read.
    func remove(_ record: Deferred) {
        guard !isEmpty, let first = record.open.first, let mark = Self.mark(record) else { return }
        change { lines in
            guard var left = lines[Self.line(first)] else { return }
            if let place = left.firstIndex(where: { $0.mark == mark }) { left.remove(at: place) }
            lines[Self.line(first)] = left.isEmpty ? nil : left
        }
    }

    /// Once a second.
    func sweep(nowMs: Int64) { keep { $0.untilMs > nowMs } }

    /// These partitions go to another process, which reads the records that were written again.
    func forget(_ partitions: (TopicPartition) -> Bool) { keep { !($0.from.map(partitions) ?? false) } }

    private func keep(_ isKept: (Record) -> Bool) {
        if isEmpty { return }
        change { lines in
            lines = lines.compactMapValues { records in
                let left = records.filter(isKept)
                return left.isEmpty ? nil : left
            }
        }
    }

    /// Whether an earlier event of the recipient's conversation, from the same partition, is on the way.
    ///
    /// - Parameter onlyInMemory: whether its record must not be written yet.
    func hasEarlier(than record: ParkedRecord, onlyInMemory: Bool = false, nowMs: Int64) -> Bool {
        if isEmpty { return false }
        return lines.withLock { lines in
            lines[Self.line(record)]?.contains {
                $0.untilMs > nowMs && $0.source.partition == record.source.partition
                    && $0.source.offset < record.source.offset && (!onlyInMemory || $0.mark == Self.unwritten)
                    && $0.users.contains(Self.user(record))
            } ?? false
        }
    }
}

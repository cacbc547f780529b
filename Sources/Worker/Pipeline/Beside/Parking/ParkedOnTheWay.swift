// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// Recipients that shards of this process have parked and none has read yet, by their line (`ParkedWheel.Key`): later events of the
/// user may be in the topic already, and wait until these are read.
///
/// From any thread. The lock is taken only while something is on the way, and never for a push that is not parked.
final class ParkedOnTheWay: Sendable {
    private struct Record {
        var id: String
        var source: EventSource
        /// A time of the steady clock, which all shards share.
        var untilMs: Int64
    }

    private let lines = Mutex<[ParkedWheel.Key: [Record]]>([:])
    private let lineCount = Atomic(0)
    private static let linesMax = 16_384
    /// A full window delays the reading of the topic. Where another process reads the record, nobody waits longer for it here.
    static let waitMs: Int64 = 60_000

    private func change(_ body: (inout [ParkedWheel.Key: [Record]]) -> Void) {
        lines.withLock {
            body(&$0)
            lineCount.store($0.count, ordering: .releasing)
        }
    }

    private var isEmpty: Bool { lineCount.load(ordering: .acquiring) == 0 }

    func add(_ record: ParkedRecord, _ line: ParkedWheel.Key, nowMs: Int64) {
        if record.uid == nil || record.source.offset < 0 { return }
        change { lines in
            if lines.count >= Self.linesMax { return }
            lines[line, default: []].append(
                Record(id: record.id, source: record.source, untilMs: nowMs &+ Self.waitMs))
        }
    }

    /// A record was read.
    func remove(_ record: ParkedRecord, _ line: ParkedWheel.Key) {
        if isEmpty { return }
        change { lines in
            guard var left = lines[line] else { return }
            left.removeAll { $0.id == record.id }
            lines[line] = left.isEmpty ? nil : left
        }
    }

    /// Once a second.
    func sweep(nowMs: Int64) {
        if isEmpty { return }
        change { lines in
            lines = lines.compactMapValues { records in
                let left = records.filter { $0.untilMs > nowMs }
                return left.isEmpty ? nil : left
            }
        }
    }

    /// An earlier event of the record's line and partition is on the way.
    func hasEarlier(than record: ParkedRecord, _ line: ParkedWheel.Key, nowMs: Int64) -> Bool {
        if isEmpty { return false }
        return lines.withLock { lines in
            lines[line]?.contains {
                $0.untilMs > nowMs && $0.source.partition == record.source.partition
                    && $0.source.offset < record.source.offset
            } ?? false
        }
    }
}

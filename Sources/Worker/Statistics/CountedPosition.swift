// SPDX-License-Identifier: Apache-2.0
import Kafka

/// How far a partition's outcomes are in the statistics in Redis: all records below an offset, and the listed ones beyond it.
///
/// As text: `<offset> <newest time> <list>`; the list as a commit's metadata has it.
struct CountedPosition: Equatable {
    var offset: Int64
    /// The newest time of the records read so far, Unix ms; 0: not known. A later record belongs to the next epoch of the
    /// partition.
    var newestMs: Int64
    var settled: SettledOffsets?

    init(_ progress: PartitionOffset, newestMs: Int64?) {
        offset = progress.offset ?? 0
        self.newestMs = newestMs ?? 0
        settled = progress.settled
    }

    /// - Returns: nil for any other text.
    init?(_ text: String) {
        let words = text.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard words.count == 3, let offset = Int64(words[0]), let newestMs = Int64(words[1]), offset >= 0 else {
            return nil
        }
        self.offset = offset
        self.newestMs = newestMs
        settled = Array(words[2].utf8).withUnsafeBytes { SettledOffsets(metadata: $0, committed: offset) }
    }

    var text: String {
        let list = settled.map { String(decoding: $0.metadata(), as: UTF8.self) } ?? ""
        return "\(offset) \(newestMs) \(list)"
    }

    /// What one of the two contains.
    func union(_ other: CountedPosition) -> CountedPosition {
        var far = offset >= other.offset ? self : other
        let near = offset >= other.offset ? other : self
        if let nearSettled = near.settled {
            var settled = far.settled ?? SettledOffsets(base: far.offset)
            settled.formUnion(nearSettled)
            far.settled = settled.isEmpty ? nil : settled
        }
        far.newestMs = min(newestMs, other.newestMs) == 0 ? 0 : max(newestMs, other.newestMs)
        return far
    }

    func contains(_ offset: Int64) -> Bool { offset < self.offset || settled?.contains(offset) ?? false }

    /// A record of this time was read after the position was written: it is of another epoch if the position contains it.
    func isOlder(than timeMs: Int64?) -> Bool { newestMs > 0 && timeMs ?? 0 > newestMs }
}

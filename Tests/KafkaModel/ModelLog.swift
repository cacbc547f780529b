// SPDX-License-Identifier: Apache-2.0
package import Kafka

/// A record of a modelled topic.
package struct ModelRecord: Equatable {
    package var key: [UInt8]?
    package var value: [UInt8]?
    package var headers: [KafkaHeader]
    /// Unix ms; nil: the broker's time of appending.
    package var createdMs: Int64?
    /// Given by the broker.
    package fileprivate(set) var offset: Int64 = -1
    package fileprivate(set) var timestampMs: Int64 = 0
    package fileprivate(set) var isAppendTime = false

    package init(key: [UInt8]?, value: [UInt8]?, headers: [KafkaHeader] = [], createdMs: Int64? = nil) {
        self.key = key
        self.value = value
        self.headers = headers
        self.createdMs = createdMs
    }

    var byteCount: Int {
        headers.reduce((key?.count ?? 0) + (value?.count ?? 0)) { $0 + $1.name.utf8.count + ($1.value?.count ?? 0) }
    }
}

/// A topic of the model.
final class ModelTopic {
    private(set) var partitions: [ModelLog]
    /// `message.timestamp.type=LogAppendTime`.
    let usesAppendTime: Bool
    /// Each record is refused with this code.
    var refusal: Int32?
    /// `max.message.bytes`.
    var bytesMax = 1 << 20

    init(partitions: Int, usesAppendTime: Bool) {
        self.partitions = (0..<partitions).map { _ in ModelLog() }
        self.usesAppendTime = usesAppendTime
    }

    func add(partitions count: Int) { for _ in 0..<count { partitions.append(ModelLog()) } }
}

/// The log of a partition.
final class ModelLog {
    private(set) var start: Int64 = 0
    private(set) var end: Int64 = 0
    private var kept: [ModelRecord] = []
    /// Index of the oldest kept record.
    private var first = 0
    var isLeaderless = false
    /// Fetches that wait for a change, in the order of their arrival.
    private var readers: [() -> Void] = []
    /// By producer: the number of its newest batch, and the offset of that batch's first record.
    private var newestBatches: [UInt64: (number: UInt64, offset: Int64)] = [:]

    var records: ArraySlice<ModelRecord> { kept[first...] }

    @discardableResult
    func append(_ record: ModelRecord, wallMs: Int64, by topic: ModelTopic?) -> Int64 {
        var record = record
        record.offset = end
        record.isAppendTime = topic?.usesAppendTime ?? false
        record.timestampMs = record.isAppendTime ? wallMs : record.createdMs ?? wallMs
        kept.append(record)
        end += 1
        wakeReaders()
        return record.offset
    }

    /// The offset at which the broker has this batch already; nil if it is new.
    func offset(ofBatch number: UInt64, of producer: UInt64) -> Int64? {
        newestBatches[producer].flatMap { $0.number == number ? $0.offset : nil }
    }

    func noteBatch(_ number: UInt64, of producer: UInt64, at offset: Int64) {
        newestBatches[producer] = (number, offset)
    }

    /// At most `max` records from `offset` on; nil if the log does not have that offset.
    func read(from offset: Int64, max: Int) -> ArraySlice<ModelRecord>? {
        guard offset >= start, offset <= end else { return nil }
        var low = first
        var high = kept.count
        while low < high {
            let middle = (low + high) / 2
            if kept[middle].offset < offset { low = middle + 1 } else { high = middle }
        }
        return kept[low..<min(kept.count, low + max)]
    }

    /// The offset that a reader of these records fetches next: that of the next record, or the end.
    func next(after records: ArraySlice<ModelRecord>, from offset: Int64) -> Int64 {
        kept.indices.contains(records.endIndex) ? records.last.map { $0.offset + 1 } ?? offset : end
    }

    func trim(to offset: Int64) {
        start = min(max(offset, start), end)
        while first < kept.count, kept[first].offset < start { first += 1 }
        if first > 1024, first > kept.count / 2 {
            kept.removeFirst(first)
            first = 0
        }
        wakeReaders()
    }

    func cut(to offset: Int64) {
        end = max(0, min(offset, end))
        start = min(start, end)
        while kept.count > first, let last = kept.last, last.offset >= end { kept.removeLast() }
        newestBatches = [:]
        wakeReaders()
    }

    func clear() {
        (start, end, first) = (0, 0, 0)
        kept = []
        newestBatches = [:]
        wakeReaders()
    }

    func skip(_ count: Int64) {
        end += count
        wakeReaders()
    }

    func waitForChange(_ body: @escaping () -> Void) { readers.append(body) }

    func wakeReaders() {
        let waiting = readers
        readers = []
        for reader in waiting { reader() }
    }
}

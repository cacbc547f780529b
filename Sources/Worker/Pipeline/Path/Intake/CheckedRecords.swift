// SPDX-License-Identifier: Apache-2.0
/// Records of the events topic that are checked and not read yet (`EventReader.check`), at most `EventReader.checkedMax`.
struct CheckedRecords {
    private struct Record {
        let origin: EventJob.Origin
        let hasKey: Bool
        /// Where its value ends in `bytes`, and its key, which follows.
        let valueEnd: Int
        let end: Int
    }

    private var records: [Record] = []
    private var bytes: [UInt8] = []

    var count: Int { records.count }

    mutating func append(_ value: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer?, _ origin: EventJob.Origin) {
        bytes.append(contentsOf: value)
        let valueEnd = bytes.count
        if let key { bytes.append(contentsOf: key) }
        records.append(Record(origin: origin, hasKey: key != nil, valueEnd: valueEnd, end: bytes.count))
    }

    /// Passes on each with its place, its value and its key.
    mutating func takeAll(
        _ next: (Int, UnsafeRawBufferPointer, UnsafeRawBufferPointer?, EventJob.Origin) -> Void
    ) {
        bytes.withUnsafeBytes { all in
            var start = 0
            for (place, record) in records.enumerated() {
                let value = UnsafeRawBufferPointer(rebasing: all[start..<record.valueEnd])
                let key = record.hasKey ? UnsafeRawBufferPointer(rebasing: all[record.valueEnd..<record.end]) : nil
                next(place, value, key, record.origin)
                start = record.end
            }
        }
        removeAll()
    }

    mutating func removeAll() {
        records.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: true)
    }
}

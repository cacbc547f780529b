// SPDX-License-Identifier: Apache-2.0
/// When the records of one partition were written, by offset: converts a lag in records to seconds.
///
/// Pure. A mark (offset, ms) means that records at or beyond the offset were written at that moment or later: the
/// timestamp of the record with that offset, or the moment at which the partition ended there. The number of marks is
/// bounded; where marks are dropped, an age is too high, never too low.
struct OffsetTimes {
    struct Mark: Equatable {
        var offset: Int64
        /// Unix ms.
        var ms: Int64
    }

    /// By rising offset.
    private(set) var marks: [Mark] = []
    private static let marksMax = 128

    /// The later of two times for one offset is more accurate.
    mutating func note(offset: Int64, ms: Int64) {
        guard offset >= 0, ms > 0 else { return }
        let index = marks.firstIndex { $0.offset >= offset } ?? marks.count
        if index < marks.count, marks[index].offset == offset {
            marks[index].ms = max(marks[index].ms, ms)
            return
        }
        marks.insert(Mark(offset: offset, ms: ms), at: index)
        if marks.count > Self.marksMax { thin() }
    }

    /// Drops marks that are useless for `offset` and above.
    mutating func forget(below offset: Int64) {
        let useless = marks.prefix { $0.offset <= offset }.count - 1
        if useless > 0 { marks.removeFirst(useless) }
    }

    /// The earliest possible time of the record at `offset`, Unix ms. If unknown, the earliest known time of a later
    /// record; nil if there is none.
    func ms(at offset: Int64) -> Int64? { (marks.last { $0.offset <= offset } ?? marks.first)?.ms }

    /// Drops every other mark, except the first and the last.
    private mutating func thin() {
        let last = marks.count - 1
        var index = -1
        marks.removeAll { _ in
            index += 1
            return index % 2 == 1 && index != last
        }
    }
}

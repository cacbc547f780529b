/// From when on the records of one partition were written, by offset: what a lag in records is in seconds.
///
/// Pure. A mark (offset, ms) says that records at or beyond the offset were written at that moment or later: the
/// timestamp of the record with that offset, or the moment at which the partition ended there. Kept for a bounded number
/// of offsets; where marks are left out, an age comes out somewhat higher, never lower.
struct OffsetTimes {
    struct Mark: Equatable {
        var offset: Int64
        /// Unix ms.
        var ms: Int64
    }

    /// By rising offset.
    private(set) var marks: [Mark] = []
    private static let marksMax = 128

    /// Of two moments for one offset the later one is nearer to the truth.
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

    /// Forgets what tells nothing of `offset` and those beyond it.
    mutating func forget(below offset: Int64) {
        let useless = marks.prefix { $0.offset <= offset }.count - 1
        if useless > 0 { marks.removeFirst(useless) }
    }

    /// The moment since which the record at `offset` may have been there, Unix ms. Where nothing is known of it, the
    /// earliest moment known of a later one; nil: nothing is known.
    func ms(at offset: Int64) -> Int64? { (marks.last { $0.offset <= offset } ?? marks.first)?.ms }

    /// Leaves every other mark out; the first and the last stay.
    private mutating func thin() {
        let last = marks.count - 1
        var index = -1
        marks.removeAll { _ in
            index += 1
            return index % 2 == 1 && index != last
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
/// Counts outcomes in hundredths of a second, and records the times of events in between. Pure.
struct OutcomeSeries: Sendable, Equatable {
    /// Counters per second.
    static let resolution = 100
    /// Marks closer than this to the previous mark belong to the same event, in hundredths of a second.
    private static let sameEvent = 50

    private(set) var counts: [Int] = []
    /// Index of the counter at each event.
    private(set) var marks: [Int] = []

    init(counts: [Int] = [], marks: [Int] = []) {
        self.counts = counts
        self.marks = marks
    }

    /// Counts an outcome at a time since the start.
    mutating func count(atNanos nanos: UInt64) {
        let place = Int(nanos / 10_000_000)
        while counts.count <= place { counts.append(0) }
        counts[place] += 1
    }

    /// Records an event at a time since the start. Reports of one event by many connections count once.
    mutating func mark(atNanos nanos: UInt64) {
        let place = Int(nanos / 10_000_000)
        if let last = marks.last, place - last < Self.sameEvent { return }
        marks.append(place)
    }

    /// Drops later counts: the rest of a load after its time does not show its pace.
    mutating func cut(atSeconds seconds: Double) {
        let end = Int(seconds * Double(Self.resolution))
        while counts.count < end { counts.append(0) }
        counts.removeLast(counts.count - end)
        marks.removeAll { $0 >= end }
    }

    /// Outcomes per second between two times in seconds; 0 for an empty range.
    func perSecond(from first: Double, to last: Double = .infinity) -> Double {
        let places = range(first, last)
        return places.isEmpty ? 0 : Double(sum(places) * Self.resolution) / Double(places.count)
    }

    /// Outcomes per second in the second after each event, and in the remaining time; nil if either is empty.
    func aroundMarks(from first: Double) -> (with: Double, without: Double)? {
        let places = range(first, .infinity)
        var (with, withPlaces, rest, restPlaces) = (0, 0, 0, 0)
        for place in places {
            if marks.contains(where: { place >= $0 && place < $0 + Self.resolution }) {
                with += counts[place]
                withPlaces += 1
            } else {
                rest += counts[place]
                restPlaces += 1
            }
        }
        guard withPlaces > 0, restPlaces > 0 else { return nil }
        let scale = Double(Self.resolution)
        return (Double(with) * scale / Double(withPlaces), Double(rest) * scale / Double(restPlaces))
    }

    /// Outcomes in the second that begins `offset` seconds after each event. Incomplete seconds are skipped.
    func seconds(afterMarks offset: Double) -> [Double] {
        marks.compactMap { mark in
            let begin = Double(mark) / Double(Self.resolution) + offset
            return begin + 1 <= Double(counts.count) / Double(Self.resolution)
                ? perSecond(from: begin, to: begin + 1) : nil
        }
    }

    /// The pace in each whole stretch of `length` seconds, without its first `skipping` seconds, which still contain
    /// outcomes of the previous stretch.
    func stretches(length: Double, skipping: Double) -> [Double] {
        let count = Int(Double(counts.count) / Double(Self.resolution) / length + 1e-9)
        return (0..<count).map { perSecond(from: Double($0) * length + skipping, to: Double($0 + 1) * length) }
    }

    /// For alternating loads (even stretches one load, odd stretches the other): the pace of each odd stretch in
    /// percent of the mean of its two neighbours. A drift of the machine's speed thus cancels out.
    ///
    /// - Parameter warmUp: the number of stretches to skip at the beginning.
    static func alternation(_ paces: [Double], warmUp: Int) -> [Double] {
        stride(from: 1, to: paces.count - 1, by: 2).filter { $0 > warmUp }.map { number in
            BenchFigure.share(paces[number], of: (paces[number - 1] + paces[number + 1]) / 2)
        }
    }

    private func range(_ first: Double, _ last: Double) -> Range<Int> {
        let scale = Double(Self.resolution)
        let low = min(counts.count, max(0, Int((first * scale).rounded())))
        let high = last.isFinite ? min(counts.count, max(0, Int((last * scale).rounded()))) : counts.count
        return low..<max(low, high)
    }

    private func sum(_ places: Range<Int>) -> Int { counts[places].reduce(0, +) }
}

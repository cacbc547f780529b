/// When outcomes came, counted in hundredths of a second, and when something happened meanwhile. Pure.
struct OutcomeSeries: Sendable, Equatable {
    /// Counts in a second.
    static let resolution = 100
    /// Marks closer than this to the one before are of the same event, in hundredths of a second.
    private static let sameEvent = 50

    private(set) var counts: [Int] = []
    /// Which counts the events fell into.
    private(set) var marks: [Int] = []

    init(counts: [Int] = [], marks: [Int] = []) {
        self.counts = counts
        self.marks = marks
    }

    /// An outcome, so long after the start.
    mutating func count(atNanos nanos: UInt64) {
        let place = Int(nanos / 10_000_000)
        while counts.count <= place { counts.append(0) }
        counts[place] += 1
    }

    /// An event, so long after the start; one that many connections tell of is one.
    mutating func mark(atNanos nanos: UInt64) {
        let place = Int(nanos / 10_000_000)
        if let last = marks.last, place - last < Self.sameEvent { return }
        marks.append(place)
    }

    /// Forgets what came later: a load's rest after its time says nothing of its pace.
    mutating func cut(atSeconds seconds: Double) {
        let end = Int(seconds * Double(Self.resolution))
        while counts.count < end { counts.append(0) }
        counts.removeLast(counts.count - end)
        marks.removeAll { $0 >= end }
    }

    /// Outcomes per second between two times in seconds; 0 where nothing lies between them.
    func perSecond(from first: Double, to last: Double = .infinity) -> Double {
        let places = range(first, last)
        return places.isEmpty ? 0 : Double(sum(places) * Self.resolution) / Double(places.count)
    }

    /// Outcomes per second in the second that begins with each event, and in all the rest; nil without one of the two.
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

    /// Outcomes in the second that begins so long after each event, events without a whole one left out.
    func seconds(afterMarks offset: Double) -> [Double] {
        marks.compactMap { mark in
            let begin = Double(mark) / Double(Self.resolution) + offset
            return begin + 1 <= Double(counts.count) / Double(Self.resolution)
                ? perSecond(from: begin, to: begin + 1) : nil
        }
    }

    /// The pace in each whole stretch of `length` seconds, counted from the start, without the `skipping` seconds at its
    /// begin that still belong to the one before.
    func stretches(length: Double, skipping: Double) -> [Double] {
        let count = Int(Double(counts.count) / Double(Self.resolution) / length + 1e-9)
        return (0..<count).map { perSecond(from: Double($0) * length + skipping, to: Double($0 + 1) * length) }
    }

    /// Where loads alternate, an even stretch of the one and an odd one of the other: the pace of each odd stretch as a
    /// part of the mean of its two neighbours, in percent. So a machine that drifts spoils no comparison.
    ///
    /// - Parameter warmUp: so many stretches at the begin do not count.
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

/// How many pushes may be in flight: found by trying, since Apple tells no rate and a slow server is worse when pressed.
///
/// A fast start doubles per round trip until the first sign of trouble; then a constant step up per round trip in which
/// the limit was reached, and a factor down on trouble, at most once per round trip. Round trips count only where the
/// push was accepted: a rejection is often quicker. Rejections, the back-off of one token and streams refused after
/// GOAWAY say nothing of load. Pure; times are injected.
struct InFlightLimiter: Equatable {
    enum Trouble: Equatable {
        /// No answer in time, 503, or a connection that stalls.
        case slow
        /// GOAWAY with an error: the peer is angry.
        case goaway
    }

    /// Slower than this above the usual is a sign; less is our own loop or the network's noise.
    private static let noticeableNanos = 20_000_000.0

    private(set) var limit: Int
    private var decreases = 0
    private let ceiling: Int
    private let start: Int
    private let step: Int
    private let isFixed: Bool
    private var isStarting = true
    private var meanNanos = 0.0
    private var sumNanos: UInt64 = 0
    private var count: UInt64 = 0
    private var windowNanos: UInt64 = 0
    private var cutNanos: UInt64 = 0
    private var wasReached = false

    /// - Parameter start: the first limit; at or above the ceiling, nothing is ever tried and the ceiling holds.
    init(start: Int, ceiling: Int) {
        self.ceiling = max(ceiling, 1)
        self.start = start
        limit = min(max(start, 1), self.ceiling)
        step = max(1, self.ceiling / 200)
        isFixed = start >= ceiling
    }

    /// Times it stepped back since the last call, for the metric.
    mutating func takeDecreases() -> Int {
        defer { decreases = 0 }
        return decreases
    }

    /// A push waited because the limit is reached.
    mutating func reached() { wasReached = true }

    /// A push was accepted after a round trip of so long.
    mutating func accepted(tripNanos: UInt64, nowNanos: UInt64) {
        if isFixed { return }
        sumNanos &+= tripNanos
        count &+= 1
        if nowNanos &- windowNanos >= UInt64(max(meanNanos, 1_000_000)) { closeWindow(nowNanos) }
    }

    private mutating func closeWindow(_ nowNanos: UInt64) {
        let trip = Double(sumNanos) / Double(count)
        (sumNanos, count, windowNanos) = (0, 0, nowNanos)
        defer { wasReached = false }
        guard meanNanos > 0 else {
            meanNanos = trip
            return grow()
        }
        let over = trip - meanNanos
        let isSlow = over > Self.noticeableNanos && trip > 1.5 * meanNanos
        // What is quicker is the usual soon. What is slower becomes it only where the queue cannot be ours: with the limit
        // not reached, or with so few in flight as one begins with. Else the limit would creep past the knee.
        let weight = over < 0 ? 0.3 : !wasReached ? 0.05 : limit <= start ? 0.1 : 0
        meanNanos += weight * over
        // Slowness alone, without a word of the server, does not go below where one would begin.
        if isSlow, limit > start { return cut(.slow, nowNanos: nowNanos) }
        if !isSlow { grow() }
    }

    private mutating func grow() {
        guard wasReached else { return }
        limit = min(ceiling, isStarting ? limit * 2 : limit + step)
    }

    /// Trouble; answers of one round trip tell of the same one.
    mutating func cut(_ trouble: Trouble, nowNanos: UInt64) {
        guard !isFixed, nowNanos &- cutNanos >= UInt64(max(meanNanos, 10_000_000)) || cutNanos == 0 else { return }
        cutNanos = nowNanos
        isStarting = false
        decreases += 1
        limit = max(1, trouble == .slow ? limit * 9 / 10 : limit / 2)
    }
}

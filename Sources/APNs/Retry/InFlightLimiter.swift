// SPDX-License-Identifier: Apache-2.0
/// The number of pushes in flight, found by trying, because Apple documents no rate and pressing a slow server makes it
/// worse.
///
/// A fast start doubles per round trip until the first sign of overload. Then a constant increase per round trip in
/// which the limit was reached, and a factor down on overload, at most once per round trip. Round trips count only for
/// accepted pushes, because a rejection is often quicker. Rejections, the back-off of one token and streams refused
/// after GOAWAY do not indicate load. Pure; times are injected.
struct InFlightLimiter: Equatable {
    enum Trouble: Equatable {
        /// No answer in time, 503, or a stalled connection.
        case slow
        /// GOAWAY with an error.
        case goaway
    }

    /// Only a slowdown above this is a sign; less may come from our own loop or the network.
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

    /// - Parameter start: the first limit. At or above the ceiling the limit is fixed at the ceiling.
    init(start: Int, ceiling: Int) {
        self.ceiling = max(ceiling, 1)
        self.start = start
        limit = min(max(start, 1), self.ceiling)
        step = max(1, self.ceiling / 200)
        isFixed = start >= ceiling
    }

    /// Number of decreases since the last call, for the metric.
    mutating func takeDecreases() -> Int {
        defer { decreases = 0 }
        return decreases
    }

    /// A push waited because the limit is reached.
    mutating func reached() { wasReached = true }

    /// A push was accepted after this round trip.
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
        // Faster trips adjust the average quickly. Slower trips adjust it only if the queue cannot be ours: the limit
        // was not reached, or only the initial number is in flight. Otherwise the limit would rise past the knee.
        let weight = over < 0 ? 0.3 : !wasReached ? 0.05 : limit <= start ? 0.1 : 0
        meanNanos += weight * over
        // Slowness alone, without an answer of the server, never reduces the limit below its start.
        if isSlow, limit > start { return cut(.slow, nowNanos: nowNanos) }
        if !isSlow { grow() }
    }

    private mutating func grow() {
        guard wasReached else { return }
        limit = min(ceiling, isStarting ? limit * 2 : limit + step)
    }

    /// Overload. Answers of one round trip indicate the same overload.
    mutating func cut(_ trouble: Trouble, nowNanos: UInt64) {
        guard !isFixed, nowNanos &- cutNanos >= UInt64(max(meanNanos, 10_000_000)) || cutNanos == 0 else { return }
        cutNanos = nowNanos
        isStarting = false
        decreases += 1
        limit = max(1, trouble == .slow ? limit * 9 / 10 : limit / 2)
    }
}

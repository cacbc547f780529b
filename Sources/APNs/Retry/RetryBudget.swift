/// How many tries beyond the first may be made, per lane: a share of what succeeds, so that retries cannot become a storm.
///
/// A success earns a tenth of a try, and time earns a few a second; a retry costs one. What is provably unprocessed, or
/// was lost with its connection, is sent again for nothing: neither tells of a server that wants less. A try that cannot
/// be paid waits; it is not dropped.
struct RetryBudget {
    // In tenths of a try.
    private static let price = 10
    private let most: Int
    private let nanosPerTenth: UInt64
    private var tenths: [Int]
    private var filledNanos: UInt64

    /// - Parameter inFlightMax: a purse pays for as many, or for two hundred, and is filled in twenty seconds.
    init(inFlightMax: Int, nowNanos: UInt64) {
        most = max(200, inFlightMax) * Self.price
        nanosPerTenth = UInt64(20_000_000_000 / min(max(most, 1), 20_000_000))
        tenths = Array(repeating: most, count: PushLane.allCases.count)
        filledNanos = nowNanos
    }

    /// Tries that could be made now.
    func left(_ lane: PushLane) -> Int { tenths[Int(lane.rawValue)] / Self.price }

    mutating func succeeded(_ lane: PushLane) {
        let index = Int(lane.rawValue)
        if tenths[index] < most { tenths[index] += 1 }
    }

    /// False: not now.
    mutating func take(_ lane: PushLane, nowNanos: UInt64) -> Bool {
        let earned = Int(clamping: (nowNanos &- filledNanos) / nanosPerTenth)
        if earned > 0 {
            filledNanos = nowNanos
            for index in tenths.indices { tenths[index] = min(most, tenths[index] + min(earned, most)) }
        }
        let index = Int(lane.rawValue)
        guard tenths[index] >= Self.price else { return false }
        tenths[index] -= Self.price
        return true
    }
}

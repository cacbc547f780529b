// SPDX-License-Identifier: Apache-2.0
/// The number of retries per lane: a share of the successes, so that retries cannot become a storm.
///
/// A success earns a tenth of a retry, and time earns a few per second; a retry costs one. Pushes that were certainly
/// unprocessed, or were lost with their connection, are sent again for free, because neither indicates overload. A
/// retry without budget waits; it is not dropped.
struct RetryBudget {
    // In tenths of a retry.
    private static let price = 10
    private let most: Int
    private let nanosPerTenth: UInt64
    private var tenths: [Int]
    private var filledNanos: UInt64

    /// - Parameter inFlightMax: the budget holds as many retries, or two hundred, and fills up in twenty seconds.
    init(inFlightMax: Int, nowNanos: UInt64) {
        most = max(200, inFlightMax) * Self.price
        nanosPerTenth = UInt64(20_000_000_000 / min(max(most, 1), 20_000_000))
        tenths = Array(repeating: most, count: PushLane.allCases.count)
        filledNanos = nowNanos
    }

    /// Retries that could be made now.
    func left(_ lane: PushLane) -> Int { tenths[Int(lane.rawValue)] / Self.price }

    mutating func succeeded(_ lane: PushLane) {
        let index = Int(lane.rawValue)
        if tenths[index] < most { tenths[index] += 1 }
    }

    /// - Returns: false if there is no budget now.
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

// SPDX-License-Identifier: Apache-2.0
/// Send times of the messages of a world: evenly random, or more by day than by night. In whole numbers.
struct WorldTimes {
    /// Activity of each hour of the day (UTC): lowest at four, rising from nine, highest in the evening.
    static let hours: [UInt64] = [
        30, 18, 12, 8, 7, 9, 18, 38, 62, 78, 85, 88, 92, 86, 80, 80, 82, 86, 92, 98, 100, 92, 72, 48,
    ]
    private static let hourMs: Int64 = 3_600_000

    private let count: UInt64
    private let endMs: Int64
    private let hasCurve: Bool
    /// Weight of all milliseconds, each with its hour's activity.
    private var weight: UInt64 = 0
    private var index: UInt64 = 0
    /// The current part of an hour, and the weight before it.
    private var fromMs: Int64
    private var toMs: Int64
    private var weightBefore: UInt64 = 0

    init(_ settings: WorldSettings) {
        count = UInt64(max(0, settings.messages))
        endMs = settings.endMs
        hasCurve = settings.hasDayCurve
        var at = settings.startMs
        (fromMs, toMs) = (at, at)
        while at < endMs {
            let next = end(after: at)
            weight += UInt64(next - at) * busyness(at)
            at = next
        }
        toMs = end(after: fromMs)
    }

    /// The time of the next message, Unix ms, never before the previous one; nil after the last.
    mutating func next(_ random: inout WorldRandom) -> Int64? {
        guard index < count else { return nil }
        // Each message has a range of equal weight and a random position in it.
        let stretch = count.dividingFullWidth(index.multipliedFullWidth(by: weight)).quotient
        let target = min(stretch + UInt64(random.below(Int(clamping: weight / count) + 1)), weight - 1)
        index += 1
        while target >= weightBefore + UInt64(toMs - fromMs) * busyness(fromMs) {
            weightBefore += UInt64(toMs - fromMs) * busyness(fromMs)
            fromMs = toMs
            toMs = end(after: fromMs)
        }
        return fromMs + Int64((target - weightBefore) / busyness(fromMs))
    }

    private func end(after ms: Int64) -> Int64 { min(endMs, (ms / Self.hourMs + 1) * Self.hourMs) }

    private func busyness(_ ms: Int64) -> UInt64 { hasCurve ? Self.hours[Int(ms / Self.hourMs % 24)] : 1 }
}

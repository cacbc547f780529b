// SPDX-License-Identifier: Apache-2.0
/// Ranges of places as ZRANGE, LRANGE and GETRANGE name them: from the end where negative, both ends included.
enum Places {
    /// - Parameter clampsEnd: a negative end before the first place is the first place, as GETRANGE has it.
    static func of(_ start: Int64, _ end: Int64, in count: Int, clampsEnd: Bool = false) -> Range<Int> {
        let count = Int64(count)
        let low = max(0, start < 0 ? start &+ count : start)
        var high = end < 0 ? end &+ count : end
        if clampsEnd { high = max(0, high) }
        high = min(high, count - 1)
        return low > high || low >= count ? 0..<0 : Int(low)..<Int(high + 1)
    }
}

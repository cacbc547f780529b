// SPDX-License-Identifier: Apache-2.0
/// Log-linear buckets: each octave is divided into 2^precisionBits equal parts.
///
/// The relative error of a reported value is at most 2^-precisionBits (0.8 % at 7 bits), whatever its size. Finding the
/// bucket takes one count of leading zeros and two shifts.
struct FineBuckets: Sendable {
    /// Larger values count in the last bucket: 2^42 ns is 73 minutes.
    static let valueBits = 42

    let precisionBits: Int

    init(precisionBits: Int) {
        precondition((1...12).contains(precisionBits), "FineBuckets: precisionBits must be 1...12")
        self.precisionBits = precisionBits
    }

    var count: Int { (Self.valueBits - precisionBits + 1) << precisionBits }

    @inline(__always)
    func index(of raw: UInt64) -> Int {
        let value = min(raw, (1 << UInt64(Self.valueBits)) &- 1)
        let exponent = 63 &- (value | 1).leadingZeroBitCount
        let shift = max(0, exponent &- precisionBits)
        return (shift << precisionBits) &+ Int(truncatingIfNeeded: value &>> UInt64(truncatingIfNeeded: shift))
    }

    /// The middle of the values in bucket `index`.
    func middle(of index: Int) -> Double {
        let parts = 1 << precisionBits
        // The first two octaves have one value per bucket.
        guard index >= 2 * parts else { return Double(index) }
        let shift = (index >> precisionBits) - 1
        let lower = UInt64(index - (shift << precisionBits)) << UInt64(shift)
        return Double(lower) + Double((UInt64(1) << UInt64(shift)) - 1) / 2
    }
}

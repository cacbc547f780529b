// SPDX-License-Identifier: Apache-2.0
/// Powers and Zipf's law by the four basic operations only. IEEE 754 rounds these equally on every machine, while the C
/// library's `pow` may differ in its last bit and so change a world's bytes.
enum PowerLaw {
    /// Natural logarithm of a positive number.
    static func ln(_ value: Double) -> Double {
        // value = m × 2^e with m from 1 to 2. ln m = 2 artanh((m - 1) / (m + 1)); each term is at most a ninth of the
        // previous one.
        let z = (value.significand - 1) / (value.significand + 1)
        let square = z * z
        var term = z
        var sum = 0.0
        for index in 0..<18 {
            sum += term / Double(2 * index + 1)
            term *= square
        }
        return 2 * sum + Double(value.exponent) * ln2
    }

    static func exp(_ value: Double) -> Double {
        let octaves = (value / ln2).rounded(.down)
        guard octaves > -1000 else { return 0 }
        let rest = value - octaves * ln2
        var term = 1.0
        var sum = 1.0
        for index in 1..<22 {
            term *= rest / Double(index)
            sum += term
        }
        return Double(sign: .plus, exponent: Int(min(octaves, 1000)), significand: sum)
    }

    /// `base` must be positive.
    static func power(_ base: Double, _ exponent: Double) -> Double { exp(exponent * ln(base)) }

    private static let ln2 = 0.693_147_180_559_945_3

    /// A rank from 0 to below `count`. `unit` is its position in the weight `x^-exponent` between 1 and `count` + 1.
    /// Close to Zipf's law, in constant time and memory.
    ///
    /// - Parameter unit: from 0 to below 1.
    static func rank(of count: Int, exponent: Double, unit: Double) -> Int {
        let end = Double(count) + 1
        let flatness = 1 - exponent
        let place: Double
        if flatness.magnitude < 1e-9 {
            place = exp(unit * ln(end))
        } else {
            place = power(1 + unit * (power(end, flatness) - 1), 1 / flatness)
        }
        return min(max(Int(place) - 1, 0), count - 1)
    }
}

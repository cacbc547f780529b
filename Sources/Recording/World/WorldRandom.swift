// SPDX-License-Identifier: Apache-2.0
/// Random numbers that are equal everywhere: splitmix64, with our own rules for integers and fractions, because those
/// of the standard library may change.
struct WorldRandom {
    private var state: UInt64

    /// - Parameter stream: parts of a world use separate streams.
    init(seed: UInt64, stream: UInt64) {
        state = Self.mix(seed, stream)
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return Self.scramble(state)
    }

    /// From 0 to below `bound`, which must be positive.
    mutating func below(_ bound: Int) -> Int { Self.part(next(), of: bound) }

    /// From 0 to below 1.
    mutating func unit() -> Double { Double(next() >> 11) * 0x1p-53 }

    /// Mixes two words into one.
    static func mix(_ one: UInt64, _ other: UInt64) -> UInt64 {
        scramble(scramble(one &+ 0x9E37_79B9_7F4A_7C15) ^ (other &* 0xD6E8_FEB8_6659_FD93))
    }

    /// Maps a word to one of `bound` equal parts.
    static func part(_ word: UInt64, of bound: Int) -> Int {
        Int(word.multipliedFullWidth(by: UInt64(max(1, bound))).high)
    }

    private static func scramble(_ word: UInt64) -> UInt64 {
        var mixed = word
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

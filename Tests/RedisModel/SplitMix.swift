/// SplitMix64, so that a seed decides all that is left to chance.
struct SplitMix {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func below(_ limit: Int) -> Int { limit <= 1 ? 0 : Int(next() % UInt64(limit)) }

    /// Forty hexadecimal digits, like a run id.
    mutating func name() -> String {
        let digits = Array("0123456789abcdef".utf8)
        return utf8((0..<40).map { _ in digits[below(16)] })
    }
}

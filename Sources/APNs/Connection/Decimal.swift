/// Numbers as header values have them, written without a String.
enum Decimal {
    /// How many digits the number has.
    static func count(_ number: UInt64) -> Int {
        var count = 1
        var rest = number
        while rest >= 10 {
            rest /= 10
            count &+= 1
        }
        return count
    }

    /// Writes `count(number)` digits.
    static func write(_ number: UInt64, to target: UnsafeMutableRawPointer) {
        var at = count(number)
        var rest = number
        while at > 0 {
            at &-= 1
            target.storeBytes(of: 48 &+ UInt8(truncatingIfNeeded: rest % 10), toByteOffset: at, as: UInt8.self)
            rest /= 10
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import Glibc

public typealias Bytes = [UInt8]

extension [UInt8] {
    init(_ text: String) { self = Array(text.utf8) }

    init(_ number: Int64) { self = Array(String(number).utf8) }

    init(_ number: Int) { self = Array(String(number).utf8) }

    /// ASCII letters in upper case, for words of commands.
    var upper: String { String(decoding: map { $0 >= 97 && $0 <= 122 ? $0 - 32 : $0 }, as: UTF8.self) }

    var lower: Bytes { map { $0 >= 65 && $0 <= 90 ? $0 + 32 : $0 } }

    /// A decimal number in the only form that Redis accepts: no spaces, no plus sign, no leading zeros.
    var integer: Int64? {
        guard let first, count <= 20 else { return nil }
        if self == [48] { return 0 }
        let isNegative = first == 45
        let digits = isNegative ? dropFirst() : self[...]
        guard let lead = digits.first, lead != 48 else { return nil }
        var value: UInt64 = 0
        for digit in digits {
            guard digit >= 48, digit <= 57 else { return nil }
            let (product, isOver) = value.multipliedReportingOverflow(by: 10)
            let (sum, isOverAgain) = product.addingReportingOverflow(UInt64(digit - 48))
            if isOver || isOverAgain { return nil }
            value = sum
        }
        if isNegative { return value <= 1 << 63 ? Int64(truncatingIfNeeded: 0 &- value) : nil }
        return Int64(exactly: value)
    }

    /// A number as strtod reads it, whole, and not `nan`.
    var double: Double? {
        guard let first, first != 32, !(9...13).contains(first), !contains(0) else { return nil }
        return (self + [0]).withUnsafeBufferPointer { bytes in
            guard let base = bytes.baseAddress else { return nil }
            return base.withMemoryRebound(to: CChar.self, capacity: bytes.count) { start in
                var end: UnsafeMutablePointer<CChar>?
                errno = 0
                let value = strtod(start, &end)
                guard let end, end == start + count, !value.isNaN else { return nil }
                if errno == ERANGE, value.isInfinite || value == 0 { return nil }
                return value
            }
        }
    }
}

func utf8(_ bytes: some Sequence<UInt8>) -> String { String(decoding: Array(bytes), as: UTF8.self) }

/// The order of memcmp, the shorter first.
func isBefore(_ left: Bytes, _ right: Bytes) -> Bool { left.lexicographicallyPrecedes(right) }

/// A number as Redis prints scores: seventeen digits until 7.0, and the shortest form that reads back from 7.2.
func digits(of number: Double, isShortest: Bool = false) -> String {
    if number.isInfinite { return number < 0 ? "-inf" : "inf" }
    if number.isNaN { return "nan" }
    if number == number.rounded(), abs(number) < (isShortest ? 0x1p62 : 1e15) {
        return number == 0 && number.sign == .minus ? "-0" : String(Int64(number))
    }
    return isShortest ? shortest(number) : printed(number, 17, "g")
}

private func printed(_ number: Double, _ width: Int, _ form: String) -> String {
    var buffer = [CChar](repeating: 0, count: 48)
    let length = withVaList([Int32(width), number]) { vsnprintf(&buffer, buffer.count, "%.*" + form, $0) }
    return String(decoding: buffer.prefix(Int(length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// The fewest digits that read back, as fpconv sets them.
private func shortest(_ number: Double) -> String {
    var text = ""
    for width in 0...16 {
        text = printed(abs(number), width, "e")
        if strtod(text, nil) == abs(number) { break }
    }
    let parts = text.split(separator: "e")
    guard parts.count == 2, let exponent = Int(parts[1]) else { return text }
    let digits = parts[0].filter { $0 != "." }
    let scale = exponent - digits.count + 1
    let sign = number < 0 ? "-" : ""
    if scale >= 0, abs(exponent) < digits.count + 7 { return sign + digits + String(repeating: "0", count: scale) }
    if scale < 0, scale > -7 || abs(exponent) < 4 {
        let before = digits.count + scale
        return before > 0
            ? sign + digits.prefix(before) + "." + digits.dropFirst(before)
            : sign + "0." + String(repeating: "0", count: -before) + digits
    }
    let rest = digits.dropFirst()
    return sign + digits.prefix(1) + (rest.isEmpty ? "" : "." + rest) + "e" + (exponent < 0 ? "-" : "+")
        + String(abs(exponent))
}

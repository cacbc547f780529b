// SPDX-License-Identifier: Apache-2.0
import Digits

/// The header `traceparent` of an events record (W3C Trace Context): it passes through to the event's records and log lines.
///
/// Numbers and no text, so that an event's source is copied without counting references.
struct Traceparent: Sendable, Equatable {
    let traceHigh: UInt64
    let traceLow: UInt64
    let parent: UInt64
    let flags: UInt8

    static let header = "traceparent"

    /// Version, trace id, parent id and flags in lower-case hexadecimal digits, neither id all zeros. A later version may have more
    /// behind them, which is not passed on.
    ///
    /// - Returns: nil for any other form.
    init?(_ text: String) {
        var rest = text.utf8[...]
        guard let version = Self.number(&rest, 2), version != 0xFF, Self.dash(&rest),
            let high = Self.number(&rest, 16), let low = Self.number(&rest, 16), high | low != 0, Self.dash(&rest),
            let parent = Self.number(&rest, 16), parent != 0, Self.dash(&rest), let flags = Self.number(&rest, 2),
            rest.isEmpty || (version != 0 && Self.dash(&rest))
        else { return nil }
        (traceHigh, traceLow, self.parent) = (high, low, parent)
        self.flags = UInt8(truncatingIfNeeded: flags)
    }

    private static func dash(_ rest: inout Substring.UTF8View) -> Bool { rest.popFirst() == UInt8(ascii: "-") }

    private static func number(_ rest: inout Substring.UTF8View, _ digits: Int) -> UInt64? {
        var value: UInt64 = 0
        for _ in 0..<digits {
            switch rest.popFirst() {
            case let digit? where (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit):
                value = value << 4 | UInt64(digit - UInt8(ascii: "0"))
            case let digit? where (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(digit):
                value = value << 4 | UInt64(digit - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return value
    }

    /// By version 00.
    var text: String {
        "00-\(Self.hex(traceHigh))\(Self.hex(traceLow))-\(Self.hex(parent))-\(Self.hex(flags))"
    }

    private static func hex(_ number: some FixedWidthInteger) -> String {
        withUnsafeBytes(of: number.bigEndian) { Hex.string($0) }
    }
}

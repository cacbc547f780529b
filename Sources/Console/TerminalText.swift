// SPDX-License-Identifier: Apache-2.0
import Telemetry

/// Text for people: the program's own words, and interpolated values, which are escaped. So no text from outside
/// controls the terminal, forges a line or reverses its direction (`Unprintable`).
///
/// The compiler enforces this: `Terminal` accepts only this type, and a `String` can enter only by interpolation.
public struct TerminalText: Sendable, Equatable, ExpressibleByStringInterpolation {
    /// The text as written to the terminal, with colours.
    public private(set) var text: String

    public init(stringLiteral text: String) {
        self.text = text
    }

    public init(stringInterpolation: StringInterpolation) {
        text = stringInterpolation.text
    }

    /// Text of several lines. Line feeds remain; everything else is escaped.
    public init(lines: String) {
        text = lines.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { Unprintable.escaped(String(decoding: $0, as: UTF8.self)) }.joined(separator: "\n")
    }

    /// Encloses a text in terminal sequences.
    init(_ text: TerminalText, between begin: String, and end: String) {
        self.text = begin + text.text + end
    }

    public struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        public init(literalCapacity: Int, interpolationCount: Int) {
            text.reserveCapacity(literalCapacity + 16 * interpolationCount)
        }

        public mutating func appendLiteral(_ literal: String) { text += literal }

        public mutating func appendInterpolation(_ part: TerminalText) { text += part.text }

        public mutating func appendInterpolation(_ value: some Any) { text += Unprintable.escaped("\(value)") }
    }

    public var isEmpty: Bool { text.isEmpty }

    public static func + (one: TerminalText, other: TerminalText) -> TerminalText {
        var sum = one
        sum += other
        return sum
    }

    public static func += (one: inout TerminalText, other: TerminalText) { one.text += other.text }
}

extension Sequence<TerminalText> {
    public func joined(separator: TerminalText = "") -> TerminalText {
        var joined: TerminalText = ""
        var isFirst = true
        for part in self {
            if !isFirst { joined += separator }
            joined += part
            isFirst = false
        }
        return joined
    }
}

import Telemetry

/// What commands print for people: the program's own words, and values that are escaped when they are put between them, so
/// that no text from outside steers the terminal, forges a line or turns one around (`Unprintable`).
///
/// The compiler holds to it: `Terminal` takes nothing else, and a `String` gets in by interpolation only.
public struct TerminalText: Sendable, Equatable, ExpressibleByStringInterpolation {
    /// As it is written to the terminal, colours included.
    public private(set) var text: String

    public init(stringLiteral text: String) {
        self.text = text
    }

    public init(stringInterpolation: StringInterpolation) {
        text = stringInterpolation.text
    }

    /// Text of several lines: line feeds stay, all else is escaped.
    public init(lines: String) {
        text = lines.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            .map { Unprintable.escaped(String(decoding: $0, as: UTF8.self)) }.joined(separator: "\n")
    }

    /// The terminal's own sequence around a text.
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

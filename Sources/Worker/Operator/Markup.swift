// SPDX-License-Identifier: Apache-2.0
import Telemetry

/// A piece of a page: the program's own HTML, and interpolated values, which are escaped (`HTMLText`). So no text from
/// outside becomes an element, ends an attribute or reverses the text direction.
///
/// The compiler enforces this: pages consist only of this type, and a `String` can enter only by interpolation, cut to
/// a readable length.
struct Markup: Sendable, Equatable, ExpressibleByStringInterpolation {
    private(set) var html: String

    /// Unicode scalars of one outside text.
    static let textMax = 300

    init(stringLiteral html: String) {
        self.html = html
    }

    init(stringInterpolation: StringInterpolation) {
        html = stringInterpolation.html
    }

    /// The points of a line in a picture, in tenths.
    init(points: [(x: Double, y: Double)]) {
        html = points.map { "\(Self.tenths($0.x)),\(Self.tenths($0.y))" }.joined(separator: " ")
    }

    /// The ends of a line in a picture, as attributes.
    init(line ends: (Double, Double, Double, Double)) {
        let (x1, y1, x2, y2) = (Self.tenths(ends.0), Self.tenths(ends.1), Self.tenths(ends.2), Self.tenths(ends.3))
        html = "x1=\"\(x1)\" y1=\"\(y1)\" x2=\"\(x2)\" y2=\"\(y2)\""
    }

    private static func tenths(_ value: Double) -> String {
        let whole = Int((min(max(value, 0), 10_000) * 10).rounded())
        return "\(whole / 10).\(whole % 10)"
    }

    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var html = ""

        init(literalCapacity: Int, interpolationCount: Int) {
            html.reserveCapacity(literalCapacity + 16 * interpolationCount)
        }

        mutating func appendLiteral(_ literal: String) { html += literal }

        mutating func appendInterpolation(_ part: Markup) { html += part.html }

        mutating func appendInterpolation(_ text: String) { html += HTMLText.escaped(Markup.cut(text)) }

        mutating func appendInterpolation(_ number: some BinaryInteger) { html += String(number) }
    }

    var isEmpty: Bool { html.isEmpty }

    static func + (one: Markup, other: Markup) -> Markup {
        var sum = one
        sum += other
        return sum
    }

    static func += (one: inout Markup, other: Markup) { one.html += other.html }

    private static func cut(_ text: String) -> String {
        let scalars = text.unicodeScalars
        guard let end = scalars.index(scalars.startIndex, offsetBy: textMax, limitedBy: scalars.endIndex),
            end != scalars.endIndex
        else { return text }
        return String(scalars[..<end]) + "…"
    }
}

extension Sequence<Markup> {
    func joined(_ separator: Markup = "") -> Markup {
        var joined: Markup = ""
        var isFirst = true
        for part in self {
            if !isFirst { joined += separator }
            joined += part
            isFirst = false
        }
        return joined
    }
}

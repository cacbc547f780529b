import Fleet

/// A small graph of rates over time as inline SVG: newest at the right, zero at the bottom.
enum FlowGraph {
    private static let (width, height) = (180.0, 40.0)

    /// - Parameter what: the description for screen readers.
    static func markup(_ rates: [Double], what: Markup) -> Markup {
        let finite = rates.map { $0.isFinite ? max(0, $0) : 0 }
        guard let now = finite.last, let most = finite.max(), finite.count > 1 else {
            return "<p class=\"quiet\">measuring</p>"
        }
        let step = width / Double(FlowRing.stepsMax - 1)
        let start = width - step * Double(finite.count - 1)
        // A line at zero remains visible.
        let line = finite.enumerated().map { index, rate in
            (x: start + step * Double(index), y: height - 1 - (most > 0 ? rate / most : 0) * (height - 2))
        }
        let area = [(x: start, y: height)] + line + [(x: width, y: height)]
        let minutes = FigureText.duration(Double(finite.count) * Double(FlowRing.stepNanos) / 1e9)
        return """
            <svg class="graph" role="img" viewBox="0 0 180 40" preserveAspectRatio="none" aria-label="\(what) a second in \
            the last \(minutes): \(FigureText.number(now)) now, \(FigureText.number(most)) at most">\
            <polygon points="\(Markup(points: area))"/><polyline points="\(Markup(points: line))"/></svg>
            """
    }
}

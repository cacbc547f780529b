// SPDX-License-Identifier: Apache-2.0
import Fleet

/// A small graph of rates over time as inline SVG: newest at the right, zero at the bottom, a line for each minute.
enum FlowGraph {
    private static let (width, height) = (180.0, 40.0)

    /// The next of 1, 1.5, 2, 3, 4, 6, 8, 10, 15, 20… above the highest rate: the end of a scale that graphs share.
    static func top(over most: Double) -> Double {
        guard most.isFinite else { return 1 }
        var unit = 1.0
        while unit * 10 < most { unit *= 10 }
        return [1, 1.5, 2, 3, 4, 6, 8, 10].map { $0 * unit }.first { $0 >= most } ?? most
    }

    /// - Parameters:
    ///   - top: the end of the scale.
    ///   - what: the description for screen readers.
    static func markup(_ rates: [Double], to top: Double, what: Markup) -> Markup {
        let finite = rates.map { $0.isFinite ? max(0, $0) : 0 }
        guard let now = finite.last, let most = finite.max(), finite.count > 1 else {
            return "<p class=\"quiet\">measuring</p>"
        }
        let step = width / Double(FlowRing.stepsMax - 1)
        let start = width - step * Double(finite.count - 1)
        // A line at zero remains visible.
        let line = finite.enumerated().map { index, rate in
            (x: start + step * Double(index), y: height - 1 - min(1, rate / top) * (height - 2))
        }
        let area = [(x: start, y: height)] + line + [(x: width, y: height)]
        let minutes = Int(FlowRing.seconds / 60)
        let grid = (0..<minutes).map { minute -> Markup in
            let x = width * Double(minute) / Double(minutes)
            return "<line class=\"grid\" \(Markup(line: (x, 0, x, height)))/>"
        }
        let seconds = FigureText.duration(Double(finite.count) * FlowRing.stepSeconds)
        let axis = (0...minutes).map { minute -> Markup in
            minute == minutes ? "<span>now</span>" : "<span>−\(minutes - minute) min</span>"
        }
        return """
            <p class="most" aria-hidden="true">peak \(FigureText.number(most))</p>\
            <svg class="graph" role="img" viewBox="0 0 180 40" preserveAspectRatio="none" aria-label="\(what) a second in \
            the last \(seconds): \(FigureText.number(now)) now, \(FigureText.number(most)) at the peak">\
            <polygon points="\(Markup(points: area))"/>\(grid.joined())<polyline points="\(Markup(points: line))"/></svg>\
            <p class="axis" aria-hidden="true">\(axis.joined())</p>
            """
    }
}

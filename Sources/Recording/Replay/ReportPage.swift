// SPDX-License-Identifier: Apache-2.0
internal import Telemetry

/// The common parts of report pages: inline style and plots, no scripts or external parts, light and dark mode.
public enum ReportPage {
    /// A whole page.
    ///
    /// - Parameters:
    ///   - title: plain text.
    ///   - heading: the title as HTML.
    ///   - verdict: the result in a sentence, as plain text.
    ///   - body: HTML.
    public static func html(
        title: String, heading: String, verdict: String, succeeded: Bool, origin: ReportOrigin?, body: String
    ) -> String {
        """
        <!doctype html>
        <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
        <title>\(HTMLText.escaped(title))</title>
        <style>\(style)</style></head><body><main>
        <h1>\(heading)</h1>
        <p class="verdict \(succeeded ? "good" : "bad")">\(HTMLText.escaped(verdict))</p>
        \(origin.map(place) ?? "")
        \(body)
        </main></body></html>

        """
    }

    private static func place(_ origin: ReportOrigin) -> String {
        let settings = origin.settings.isEmpty ? "" : "<br>\(HTMLText.escaped(origin.settings.joined(separator: ", ")))"
        return "<p class=\"note\">\(HTMLText.escaped(origin.text))\(settings)</p>"
    }

    private static let style = """
        :root{color-scheme:light dark;--bg:#fff;--ink:#1c2024;--dim:#60646c;--line:#d9d9e0;--one:#0b68cb;--two:#b5470f;\
        --three:#2a7e3b;--good:#2a7e3b;--bad:#c62a2f;--tile:#f5f6f8}
        @media(prefers-color-scheme:dark){:root{--bg:#111316;--ink:#edeef0;--dim:#b0b4ba;--line:#363a3f;--one:#70b8ff;\
        --two:#ffa057;--three:#71d083;--good:#71d083;--bad:#ff9592;--tile:#1c1f23}}
        body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
        main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 3rem}
        h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1.05rem;margin:2rem 0 .5rem}
        .verdict{font-weight:600}.good{color:var(--good)}.bad{color:var(--bad)}
        .tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(9rem,1fr));gap:.6rem;padding:0;list-style:none}
        .tiles li{background:var(--tile);border-radius:.4rem;padding:.6rem .8rem}
        .tiles b{display:block;font-size:1.3rem;font-variant-numeric:tabular-nums}.tiles span,figcaption,.note{color:var(--dim)}
        figure{margin:0;overflow-x:auto}svg{width:100%;min-width:34rem;height:auto;display:block}svg text{fill:var(--dim);font:11px system-ui,sans-serif}
        .grid{stroke:var(--line);stroke-width:1}.l{fill:none;stroke-width:2}
        .one{stroke:var(--one)}.two{stroke:var(--two)}.three{stroke:var(--three)}
        .f-one{fill:var(--one)}.f-two{fill:var(--two)}.f-three{fill:var(--three)}
        .scroll{overflow-x:auto}table{border-collapse:collapse;min-width:min(24rem,100%)}
        th,td{text-align:right;padding:.25rem .8rem .25rem 0;border-bottom:1px solid var(--line);\
        font-variant-numeric:tabular-nums}
        th:first-child,td:first-child{text-align:left;min-width:9rem;overflow-wrap:break-word}
        .key i{display:inline-block;width:.9rem;height:.2rem;margin:0 .35rem .2rem .8rem}
        """

    /// The most important numbers with their labels.
    public static func tiles(_ tiles: [(String, String)]) -> String {
        "<ul class=\"tiles\">"
            + tiles.map { "<li><b>\(HTMLText.escaped($0.1))</b><span>\(HTMLText.escaped($0.0))</span></li>" }.joined()
            + "</ul>"
    }

    /// - Parameter body: HTML.
    public static func section(_ title: String, _ body: String) -> String {
        "<section><h2>\(HTMLText.escaped(title))</h2>\(body)</section>"
    }

    /// A table of text. The first row has the column names.
    public static func table(_ rows: [[String]]) -> String {
        let lines = rows.enumerated().map { index, row in
            let cell = index == 0 ? "th" : "td"
            return "<tr>" + row.map { "<\(cell)>\(HTMLText.escaped($0))</\(cell)>" }.joined() + "</tr>"
        }
        return "<div class=\"scroll\"><table>\(lines.joined())</table></div>"
    }

    /// Named bars, each with a text for its value.
    public static func bars(_ rows: [(name: String, value: Double, text: String)], colour: String = "one") -> String {
        let highest = max(rows.map(\.value).max() ?? 0, 1e-9)
        var svg = "<svg viewBox=\"0 0 720 \(rows.count * 20 + 4)\" role=\"img\" aria-label=\"bars\">"
        for (index, row) in rows.enumerated() {
            let (y, width) = (index * 20, max(1, min(max(row.value, 0) / highest, 1) * 400))
            svg += "<text x=\"212\" y=\"\(y + 14)\" text-anchor=\"end\">\(HTMLText.escaped(row.name))</text>"
            svg += "<rect class=\"f-\(colour)\" x=\"220\" y=\"\(y + 4)\" width=\"\(decimal(width))\" height=\"12\" "
            svg += "rx=\"2\"/><text x=\"\(decimal(226 + width))\" y=\"\(y + 14)\">\(HTMLText.escaped(row.text))</text>"
        }
        return "<figure>\(svg)</svg></figure>"
    }

    // MARK: Text

    /// With thin spaces between thousands.
    public static func number(_ value: Int) -> String {
        let digits = Array(String(value.magnitude))
        var text = value < 0 ? "-" : ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3) { text += "\u{202F}" }
            text.append(digit)
        }
        return text
    }

    /// One digit after the point.
    public static func decimal(_ value: Double) -> String {
        let tenths = Int((min(max(value, 0), 1e15) * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}

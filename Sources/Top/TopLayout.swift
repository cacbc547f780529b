// SPDX-License-Identifier: Apache-2.0
import Console
import Telemetry

/// Rows of a label and items, wrapped between items.
struct TopLayout {
    enum Tone: Sendable {
        case plain, good, warning, bad, quiet
    }

    /// Words that stay on one line.
    struct Item: Sendable {
        let text: String
        let tone: Tone

        /// Outside text is escaped here, so that its width is that of the shown text.
        init(_ text: String, _ tone: Tone = .plain) {
            self.text = Unprintable.escaped(text)
            self.tone = tone
        }
    }

    struct Row: Sendable {
        var label: String
        var items: [Item]
    }

    private static let labelWidth = 12
    private static let gap = 3
    /// Minimum width for wrapping. A narrower terminal is treated as if it had this width.
    static let widthMin = 24

    /// Lines of at most `width` cells.
    static func lines(_ rows: [Row], width: Int) -> [TerminalText] {
        let width = max(width, widthMin)
        return rows.filter { !$0.items.isEmpty }.flatMap { lines($0, width: width) }
    }

    private static func lines(_ row: Row, width: Int) -> [TerminalText] {
        let isNarrow = width < 3 * labelWidth
        let indent = isNarrow ? 2 : labelWidth
        var lines: [TerminalText] = []
        var line = isNarrow ? "" as TerminalText : Style.padded("\(row.label)", to: indent)
        var used = indent
        var isEmpty = true
        if isNarrow {
            lines.append(Style.bold("\(row.label)"))
            line = Style.blanks(indent)
        }
        for item in row.items {
            let text = cut(item.text, to: width - indent)
            let cells = cells(text)
            if !isEmpty, used + gap + cells > width {
                lines.append(line)
                (line, used, isEmpty) = (Style.blanks(indent), indent, true)
            }
            if !isEmpty {
                line += Style.blanks(gap)
                used += gap
            }
            line += styled(text, item.tone)
            used += cells
            isEmpty = false
        }
        return lines + [line]
    }

    private static func styled(_ text: String, _ tone: Tone) -> TerminalText {
        switch tone {
        case .plain: "\(text)"
        case .good: Style.green("\(text)")
        case .warning: Style.yellow("\(text)")
        case .bad: Style.red("\(text)")
        case .quiet: Style.dim("\(text)")
        }
    }

    // MARK: - Cells

    /// The number of terminal cells: two for 汉, none for a combining mark.
    static func cells(_ text: String) -> Int { text.reduce(0) { $0 + cells($1) } }

    private static func cells(_ character: Character) -> Int {
        guard let first = character.unicodeScalars.first else { return 0 }
        let isWide = first.value >= 0x1100 && !(0x2000...0x2BFF).contains(first.value)
        return isWide || character.unicodeScalars.contains { $0.properties.isEmojiPresentation } ? 2 : 1
    }

    static func cut(_ text: String, to width: Int) -> String {
        guard cells(text) > width else { return text }
        var (kept, used) = ("", 0)
        for character in text {
            let cells = cells(character)
            if used + cells > width - 1 { break }
            kept.append(character)
            used += cells
        }
        return kept + "…"
    }
}

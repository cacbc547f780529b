// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Colours for people, only if standard output is a terminal and NO_COLOR is not set (no-color.org).
public enum Style {
    private static let isOn = isatty(STDOUT_FILENO) == 1 && getenv("NO_COLOR") == nil

    public static func bold(_ text: TerminalText) -> TerminalText { wrap(text, "1") }
    public static func dim(_ text: TerminalText) -> TerminalText { wrap(text, "2") }
    public static func red(_ text: TerminalText) -> TerminalText { wrap(text, "31") }
    public static func green(_ text: TerminalText) -> TerminalText { wrap(text, "32") }
    public static func yellow(_ text: TerminalText) -> TerminalText { wrap(text, "33") }

    /// Pads with spaces to a width in characters. The text must have no colours.
    public static func padded(_ text: TerminalText, to width: Int) -> TerminalText {
        text + blanks(width - text.text.count)
    }

    /// `count` spaces; none for a negative count.
    public static func blanks(_ count: Int) -> TerminalText {
        TerminalText(stringLiteral: String(repeating: " ", count: max(0, count)))
    }

    private static func wrap(_ text: TerminalText, _ code: String) -> TerminalText {
        isOn ? TerminalText(text, between: "\u{1B}[\(code)m", and: "\u{1B}[0m") : text
    }
}

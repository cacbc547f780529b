import Glibc

/// Colours for people: only where standard output is a terminal and NO_COLOR is not set (no-color.org).
enum Style {
    private static let isOn = isatty(STDOUT_FILENO) == 1 && getenv("NO_COLOR") == nil

    static func bold(_ text: String) -> String { wrap(text, "1") }
    static func dim(_ text: String) -> String { wrap(text, "2") }
    static func red(_ text: String) -> String { wrap(text, "31") }
    static func green(_ text: String) -> String { wrap(text, "32") }
    static func yellow(_ text: String) -> String { wrap(text, "33") }

    /// Blanks up to a width, which counts characters and no colour codes.
    static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private static func wrap(_ text: String, _ code: String) -> String {
        isOn ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }
}

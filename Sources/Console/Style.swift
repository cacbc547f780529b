import Glibc

/// Colours for people: only where standard output is a terminal and NO_COLOR is not set (no-color.org).
public enum Style {
    private static let isOn = isatty(STDOUT_FILENO) == 1 && getenv("NO_COLOR") == nil

    public static func bold(_ text: String) -> String { wrap(text, "1") }
    public static func dim(_ text: String) -> String { wrap(text, "2") }
    public static func red(_ text: String) -> String { wrap(text, "31") }
    public static func green(_ text: String) -> String { wrap(text, "32") }
    public static func yellow(_ text: String) -> String { wrap(text, "33") }

    /// Blanks up to a width, which counts characters and no colour codes.
    public static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private static func wrap(_ text: String, _ code: String) -> String {
        isOn ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }
}

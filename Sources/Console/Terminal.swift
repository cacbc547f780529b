// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Prints whole texts to standard output or standard error.
public enum Terminal {
    public static func out(_ text: TerminalText) { write(text.text, to: STDOUT_FILENO) }

    public static func err(_ text: TerminalText) { write(text.text, to: STDERR_FILENO) }

    /// For programs (`--json`): unchanged.
    public static func out(json: String) { write(json, to: STDOUT_FILENO) }

    /// Prints the same content for a program (`--json`) or for people.
    public static func out(
        asJSON isJSON: Bool, json: @autoclosure () -> String, text: @autoclosure () -> TerminalText
    ) {
        if isJSON { out(json: json()) } else { out(text()) }
    }

    /// For programs, if standard output is used for other data.
    public static func err(json: String) { write(json, to: STDERR_FILENO) }

    /// Clears the progress line.
    public static func clearLine() { write("\r\u{1B}[K", to: STDERR_FILENO) }

    public static let isInteractive = isatty(STDERR_FILENO) == 1

    private static func write(_ text: String, to fd: Int32) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let written = rest.withUnsafeBytes { Glibc.write(fd, $0.baseAddress, $0.count) }
            guard written > 0 else { return }
            rest = rest.dropFirst(written)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc

/// A terminal screen that is redrawn in place and restores the previous content at the end.
///
/// At most one at a time, for one thread.
public final class Screen {
    private var original = termios()
    private let readsKeys: Bool
    private var isOpen = true

    /// - Returns: nil if standard output is not a terminal for drawing.
    public init?() {
        guard isatty(STDOUT_FILENO) == 1, getenv("TERM").map({ strcmp($0, "dumb") != 0 }) ?? false else { return nil }
        var settings = termios()
        readsKeys = isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &settings) == 0
        if readsKeys {
            original = settings
            // Keys arrive one by one without echo. Ctrl-C remains a signal.
            settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
            tcsetattr(STDIN_FILENO, TCSANOW, &settings)
        }
        // Alternate screen, without a cursor.
        Terminal.out("\u{1B}[?1049h\u{1B}[?25l")
    }

    deinit { close() }

    public func close() {
        guard isOpen else { return }
        isOpen = false
        Terminal.out("\u{1B}[?25h\u{1B}[?1049l")
        if readsKeys { tcsetattr(STDIN_FILENO, TCSANOW, &original) }
    }

    /// Present columns and rows.
    public var size: (width: Int, height: Int) { Self.size ?? (80, 24) }

    /// Nil if standard output is not a terminal, or does not report a size.
    public static var size: (width: Int, height: Int)? {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return nil }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Draws lines over the present content, as many as fit.
    public func draw(_ lines: [TerminalText]) {
        let height = size.height
        var shown = lines
        if lines.count > height, height > 0 {
            shown = lines.prefix(height - 1) + ["\(lines.count - height + 1) more lines"]
        }
        var text: TerminalText = "\u{1B}[H"
        for (index, line) in shown.enumerated() { text += (index == 0 ? "" : "\r\n") + line + "\u{1B}[K" }
        Terminal.out(text + "\u{1B}[J")
    }

    /// Waits for a key until `nanos` of the monotonic clock, or until `isStopped` returns true. Returns nil if none
    /// came.
    public func key(until nanos: UInt64, isStopped: () -> Bool) -> UInt8? {
        while !isStopped() {
            let now = Loop.monotonicNanos()
            guard now < nanos else { return nil }
            let ms = Int32(clamping: min((nanos - now) / 1_000_000 + 1, 50))
            guard readsKeys else {
                usleep(UInt32(ms) * 1000)
                continue
            }
            var item = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
            guard poll(&item, 1, ms) > 0 else { continue }
            var key: UInt8 = 0
            if read(STDIN_FILENO, &key, 1) == 1 { return key }
            // The terminal is gone, so nobody is looking.
            return UInt8(ascii: "q")
        }
        return nil
    }
}

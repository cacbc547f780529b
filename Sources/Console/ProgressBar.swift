// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// The progress of a long command on standard error: a redrawn bar, only on a terminal.
public struct ProgressBar {
    private let label: String
    /// Nil if the end is unknown; the bar then shows a count only.
    private let total: Int?
    private let startedNanos: UInt64
    private var drawnNanos: UInt64 = 0
    public private(set) var done = 0
    /// A short text after the numbers; may be empty.
    public var note = ""

    private static let width = 28
    private static let intervalNanos: UInt64 = 100_000_000

    public init(_ label: String, total: Int?) {
        self.label = label
        self.total = total
        startedNanos = Loop.monotonicNanos()
    }

    public var seconds: Double { Double(Loop.monotonicNanos() - startedNanos) / 1e9 }

    /// Records per second since the start.
    public var rate: Double { seconds > 0 ? Double(done) / seconds : 0 }

    public mutating func advance(to done: Int) {
        self.done = done
        guard Terminal.isInteractive else { return }
        let now = Loop.monotonicNanos()
        guard now - drawnNanos >= Self.intervalNanos else { return }
        drawnNanos = now
        Terminal.clearLine()
        Terminal.err("\(text)")
    }

    /// Clears the line for the next output.
    public func clear() {
        if Terminal.isInteractive { Terminal.clearLine() }
    }

    private var text: String {
        let pace = "\(Self.number(rate))/s"
        let end = note.isEmpty ? "" : "  \(note)"
        guard let total, total > 0 else { return "\(label)  \(done) records  \(pace)\(end)" }
        let share = min(1, Double(done) / Double(total))
        let filled = Int(share * Double(Self.width))
        let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: Self.width - filled)
        let left = rate > 0 ? Double(total - done) / rate : 0
        return "\(label)  \(bar) \(Int(share * 100)) %  \(done)/\(total)  \(pace)  "
            + "\(Self.clock(left)) left\(end)"
    }

    /// A rate without unnecessary digits.
    public static func number(_ value: Double) -> String {
        if value >= 100 { return String(Int(min(value, 1e15).rounded())) }
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// Seconds for a report.
    public var secondsText: String {
        let hundredths = Int((seconds * 100).rounded())
        return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100) s"
    }

    private static func clock(_ seconds: Double) -> String {
        let whole = Int(min(seconds, 359_999).rounded(.up))
        let (minutes, rest) = (whole / 60, whole % 60)
        return minutes > 0 ? "\(minutes) min \(rest) s" : "\(rest) s"
    }
}

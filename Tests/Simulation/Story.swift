// SPDX-License-Identifier: Apache-2.0
/// The log of a run, in the words of the documents: one line per thing that happened, with the world's time.
public final class Story {
    /// Nil: nothing is kept.
    public private(set) var lines: [String]?
    /// Only lines that name this message, and those of the world.
    private let message: String?
    private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    private let nowNanos: () -> UInt64

    init(keeps: Bool, message: String?, nowNanos: @escaping () -> UInt64) {
        lines = keeps ? [] : nil
        self.message = message
        self.nowNanos = nowNanos
    }

    /// - Parameter about: the messages or events that it is about; empty: the world.
    func tell(_ text: @autoclosure () -> String, about: [String] = []) {
        let text = text()
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        hash = (hash ^ nowNanos()) &* 0x100_0000_01b3
        guard lines != nil else { return }
        if let message, !about.isEmpty, !about.contains(message) { return }
        lines?.append("\(Self.time(nowNanos()))  \(text)")
    }

    /// Seconds with microseconds.
    static func time(_ nanos: UInt64) -> String {
        let micros = String(nanos / 1000 % 1_000_000)
        let seconds = String(nanos / 1_000_000_000)
        return String(repeating: " ", count: max(0, 5 - seconds.count)) + seconds + "."
            + String(repeating: "0", count: 6 - micros.count) + micros
    }
}

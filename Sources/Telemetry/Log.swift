// SPDX-License-Identifier: Apache-2.0
internal import Glibc

/// JSON lines for people and collectors: `{"at":…,"level":…,"msg":…,key:value…}`.
///
/// Any thread. Never blocks: a line that the descriptor does not accept at once is dropped and counted in `dropped`.
/// Messages and keys are constants of the program, values are escaped, and lines end at 4096 bytes (the size that a
/// pipe accepts whole). A longer line is cut and marked with `"cut":true`. Values are computed only if the level is on.
public struct Log: Sendable {
    /// The importance of an entry.
    public enum Level: UInt8, Sendable, Comparable, CaseIterable {
        case debug, info, warning, error

        public static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }

        /// The level's name in lines and configuration.
        public var name: String {
            switch self {
            case .debug: "debug"
            case .info: "info"
            case .warning: "warning"
            case .error: "error"
            }
        }

        /// The level of that name; nil if there is none.
        public init?(name: String) {
            guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
            self = level
        }
    }

    private static let lineMax = 4096
    private static let valueMax = 1024

    private let sink: LogSink
    private let bound: [UInt8]

    /// Writes to `fd` (default: standard error). The caller owns the descriptor and must keep it open.
    public init(level: Level, fd: Int32 = 2) {
        sink = LogSink(fd: fd, level: level)
        bound = []
    }

    /// A log that passes its lines to a closure, in place of a descriptor.
    package init(level: Level, receive: @escaping @Sendable ([UInt8]) -> Void) {
        sink = LogSink(level: level, receive: receive)
        bound = []
    }

    /// A log without output, for tests.
    public static var off: Log { Log(sink: LogSink(fd: -1, level: .error), bound: []) }

    private init(sink: LogSink, bound: [UInt8]) {
        self.sink = sink
        self.bound = bound
    }

    /// The same log with additional values in each line.
    public func with(_ fields: KeyValuePairs<StaticString, LogValue>) -> Log {
        var bytes = bound
        for (key, value) in fields { _ = Self.append(key, value, to: &bytes) }
        return Log(sink: sink, bound: bytes.count <= Self.lineMax / 2 ? bytes : bound)
    }

    /// The lowest level that is written. Setting it affects all logs that share this descriptor.
    public var level: Level {
        get { sink.level }
        nonmutating set { sink.level = newValue }
    }

    /// The number of lines lost because the descriptor did not accept them.
    public var dropped: UInt64 { sink.dropped }

    public func debug(
        _ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<StaticString, LogValue> = [:]
    ) {
        if sink.takes(.debug) { write(.debug, message, fields()) }
    }

    public func info(
        _ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<StaticString, LogValue> = [:]
    ) {
        if sink.takes(.info) { write(.info, message, fields()) }
    }

    public func warning(
        _ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<StaticString, LogValue> = [:]
    ) {
        if sink.takes(.warning) { write(.warning, message, fields()) }
    }

    public func error(
        _ message: StaticString, _ fields: @autoclosure () -> KeyValuePairs<StaticString, LogValue> = [:]
    ) {
        if sink.takes(.error) { write(.error, message, fields()) }
    }

    private func write(_ level: Level, _ message: StaticString, _ fields: KeyValuePairs<StaticString, LogValue>) {
        var line: [UInt8] = []
        line.reserveCapacity(512)
        line.append(contentsOf: "{\"at\":\"".utf8)
        var now = timespec()
        _ = clock_gettime(CLOCK_REALTIME, &now)
        line.append(contentsOf: Timestamp.text(seconds: Int64(now.tv_sec), nanos: Int64(now.tv_nsec)).utf8)
        line.append(contentsOf: "\",\"level\":\"\(level.name)\",\"msg\":".utf8)
        JSONText.appendString(message.description, to: &line, limit: Self.valueMax)
        line.append(contentsOf: bound)
        var cut = false
        for (key, value) in fields {
            let before = line.count
            if Self.append(key, value, to: &line) { cut = true }
            // Leaves room for `,"cut":true}` and the line feed.
            if line.count > Self.lineMax - 16 {
                line.removeSubrange(before...)
                cut = true
            }
        }
        line.append(contentsOf: cut ? ",\"cut\":true}\n".utf8 : "}\n".utf8)
        sink.write(line)
    }

    /// Appends `,"key":value`. Returns whether the value was cut.
    private static func append(_ key: StaticString, _ value: LogValue, to line: inout [UInt8]) -> Bool {
        line.append(UInt8(ascii: ","))
        JSONText.appendString(key.description, to: &line, limit: 128)
        line.append(UInt8(ascii: ":"))
        switch value {
        case .string(let text): return JSONText.appendString(text, to: &line, limit: valueMax)
        case .bytes(let bytes):
            let cut = bytes.count > valueMax
            let text = String(decoding: bytes.prefix(valueMax), as: UTF8.self)
            return JSONText.appendString(text, to: &line, limit: valueMax) || cut
        case .int(let number): line.append(contentsOf: String(number).utf8)
        // JSON has no form for NaN and infinities.
        case .double(let number): line.append(contentsOf: (number.isFinite ? number.description : "null").utf8)
        case .bool(let flag): line.append(contentsOf: (flag ? "true" : "false").utf8)
        }
        return false
    }
}

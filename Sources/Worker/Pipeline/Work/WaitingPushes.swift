// SPDX-License-Identifier: Apache-2.0
import JSON

/// Pushes that wait for APNs, for their device or for their time, in memory and in `carillon.parked`. The page and `/statusz` both
/// show it.
public struct WaitingPushes: Sendable, Equatable {
    /// The reason of a wait: those of `parked` records, and one more.
    public enum Cause: String, CaseIterable, Sendable {
        case unavailable, credential
        case retryAfter = "retry_after"
        case behind
        case desktopFirst = "desktop_first"
        case rate, share, unclaimed, scheduled, background
        /// A free stream of a connection.
        case stream

        init(_ cause: ParkCause) { self = Self(rawValue: cause.rawValue) ?? .behind }
    }

    struct Part: Sendable, Equatable {
        var count = 0
        /// Unix ms: when the last of them is due; nil where no time ends the wait.
        var untilMs: Int64?
    }

    private(set) var parts: [Cause: Part] = [:]
    /// The broker's time of the oldest of their events, Unix ms; nil if none waits.
    private(set) var oldestMs: Int64?

    public init() {}

    var count: Int { parts.values.reduce(0) { $0 + $1.count } }

    /// In the order of `Cause`.
    var sorted: [(cause: Cause, part: Part)] {
        Cause.allCases.compactMap { cause in parts[cause].map { (cause, $0) } }
    }

    mutating func add(_ cause: Cause, _ count: Int, untilMs: Int64? = nil) {
        guard count > 0 else { return }
        var part = parts[cause] ?? Part()
        part.count += count
        part.untilMs = [part.untilMs, untilMs].compactMap { $0 }.max()
        parts[cause] = part
    }

    /// One of them is of an event of that time.
    mutating func note(kafkaMs: Int64) {
        if kafkaMs > 0 { oldestMs = min(oldestMs ?? kafkaMs, kafkaMs) }
    }

    /// - Parameter wallMs: Unix ms at the steady clock's 0.
    mutating func add(_ record: ParkedRecord, wallMs: Int64) {
        let isTimed = record.cause.isTimed && record.cause != .behind
        add(
            Cause(record.cause), max(1, record.devices.count), untilMs: isTimed ? record.dueMs &+ wallMs : nil)
        note(kafkaMs: record.source.kafkaMs)
    }

    /// Those of all shards.
    mutating func add(_ other: WaitingPushes) {
        for (cause, part) in other.parts { add(cause, part.count, untilMs: part.untilMs) }
        if let oldestMs = other.oldestMs { note(kafkaMs: oldestMs) }
    }

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("pushes", Int64(count))
        if let oldestMs { writer.member("oldest_ms", oldestMs) }
        writer.key("why")
        writer.beginArray()
        for (cause, part) in sorted {
            writer.beginObject()
            writer.member("reason", cause.rawValue)
            writer.member("pushes", Int64(part.count))
            if let untilMs = part.untilMs { writer.member("until_ms", untilMs) }
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
    }
}

// SPDX-License-Identifier: Apache-2.0
/// A note that an earlier event of a device, a user or a conversation is parked.
///
/// The writer's clock may have been wrong, so a reader never waits longer than the writer meant to.
public struct ParkedNote: Sendable, Equatable {
    /// When the record is looked at again, Unix ms.
    public var dueMs: Int64
    /// When the note was written, by the same clock.
    public var writtenMs: Int64
    /// The end of the event's life, Unix ms: a note beyond it has lost its record.
    public var untilMs: Int64

    public init(dueMs: Int64, writtenMs: Int64, untilMs: Int64) {
        self.dueMs = dueMs
        self.writtenMs = writtenMs
        self.untilMs = untilMs
    }

    /// - Returns: how long the record still waits; nil for a note that has expired.
    public func leftMs(nowMs: Int64) -> Int64? {
        nowMs >= untilMs ? nil : Self.leftMs(until: dueMs, writtenMs: writtenMs, nowMs: nowMs)
    }

    /// The rest of a delay that was written down as its end: at most the whole delay, whatever the clocks say.
    public static func leftMs(until endMs: Int64, writtenMs: Int64, nowMs: Int64) -> Int64 {
        min(span(from: nowMs, to: endMs), span(from: writtenMs, to: endMs))
    }

    /// 0 where the end is not after the start.
    private static func span(from start: Int64, to end: Int64) -> Int64 {
        let (span, hasOverflowed) = end.subtractingReportingOverflow(start)
        return hasOverflowed ? 0 : max(0, span)
    }
}

// SPDX-License-Identifier: Apache-2.0
import Redis
import Telemetry

/// Whether Redis accepts writes: it may be full, a replica, or refuse this worker's commands while it answers reads.
///
/// Logs each cause once in ten seconds, with the number of suppressed lines.
final class RedisWrites {
    /// Since when and how it refuses; nil if it accepts writes.
    private(set) var refusal: Refusal?
    private let log: Log
    private let counts: UnstoredCounts
    private var limiter = LogLimiter<Line>()
    private static let forgetNanos: UInt64 = 10_000_000_000
    /// When it refused one last, monotonic; 0: never.
    private var refusedNanos: UInt64 = 0
    private static let latelyNanos: UInt64 = 2_000_000_000

    struct Refusal {
        /// `RedisFault.Code.name`.
        var code: String
        var lastNanos: UInt64
    }

    /// A log line by its text and cause.
    private struct Line: Hashable {
        var text: UInt
        var code: String

        init(_ text: StaticString, _ code: String) {
            self.text = UInt(bitPattern: text.utf8Start)
            self.code = code
        }
    }

    init(log: Log, counts: UnstoredCounts) {
        self.log = log
        self.counts = counts
    }

    /// A write was refused.
    func refused(_ fault: RedisFault, nowNanos: UInt64) {
        if fault.isLasting {
            return report(
                fault, "a key of this worker is broken: the badge of its user is frozen", nowNanos: nowNanos)
        }
        refusedNanos = nowNanos
        refusal = Refusal(code: fault.code.name, lastNanos: nowNanos)
        counts.wasRefused(nowNanos: nowNanos)
        report(fault, "Redis refuses writes: pushes have no badge until it accepts them", nowNanos: nowNanos)
    }

    /// A write was refused a moment ago, even if another was accepted since: one node of a cluster may be full.
    func refusesSome(nowNanos: UInt64) -> Bool {
        refusal != nil || (refusedNanos != 0 && nowNanos &- refusedNanos < Self.latelyNanos)
    }

    /// Whether work that waits for Redis to take its writes may still wait: it is tried again within this time.
    func mayHoldWork(nowNanos: UInt64) -> Bool {
        refusal != nil || (refusedNanos != 0 && nowNanos &- refusedNanos < UnstoredCounts.pauseNanos)
    }

    /// A write was accepted.
    func taken(nowNanos: UInt64) {
        if refusal == nil { return }
        refusal = nil
        let text: StaticString = "Redis accepts writes again"
        guard let suppressed = limiter.admit(Line(text, ""), nowNanos: nowNanos) else { return }
        log.info(text, ["suppressed": .int(Int(clamping: suppressed))])
    }

    /// Nothing is left to write, so no answer will show the state; the next write will.
    func forgetIfOld(nowNanos: UInt64) {
        if let refusal, nowNanos &- refusal.lastNanos > Self.forgetNanos { self.refusal = nil }
    }

    /// Logs a fault, unless its cause has just been logged. The server's own text may quote a key, so it is left out.
    ///
    /// - Parameter key: which key it is, with its owner.
    func report(
        _ fault: RedisFault, _ text: StaticString, key: @autoclosure () -> String? = nil, nowNanos: UInt64
    ) {
        guard let suppressed = limiter.admit(Line(text, fault.code.name), nowNanos: nowNanos) else { return }
        let (code, left) = (LogValue.string(fault.code.name), LogValue.int(Int(clamping: suppressed)))
        if let key = key() {
            log.error(text, ["key": .string(key), "code": code, "suppressed": left])
        } else {
            log.error(text, ["code": code, "suppressed": left])
        }
    }
}

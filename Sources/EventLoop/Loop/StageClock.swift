// SPDX-License-Identifier: Apache-2.0
public import Telemetry

/// Attributes the processor time of a loop's thread to the stages of its work.
///
/// Code that begins another kind of work calls `enter`; the time until the next call belongs to that stage. A call
/// costs a clock reading, and a turn has a few dozen. The time of other threads on the same processor does not count. A loop without a stage clock (the default) pays a comparison with
/// nil.
public final class StageClock {
    /// The stages of a record's path in a worker, and the rest.
    public enum Stage: Int, CaseIterable, Sendable {
        /// The loop waits for the kernel.
        case idle
        /// Timers, jobs of other threads, and unattributed work.
        case other
        /// Polling and parsing records, and creating their recipients.
        case read
        /// Reading the state of recipients, request and answer.
        case lookup
        case decide
        /// Duplicate check, badge and token owner, request and answer.
        case claim
        /// Building pushes.
        case render
        /// Sending pushes to APNs: HTTP/2, TLS, the kernel, and the answers.
        case send
        /// Outcomes, output records, marks, settled offsets.
        case record
        /// Bytes from and to Redis.
        case redis

        public var name: String { "\(self)" }
        /// All stages except waiting.
        public static var work: [Stage] { allCases.filter { $0 != .idle } }
    }

    private var stage = Stage.idle
    private let nowNanos: () -> UInt64
    private var sinceNanos: UInt64
    private let cells: [Counter]
    private let turns: Counter

    /// Counts into `carillon_stage_seconds_total{stage}`, without waiting, and into `carillon_turns_total`.
    ///
    /// - Parameter nowNanos: the clock, read now; by default the thread's processor time.
    public init(_ registry: MetricsRegistry, nowNanos: @escaping () -> UInt64 = Loop.threadNanos) {
        self.nowNanos = nowNanos
        sinceNanos = nowNanos()
        turns = registry.counter("carillon_turns_total", help: "Turns of the shards' loops.")
        cells = Stage.allCases.map { stage in
            if stage == .idle { return Counter() }
            return registry.counter(
                "carillon_stage_seconds_total", help: "Processor time of the shards' threads by stage.",
                labels: [("stage", stage.name)], scale: 1e-9)
        }
    }

    /// Attributes the time from now on to `next`.
    public func enter(_ next: Stage) {
        if next == stage { return }
        let now = nowNanos()
        cells[stage.rawValue].add(now &- sinceNanos)
        sinceNanos = now
        stage = next
        if next == .idle { turns.add() }
    }
}

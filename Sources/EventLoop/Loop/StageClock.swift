public import Telemetry

/// Shares the time of a loop's thread out among the stages of what it does, for who wants to know where it goes.
///
/// Whoever begins another kind of work says so; the time until the next such word is that stage's. A word costs a reading of
/// the clock, and a turn has a few dozen of them. A loop without one (the usual) pays a comparison with nil.
public final class StageClock {
    /// The stages of a record's path in a worker, and what is none of them.
    public enum Stage: Int, CaseIterable, Sendable {
        /// The loop waits for the kernel; no work.
        case idle
        /// Timers, jobs of other threads, what nobody named.
        case other
        /// Records taken from Kafka, parsed, shared out among their recipients.
        case read
        /// State of recipients asked for, and its answers read.
        case lookup
        case decide
        /// Duplicate check, badge and owner of the token: asked for, and answered.
        case claim
        /// Pushes made.
        case render
        /// Pushes handed to APNs: HTTP/2, TLS, the kernel, and the answers.
        case send
        /// Outcomes, records out, marks, settled offsets.
        case record
        /// Bytes from and to Redis.
        case redis

        public var name: String { "\(self)" }
        /// Those that are work.
        public static var work: [Stage] { allCases.filter { $0 != .idle } }
    }

    private var stage = Stage.idle
    private var sinceNanos = Loop.monotonicNanos()
    private let cells: [Counter]
    private let turns: Counter

    /// Counts in `carillon_stage_seconds_total{stage}`, waiting not shown, and in `carillon_turns_total`.
    public init(_ registry: MetricsRegistry) {
        turns = registry.counter("carillon_turns_total", help: "Turns of the shards' loops.")
        cells = Stage.allCases.map { stage in
            if stage == .idle { return Counter() }
            return registry.counter(
                "carillon_stage_seconds_total", help: "Time of the shards' threads by stage, while they did not wait.",
                labels: [("stage", stage.name)], scale: 1e-9)
        }
    }

    /// What follows is that stage's.
    public func enter(_ next: Stage) {
        if next == stage { return }
        let now = Loop.monotonicNanos()
        cells[stage.rawValue].add(now &- sinceNanos)
        sinceNanos = now
        stage = next
        if next == .idle { turns.add() }
    }
}

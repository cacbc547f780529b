// SPDX-License-Identifier: Apache-2.0
import EventLoop
import JSON
import Processes

/// The waiting time of one-to-one messages by step in a phase, and the use of the processors.
struct BesideStages {
    /// Waiting time of one-to-one messages in milliseconds, from the slowest worker.
    struct Wait {
        var step: String
        var p50Ms: Double
        var p99Ms: Double
    }

    /// Threads of one kind: the part of a processor that they used, and the part of the time that they were runnable
    /// but not running.
    struct Share {
        var name: String
        var busy: Double
        var delayed: Double
    }

    var waits: [Wait] = []
    var shares: [Share] = []
    /// CPU per push of the workers' shards, from the kernel's accounting.
    var stageMicros: [(stage: StageClock.Stage, micros: Double)] = []
    var otherThreadsMicros = 0.0
    /// Turns of all shards.
    var turnsPerSecond = 0.0
    /// Processor time from the end of one kernel wait to the next.
    var turnMicros = 0.0

    /// In the order of a push's path.
    private static let steps = ["kafka", "start", "lookup", "claim", "push"]

    init(from start: BenchMark, to end: BenchMark, pushes: Int) {
        for step in Self.steps {
            func worst(_ q: Double) -> Double {
                end.metrics.compactMap {
                    $0.quantile(q, of: "carillon_step_seconds", "step=\"\(step)\"", "lane=\"direct\"")
                }.max().map { $0 * 1000 } ?? .nan
            }
            waits.append(Wait(step: step, p50Ms: worst(0.5), p99Ms: worst(0.99)))
        }
        let seconds = Double(end.nanos &- start.nanos) / 1e9
        let turns = end.sum("carillon_turns_total") - start.sum("carillon_turns_total")
        var parts = StageClock.Stage.work.map { (stage: $0, micros: end.seconds($0) - start.seconds($0)) }
        let wall = max(parts.reduce(0) { $0 + $1.micros }, 1e-9)
        turnsPerSecond = turns / seconds
        turnMicros = wall * 1e6 / max(turns, 1)
        takeShares(from: start, to: end, seconds)
        let all = Double(max(1, pushes))
        let shards = (shares.first { $0.name == "shards" }?.busy ?? 0) * seconds * 1e6 / all
        otherThreadsMicros = (shares.first { $0.name == "workers' other threads" }?.busy ?? 0) * seconds * 1e6 / all
        for place in parts.indices { parts[place].micros *= shards / wall }
        stageMicros = parts
    }

    private mutating func takeShares(from start: BenchMark, to end: BenchMark, _ seconds: Double) {
        var sums: [String: (busy: Double, delayed: Double)] = [:]
        func add(_ first: ProcessUsage, _ last: ProcessUsage, _ name: (String) -> String) {
            let before = Dictionary(first.threads.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
            for thread in last.threads {
                let was = before[thread.id]
                let name = name(thread.name)
                sums[name, default: (0, 0)].busy += Double(thread.cpuNanos &- (was?.cpuNanos ?? 0)) / 1e9
                sums[name, default: (0, 0)].delayed += Double(thread.delayNanos &- (was?.delayNanos ?? 0)) / 1e9
            }
        }
        for (first, last) in zip(start.workers, end.workers) {
            add(first, last) { $0.hasPrefix("shard-") ? "shards" : "workers' other threads" }
        }
        add(start.redis, end.redis) { _ in "redis-server" }
        add(start.own, end.own) { $0 == "simulator" ? $0 : $0.hasPrefix("rdk:") ? "broker and clients" : "this bench" }
        shares = sums.sorted { $0.value.busy > $1.value.busy }.map {
            Share(name: $0.key, busy: $0.value.busy / seconds, delayed: $0.value.delayed / seconds)
        }
    }

    // MARK: - Text

    func text(_ name: String) -> String {
        func fixed(_ value: Double, _ digits: Int = 1) -> String {
            value.isNaN ? "–" : BenchText.fixed(value, digits: digits)
        }
        let steps = waits.map { "\($0.step) \(fixed($0.p50Ms)) / \(fixed($0.p99Ms))" }
        var text = "      \(name), ms p50 / p99 by step: \(steps.joined(separator: ", "))\n"
        text +=
            "      \(BenchText.rounded(turnsPerSecond)) turns/s of \(BenchText.rounded(turnMicros)) µs; processors: "
        let parts = shares.map { "\($0.name) \(fixed($0.busy, 2)) (+\(fixed($0.delayed, 2)) kept waiting)" }
        text += parts.joined(separator: ", ") + "\n"
        let stages = stageMicros.map { "\($0.stage.name) \(fixed($0.micros, 2))" }
        text += "      µs per push: \(stages.joined(separator: ", ")), other threads \(fixed(otherThreadsMicros, 2))\n"
        return text
    }

    // MARK: - JSON

    func write(to writer: inout JSONWriter) {
        writer.object("steps_ms") { writer in
            for wait in waits {
                writer.key(escaping: wait.step)
                writer.object { $0.figures([("p50", wait.p50Ms), ("p99", wait.p99Ms)]) }
            }
        }
        writer.object("processors") { writer in
            for share in shares {
                writer.key(escaping: share.name)
                writer.object { $0.figures([("busy", share.busy), ("kept_waiting", share.delayed)]) }
            }
        }
        writer.object("stages_us") { writer in
            for part in stageMicros {
                writer.key(escaping: part.stage.name)
                writer.figure(part.micros)
            }
        }
        writer.figures([
            ("other_threads_us", otherThreadsMicros), ("turns_per_second", turnsPerSecond), ("turn_us", turnMicros),
        ])
    }
}

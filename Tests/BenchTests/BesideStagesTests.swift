// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Processes
import Testing

@testable import Bench

/// Where one-to-one messages wait, and who had the processors.
@Suite struct BesideStagesTests {
    private static func thread(_ id: Int32, _ name: String, busyMs: UInt64, delayedMs: UInt64 = 0)
        -> ProcessUsage.Thread
    {
        ProcessUsage.Thread(id: id, name: name, cpuNanos: busyMs * 1_000_000, delayNanos: delayedMs * 1_000_000)
    }

    private static func mark(atMs: UInt64, worker: [ProcessUsage.Thread], metrics: String) -> BenchMark {
        BenchMark(
            nanos: atMs * 1_000_000, workers: [ProcessUsage(threads: worker)],
            redis: ProcessUsage(threads: [thread(9, "redis-server", busyMs: atMs / 2)]),
            own: ProcessUsage(threads: [thread(3, "simulator", busyMs: atMs / 4), thread(4, "rdk:main", busyMs: 0)]),
            metrics: [MetricsText(metrics)])
    }

    @Test func shareAndStagesAreOfThePhaseAlone() throws {
        let start = Self.mark(
            atMs: 1000, worker: [Self.thread(1, "shard-0", busyMs: 100)],
            metrics: "carillon_turns_total 10\ncarillon_stage_seconds_total{stage=\"claim\"} 1\n")
        let metrics = """
            carillon_turns_total 110
            carillon_stage_seconds_total{stage="claim"} 1.3
            carillon_stage_seconds_total{stage="send"} 0.1
            carillon_step_seconds_bucket{step="lookup",lane="direct",le="0.01"} 50
            carillon_step_seconds_bucket{step="lookup",lane="direct",le="0.02"} 100
            carillon_step_seconds_bucket{step="lookup",lane="direct",le="+Inf"} 100
            carillon_step_seconds_bucket{step="lookup",lane="bulk",le="+Inf"} 900

            """
        let end = Self.mark(
            atMs: 2000,
            worker: [
                Self.thread(1, "shard-0", busyMs: 300, delayedMs: 50), Self.thread(2, "rdk:main", busyMs: 20),
            ],
            metrics: metrics)
        let stages = BesideStages(from: start, to: end, pushes: 1000)
        #expect(stages.turnsPerSecond == 100 && abs(stages.turnMicros - 4000) < 0.1)
        let claim = try #require(stages.stageMicros.first { $0.stage == .claim })
        // Three quarters of the shard's 200 ms.
        #expect(abs(claim.micros - 150) < 0.1 && abs(stages.otherThreadsMicros - 20) < 0.1)
        let shard = try #require(stages.shares.first { $0.name == "shards" })
        #expect(abs(shard.busy - 0.2) < 0.001 && abs(shard.delayed - 0.05) < 0.001)
        let lookup = try #require(stages.waits.first { $0.step == "lookup" })
        #expect(abs(lookup.p50Ms - 10) < 0.001 && abs(lookup.p99Ms - 19.8) < 0.001)
        #expect(stages.waits.first { $0.step == "claim" }?.p50Ms.isNaN == true)
        #expect(stages.text("alone").contains("claim – / –, push"))
    }

    @Test func aHistogramsQuantileLiesBetweenItsBounds() {
        let text = MetricsText(
            """
            a_bucket{x="1",le="1"} 0
            a_bucket{x="1",le="2"} 10
            a_bucket{x="1",le="+Inf"} 20
            ab_bucket{x="1",le="1"} 5

            """)
        #expect(text.quantile(0.25, of: "a") == 1.5 && text.quantile(0.25, of: "a", "x=\"1\"") == 1.5)
        // Above the last bound there is nothing to say.
        #expect(text.quantile(0.99, of: "a") == 2)
        #expect(text.quantile(0.5, of: "a", "x=\"2\"") == nil && text.quantile(0.5, of: "b") == nil)
    }
}

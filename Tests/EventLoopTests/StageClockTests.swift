// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import Support
import Telemetry
import Testing

/// Whose the time of a loop's thread is.
struct StageClockTests {
    private static func seconds(_ registry: MetricsRegistry, _ stage: StageClock.Stage) -> Double {
        let text = MetricsText(String(decoding: registry.exposition(), as: UTF8.self))
        return text.sum("carillon_stage_seconds_total", "stage=\"\(stage.name)\"")
    }

    @Test func theTimeUntilTheNextWordIsThatStages() {
        let registry = MetricsRegistry()
        let clock = StageClock(registry)
        clock.enter(.claim)
        let began = Loop.threadNanos()
        while Loop.threadNanos() - began < 2_000_000 {}
        // Said again it changes nothing.
        clock.enter(.claim)
        clock.enter(.idle)
        let spun = Double(Loop.threadNanos() - began) / 1e9
        #expect(Self.seconds(registry, .claim) >= 0.002 && Self.seconds(registry, .claim) <= spun + 0.001)
        for stage in StageClock.Stage.work where stage != .claim { #expect(Self.seconds(registry, stage) == 0) }
        // Waiting is nobody's, and not shown.
        clock.enter(.other)
        #expect(Self.seconds(registry, .idle) == 0 && !StageClock.Stage.work.contains(.idle))
    }

    @Test func aWaitForTheKernelIsNoTimeOfItsStage() {
        let registry = MetricsRegistry()
        let clock = StageClock(registry)
        clock.enter(.send)
        let began = Loop.monotonicNanos()
        poll(nil, 0, 50)
        clock.enter(.idle)
        let waited = Double(Loop.monotonicNanos() - began) / 1e9
        #expect(waited >= 0.05 && Self.seconds(registry, .send) < waited / 2)
    }

    @Test func aLoopCountsItsOwnWork() async throws {
        let registry = MetricsRegistry()
        let loop = try Loop(name: "timed")
        loop.start()
        let facts = Facts<Int>()
        loop.post { [unowned loop] in
            loop.stageClock = StageClock(registry)
            facts.record(0)
        }
        for number in 1...3 { loop.post { facts.record(number) } }
        for number in 0...3 { #expect(try await facts.next() == number) }
        // A turn is counted at its end, so before the next one.
        loop.post { facts.record(4) }
        #expect(try await facts.next() == 4)
        loop.stop()
        #expect(Self.seconds(registry, .other) > 0 && Self.seconds(registry, .send) == 0)
        let text = MetricsText(String(decoding: registry.exposition(), as: UTF8.self))
        #expect((1...5).contains(text.sum("carillon_turns_total")))
    }
}

import JSON
import LocalServers
import Processes
import Simulator
import StageWords
import Support
import Testing
import Worker

/// A machine whose clock is wrong.
@Suite struct ClockFaultTests {
    private static let dayMs: Int64 = 86_400_000

    @Test func aWorkerThatStartsADayAheadReadsNothingUntilItsClockIsRight() async throws {
        let stage = try await Stage()
        do {
            let clock = WallClock()
            clock.move(byMs: 2 * Self.dayMs)
            try await stage.startWorker(wallClock: clock, waits: false)
            let crowd = Crowd(name: "ahead", count: 20)
            try await stage.writeState(crowd.binds)
            try await stage.writeEvents(crowd.messages)
            try await until("/readyz says why") {
                let page = try await stage.page("/readyz")
                return page.status == 503
                    && page.text.contains("clock: down: this machine's clock is 172800 s ahead of Redis")
            }
            try await until("the group has shared out") { await Self.partitions(try await stage.worker) == 8 }
            #expect(await Stage.settled(try await stage.worker) == 0)
            clock.move(byMs: -2 * Self.dayMs)
            try await until("everyone is pushed") {
                !crowd.accepted(await stage.world.simulator.entries).contains(0)
            }
            try await until("/readyz is well") { try await stage.page("/readyz").status == 200 }
            let seen = try await stage.look()
            #expect(!seen.results.contains { $0["verdict"]?.string == "expired" })
        } catch {
            await stage.close()
            throw error
        }
        await stage.close()
    }

    @Test func aClockThatJumpsExpiresNothing() async throws {
        let stage = try await Stage()
        do {
            let clock = WallClock()
            try await stage.startWorker(wallClock: clock)
            let crowd = Crowd(name: "jump", count: 20)
            try await stage.play(state: crowd.binds)
            clock.move(byMs: 120_000)
            try await until("/readyz shows that it is off") {
                let page = try await stage.page("/readyz")
                return page.status == 200 && page.text.contains("clock: degraded")
            }
            clock.move(byMs: Self.dayMs)
            try await stage.writeEvents(crowd.messages)
            try await until("/readyz shows that it is wrong") {
                try await stage.page("/readyz").text.contains("clock: down")
            }
            clock.move(byMs: -Self.dayMs - 120_000)
            try await until("everyone is pushed") {
                !crowd.accepted(await stage.world.simulator.entries).contains(0)
            }
            let seen = try await stage.look()
            #expect(!seen.results.contains { $0["verdict"]?.string == "expired" })
            try await until("the log says that it is right again") {
                try stage.logText().contains("this machine's clock is right again")
            }
        } catch {
            await stage.close()
            throw error
        }
        await stage.close()
    }

    private static func partitions(_ worker: WorkerProcess) async -> Int {
        await worker.status().shards.reduce(0) { $0 + $1.assignedPartitions }
    }
}

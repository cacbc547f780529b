import Foundation
import LocalServers
import Processes
import Simulator
import StageWords
import Support
import Testing

/// What a push to one device costs, counted and not timed.
struct PushCostTests {
    private static let users = 500

    /// Of the whole process, librdkafka included, and without the optimizer: a release build asks for 37 (`carillon bench
    /// --stages`).
    private static let piecesMax = 250.0
    /// Three to read, three to claim, one to mark; the rest is what a worker asks now and then.
    private static let commandsMax = 9.0

    @Test func aPushAsksForFewPiecesOfMemoryAndCommandsOfRedis() async throws {
        var settings = LocalCluster.Settings.oneShard
        settings.lines = "trace: {sample: 0}\n"
        try await Stage.bare(settings) { stage in
            let worker = try await WorkerRun(stage, option: "--stage-times", preload: "libjemalloc.so.2")
            try await stage.writeState((0..<Self.users).map { .bind("cost-\($0)") })
            try await until("all is bound") {
                try await worker.metrics().sum("carillon_events_settled_total") >= Double(Self.users)
            }
            // The first push after a bind asks who else has had the token.
            try await Self.push(stage, "first")
            try await Self.awaitResults(stage, Self.users)
            let before = try await Self.cost(stage, worker)
            for series in ["second", "third"] { try await Self.push(stage, series) }
            try await Self.awaitResults(stage, 3 * Self.users)
            let after = try await Self.cost(stage, worker)
            let pushes = Double(2 * Self.users)
            let pieces = (after.pieces - before.pieces) / pushes
            let commands = (after.commands - before.commands) / pushes
            print("a push: \(pieces) pieces of memory, \(commands) commands")
            #expect(before.pieces > 0, "nobody counts")
            #expect(pieces <= Self.piecesMax)
            #expect(commands >= 6 && commands <= Self.commandsMax)
            #expect(await stage.world.simulator.counters.accepted == 3 * Self.users)
            #expect(try await worker.drain() == 0)
        }
    }

    private static func push(_ stage: Stage, _ series: String) async throws {
        try await stage.writeEvents((0..<users).map { .message("\(series)-\($0)", to: ["cost-\($0)"]) })
    }

    /// Without a question to the worker: its pages ask for memory too.
    private static func awaitResults(_ stage: Stage, _ count: Int) async throws {
        _ = try await stage.look(until: "\(count) results") { $0.results.count == count }
    }

    private static func cost(_ stage: Stage, _ worker: WorkerRun) async throws -> (pieces: Double, commands: Double) {
        let stats = try await stage.redisText("INFO stats")
        guard let at = stats.firstRange(of: "total_commands_processed:"),
            let commands = Double(stats[at.upperBound...].prefix { $0.isNumber })
        else { throw SetupFault("Redis counts no commands") }
        return (try await worker.metrics().sum("carillon_allocations_total"), commands)
    }
}

// SPDX-License-Identifier: Apache-2.0
import SimulatedSystem
import Simulator
import Support
import Testing
import VirtualStage

/// What a push to one device costs, counted and not timed: the same in each run.
@Suite struct PushCostTests {
    private static let users = 100
    /// In the turns of the worker's loops, without the optimizer: a release build asks for much less (`carillon bench --stages`).
    private static let piecesMax = 330.0
    /// Three to read, three to claim, one to mark; the rest is what a worker asks now and then.
    private static let commandsMax = 9.0

    @Test func aPushAsksForFewPiecesOfMemoryAndCommandsOfRedis() throws {
        var settings = LocalCluster.Settings.oneShard
        settings.lines = "trace: {sample: 0}\n"
        try Stage.with(settings) { stage in
            var asked: UInt64 = 0
            try stage.worker.seat.process.aroundTurn = { turn in asked += CountedWork.of(turn).allocations }
            // The first push after a bind asks who else has had the token.
            try stage.play(state: (0..<Self.users).map { .bind("cost-\($0)") }, events: Self.messages("first"))
            let before = (pieces: asked, commands: try Self.commands(stage))
            for series in ["second", "third"] { try stage.play(events: Self.messages(series)) }
            let pushes = Double(2 * Self.users)
            let pieces = Double(asked - before.pieces) / pushes
            let commands = Double(try Self.commands(stage) - before.commands) / pushes
            print("a push: \(pieces) pieces of memory, \(commands) commands")
            #expect(pieces > 0 && pieces <= Self.piecesMax)
            #expect(commands >= 6 && commands <= Self.commandsMax)
            #expect(stage.apns.counters.accepted == 3 * Self.users)
        }
    }

    private static func messages(_ series: String) -> [Line] {
        (0..<users).map { .message("\(series)-\($0)", to: ["cost-\($0)"]) }
    }

    /// Commands that Redis has taken.
    private static func commands(_ stage: Stage) throws -> Int {
        try stage.redisText("INFO commandstats").split(separator: "calls=").dropFirst()
            .compactMap { Int($0.prefix { $0.isNumber }) }.reduce(0, +)
    }
}

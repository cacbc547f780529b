// SPDX-License-Identifier: Apache-2.0
import SimulatedSystem
import Simulator
import Support
import Testing
import VirtualStage

/// What a push to one device costs, counted and not timed: the same in each run.
@Suite struct PushCostTests {
    private static let users = 100

    /// Recipients of a message.
    @Test(arguments: [("a push to one user", 1), ("a push to one of fifty", 50)])
    func aPushAsksForFewPiecesOfMemoryAndCommandsOfRedis(name: String, recipients: Int) throws {
        var settings = LocalCluster.Settings.oneShard
        settings.lines = "trace: {sample: 0}\n"
        try Stage.with(settings) { stage in
            // In the turns of the worker's loops.
            var asked: UInt64 = 0
            try stage.worker.seat.process.aroundTurn = { turn in asked += CountedWork.of(turn).allocations }
            let messages = { Self.messages($0, recipients) }
            // The first push after a bind asks who else has had the token.
            try stage.play(state: (0..<Self.users).map { .bind("cost-\($0)") }, events: messages("first"))
            let before = (pieces: asked, commands: try Self.commands(stage))
            for series in ["second", "third"] { try stage.play(events: messages(series)) }
            let pushes = Double(2 * Self.users)
            let pieces = Double(asked - before.pieces) / pushes
            let commands = Double(try Self.commands(stage) - before.commands) / pushes
            print("\(name): \(pieces) pieces of memory, \(commands) commands")
            #expect(try Sanitizer.isOn || pieces > 0 && pieces <= Limits.limit("allocations: " + name))
            #expect(try commands >= 5 && commands <= Limits.limit("commands: " + name))
            #expect(stage.apns.counters.accepted == 3 * Self.users)
        }
    }

    private static func messages(_ series: String, _ recipients: Int) -> [Line] {
        stride(from: 0, to: users, by: recipients).map { first in
            .message("\(series)-\(first)", to: (first..<first + recipients).map { "cost-\($0)" })
        }
    }

    /// Commands that Redis has taken.
    private static func commands(_ stage: Stage) throws -> Int {
        try stage.redisText("INFO commandstats").split(separator: "calls=").dropFirst()
            .compactMap { Int($0.prefix { $0.isNumber }) }.reduce(0, +)
    }
}

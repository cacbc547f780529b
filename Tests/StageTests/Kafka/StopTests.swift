// SPDX-License-Identifier: Apache-2.0
import StageWords
import Testing
import VirtualStage

/// A worker that ends in order.
@Suite struct StopTests {
    /// Both stop while the group may be forming again, at any moment of their start or of their work.
    @Test(arguments: [0, 20, 100, 300, 700, 1_500, 3_100, 3_500, 6_000])
    func allThatIsAppliedIsCommitted(milliseconds: Int) throws {
        try Stage.with { stage in
            let users = (0..<400).map { "u\($0)" }
            let first = try stage.worker
            let second = try stage.startWorker(waits: false)
            try stage.writeState(users.map { .bind($0) })
            stage.wait(.milliseconds(milliseconds))
            #expect(try stage.stop(first))
            stage.wait(.milliseconds(milliseconds % 1_000))
            #expect(try stage.stop(second))
            let applied = users.count { stage.redis.inline("EXISTS c:u:{im:\($0)}") == Array(":1\r\n".utf8) }
            #expect(stage.committedRecords(of: "im.user-state") == applied)
        }
    }
}

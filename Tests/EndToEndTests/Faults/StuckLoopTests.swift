// SPDX-License-Identifier: Apache-2.0
import Glibc
import LocalServers
import StageWords
import Support
import Synchronization
import Testing

@testable import Worker

/// A shard whose loop hangs, for example in a file of a mount that is gone.
@Suite(.timeLimit(.minutes(10)))
struct StuckLoopTests {
    @Test func aShardThatDoesNotTurnIsNotReadyInTheMetricsToo() async throws {
        try await Stage.with(.oneShard) { stage in
            let shard = try #require(await stage.worker.shards.first)
            #expect(try await stage.metric("carillon_ready", #"part="process""#) == 1)
            let hang = Hang()
            let hung = Task { await shard.wait(for: hang) }
            try await until("the process is not ready") {
                try await stage.metric("carillon_ready", #"part="process""#) == 0
            }
            #expect(try await stage.page("/readyz").status == 503)
            hang.isOver.store(true, ordering: .relaxed)
            await hung.value
            try await until("the process is ready again") {
                try await stage.metric("carillon_ready", #"part="process""#) == 1
            }
        }
    }
}

private final class Hang: Sendable {
    let isOver = Atomic(false)
}

extension Shard {
    /// Blocks its thread.
    fileprivate func wait(for hang: Hang) {
        while !hang.isOver.load(ordering: .relaxed) { usleep(10_000) }
    }
}

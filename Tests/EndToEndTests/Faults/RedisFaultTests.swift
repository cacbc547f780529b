// SPDX-License-Identifier: Apache-2.0
import JSON
import LocalServers
import Processes
import Simulator
import StageWords
import Support
import Testing

/// Redis away at the start and in the middle: waited for, told, and nothing lost.
@Suite struct RedisFaultTests {
    @Test func redisMayComeLateAndGoAway() async throws {
        let stage = try await Stage()
        do {
            try await play(stage)
        } catch {
            stage.world.redis.thaw()
            await stage.close()
            throw error
        }
        await stage.close()
    }

    private func play(_ stage: Stage) async throws {
        let crowd = Crowd(name: "redis", count: 400)
        let redis = stage.world.redis
        redis.freeze()
        let worker = try await stage.startWorker(waits: false)
        try await until("/readyz misses Redis") {
            let page = try await stage.page("/readyz")
            return page.status == 503 && page.text.contains("no connection to Redis")
        }
        #expect(try await stage.page("/livez").status == 200)
        redis.thaw()
        try await until("/readyz is well") { try await stage.page("/readyz").status == 200 }
        try await stage.world.awaitGroup(of: [worker])
        try await stage.play(state: crowd.binds)

        // Links cut under load, scripts forgotten, and a silence longer than `timeout_ms`.
        try await stage.writeEvents(Array(crowd.messages.prefix(200)))
        for _ in 0..<5 {
            try await stage.redis(["CLIENT KILL TYPE normal SKIPME yes", "SCRIPT FLUSH"])
            try await Task.sleep(for: .milliseconds(30), tolerance: .zero)
        }
        redis.freeze()
        try await stage.writeEvents(Array(crowd.messages.suffix(200)))
        try await until("the silence is noticed") { try await stage.page("/readyz").status == 503 }
        redis.thaw()
        try await until("everyone has a result") {
            Set(try await stage.look().results.compactMap { $0["uid"]?.string }).count == crowd.count
        }
        let seen = try await stage.look()
        crowd.expectOnceEach(seen, "with badge 1 each")
        try await until("/readyz is well again") { try await stage.page("/readyz").status == 200 }
    }
}

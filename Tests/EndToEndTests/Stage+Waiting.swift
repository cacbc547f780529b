// SPDX-License-Identifier: Apache-2.0
import LocalServers
import StageWords
import Support

extension Stage {
    /// Makes a stage without a worker, runs a closure on it and ends it, whichever way the closure ended.
    static func bare(
        _ settings: LocalCluster.Settings = LocalCluster.Settings(), _ body: (Stage) async throws -> Void
    ) async throws {
        let stage = try await Stage(settings)
        do {
            try await body(stage)
        } catch {
            stage.world.redis.thaw()
            await stage.close()
            throw error
        }
        await stage.close()
    }

    /// Waits until what came out holds what is wanted, and gives it.
    nonisolated func look(until what: String, _ holds: (Seen) throws -> Bool) async throws -> Seen {
        var seen = Seen()
        try await until(what) {
            seen = try await look()
            return try holds(seen)
        }
        return seen
    }
}

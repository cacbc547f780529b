import JSON
import LocalServers
import Processes
import Simulator
import Support
import Testing

/// A worker whose Redis is the master that Sentinels name, which dies under load.
@Suite struct SentinelFailoverTests {
    @Test func aFailoverUnderLoadCostsAtMostWhatWasNotCopied() async throws {
        var settings = LocalCluster.Settings()
        settings.usesSentinels = true
        try await Stage.with(settings) { stage in
            guard let group = stage.world.sentinels else { throw SetupFault("there are no Sentinels") }
            let crowd = Crowd(name: "fail", count: 400)
            try await stage.play(state: crowd.binds)
            try await group.awaitReplica(1)
            async let written: Void = stage.writeEvents(crowd.messages)
            try await until("some are pushed") { await stage.world.simulator.entries.count > 20 }
            group.servers[0].kill()
            try await until("/readyz misses Redis") { try await stage.page("/readyz").status == 503 }
            try await group.awaitMaster(otherThan: group.servers[0])
            try await written
            try await stage.settle()
            try await until("/readyz is well") { try await stage.page("/readyz").status == 200 }
            let seen = try await stage.look()
            let accepted = crowd.accepted(seen.pushes)
            #expect(accepted.count { $0 == 0 } == 0, "nobody is left out")
            let extra = accepted.reduce(0) { $0 + max(0, $1 - 1) }
            let without = seen.results.count { $0["verdict"]?.string == "accepted" && $0["badge"]?.int == nil }
            #expect(extra <= 40, "a push too many only for who was in hand")
            print("Sentinel failover: \(extra) extra pushes of \(crowd.count), \(without) without a badge")
        }
    }
}

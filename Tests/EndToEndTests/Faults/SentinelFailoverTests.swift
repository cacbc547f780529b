// SPDX-License-Identifier: Apache-2.0
import JSON
import LocalServers
import Processes
import Simulator
import StageWords
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
            // In the log it stays; of a quick failover /readyz may tell nothing to who looks late.
            try await until("the worker misses Redis") { try stage.logText().contains("lost Redis") }
            try await group.awaitMaster(otherThan: group.servers[0])
            try await written
            try await stage.settle()
            try await until("/readyz is well") { try await stage.page("/readyz").status == 200 }
            crowd.expectAtMostWhatWasNotCopied(try await stage.look(), "Sentinel failover")
        }
    }

    /// The records of the binds are committed, and the new master never heard of them: the worker makes them once more.
    @Test func bindsThatADeadMasterHadNotCopiedAreMadeAgain() async throws {
        var settings = LocalCluster.Settings()
        settings.usesSentinels = true
        try await Stage.with(settings) { stage in
            guard let group = stage.world.sentinels else { throw SetupFault("there are no Sentinels") }
            // A replica that was cut off for ten times as long would not be made master.
            for index in 0..<3 {
                let line = "SENTINEL SET \(SentinelGroup.masterName) down-after-milliseconds 3000"
                _ = try await offPool { try group.ask(index, line) }
            }
            let phones = Handover(name: "uncopied", count: 40)
            try await stage.play(state: phones.firstBinds)
            try await group.awaitReplica(1)
            try await group.servers[1].cutFromMaster(group.servers[0])
            try await stage.play(state: phones.secondBinds)
            group.servers[0].kill()
            try await group.awaitMaster(otherThan: group.servers[0])
            try await until("/readyz is well") { try await stage.page("/readyz").status == 200 }
            try await until("the changes are made once more") {
                try stage.logText().contains("repeating their newest changes")
            }
            try await stage.writeEvents(phones.messages)
            try await stage.settle()
            phones.expectOwnersOnly(try await stage.look())
        }
    }
}

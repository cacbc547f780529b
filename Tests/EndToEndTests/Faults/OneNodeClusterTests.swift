// SPDX-License-Identifier: Apache-2.0
import LocalServers
import Processes
import StageWords
import Support
import Testing

/// A server in cluster mode that is named by itself, as one server.
@Suite struct OneNodeClusterTests {
    private static let users = (0..<40).map { "k\($0)" }

    /// As a node of a cluster does, and proxies that share keys out over several servers.
    @Test func aServerThatWantsTheKeysOfACallInOneSlotIsAskedOneByOne() async throws {
        var settings = LocalCluster.Settings()
        settings.redisArguments = ["--cluster-enabled", "yes", "--cluster-port", String(try Ports.free())]
        let stage = try await Stage(settings)
        try await stage.redis(["CLUSTER ADDSLOTSRANGE 0 16383"])
        do {
            try await until("the node serves its slots") {
                try await stage.redisText("CLUSTER INFO").contains("state:ok")
            }
            try await stage.startWorker()
            try await stage.play(state: Self.users.map { .bind($0) })
            for number in 1...2 {
                let message = "k-\(number)"
                let seen = try await stage.play(events: [.message(message, to: Self.users, conv: "k", type: "group")])
                #expect(seen.outcomes(of: message) == Self.users.map { "\($0)/phone accepted ok \(number)" }.sorted())
                #expect(seen.doubled.isEmpty)
            }
            #expect(try stage.logText().contains("claims are sent one by one"))
        } catch {
            await stage.close()
            throw error
        }
        await stage.close()
    }

    @Test func slotsThatGoElsewhereMakeTheWorkerNotReadyAndDecideNothing() async throws {
        var settings = LocalCluster.Settings()
        settings.redisArguments = [
            "--cluster-enabled", "yes", "--cluster-port", String(try Ports.free()), "--cluster-require-full-coverage",
            "no",
        ]
        let stage = try await Stage(settings)
        do {
            try await stage.redis(["CLUSTER ADDSLOTSRANGE 0 16383"])
            try await until("the node serves its slots") {
                try await stage.redisText("CLUSTER INFO").contains("state:ok")
            }
            try await stage.startWorker()
            let users = (0..<40).map { "s\($0)" }
            try await stage.play(state: users.map { .bind($0) })
            try await stage.redis(["CLUSTER DELSLOTSRANGE 8192 16383"])
            try await stage.writeEvents(users.map { .message("\($0)-1", to: [$0]) })
            try await until("/readyz names it") {
                let page = try await stage.page("/readyz")
                return page.status == 503 && page.text.contains("cluster_down")
            }
            #expect(try stage.logText().contains("cluster_down"))
            #expect(try await stage.metric("carillon_redis_errors_total", #"code="cluster_down""#) > 0)
            try await stage.redis(["CLUSTER ADDSLOTSRANGE 8192 16383"])
            try await stage.settle()
            let seen = try await stage.look()
            for user in users { #expect(seen.outcomes(of: "\(user)-1") == ["\(user)/phone accepted ok 1"]) }
        } catch {
            await stage.close()
            throw error
        }
        await stage.close()
    }
}

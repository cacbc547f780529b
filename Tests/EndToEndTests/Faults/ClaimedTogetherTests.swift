import JSON
import LocalServers
import Processes
import StageWords
import Support
import Testing
import Worker

/// A message to many: their claims go to Redis in few calls, and what is wrong with one recipient is his alone.
@Suite struct ClaimedTogetherTests {
    private static let users = (0..<40).map { "k\($0)" }

    @Test func manyAreClaimedInFewCallsAndEachHasHisOwnNumber() async throws {
        try await Stage.with { stage in
            try await stage.play(state: Self.users.map { .bind($0) })
            // Whose client has reported a total as of later is claimed by the script, and shows that.
            try await stage.redis(Self.users.map { "HSET c:s:{im:\($0)} b \"9000000000000000 5 0 0\"" })
            try await stage.play(events: [.message("k-0", to: ["k7"])])
            let before = try await claims(stage)
            let seen = try await stage.play(events: [.message("k-1", to: Self.users, conv: "k", type: "group")])
            let expected = Self.users.map { "\($0)/phone accepted ok 5" }
            #expect(seen.outcomes(of: "k-1") == expected.sorted() && seen.doubled.isEmpty)
            let calls = try await claims(stage) - before
            #expect((1..<40).contains(calls), "\(calls) calls")
            // A repeat finds them all finished.
            let again = try await stage.play(
                events: [.message("k-1", to: Self.users, conv: "k", type: "group", event: "k-1-again")])
            #expect(again.outcomes(of: "k-1").count == 40 && again.doubled.isEmpty)
        }
    }

    @Test func aBrokenKeyIsItsOwnersAlone() async throws {
        try await Stage.with { stage in
            try await stage.play(state: Self.users.map { .bind($0) })
            try await stage.redis(Self.users.map { "HSET c:s:{im:\($0)} b \"9000000000000000 5 0 0\"" })
            let owner = "c:o:{im:\(token("k11", "phone"))}"
            try await stage.redis(["SET c:l:{im:k9} broken", "DEL \(owner)", "SADD \(owner) x"])
            for number in 1...2 {
                let message = "k-\(number)"
                let seen = try await stage.play(events: [.message(message, to: Self.users, conv: "k", type: "group")])
                let expected = Self.users.map { user in
                    switch user {
                    case "k9": "k9/phone accepted ok"
                    case "k11": "k11/phone suppressed token_moved"
                    default: "\(user)/phone accepted ok 5"
                    }
                }
                #expect(seen.outcomes(of: message) == expected.sorted() && seen.doubled.isEmpty)
            }
        }
    }

    @Test func aRedisThatTakesNoWritesRefusesThemAllAndCountsThemLater() async throws {
        try await Stage.with { stage in
            try await stage.play(state: Self.users.map { .bind($0) })
            try await stage.redis(["CONFIG SET maxmemory 1"])
            try await stage.writeEvents([.message("k-1", to: Self.users, conv: "k", type: "group")])
            try await until("all are pushed to, and told") {
                let seen = try await stage.look()
                return Self.users.allSatisfy { seen.accepted(token($0, "phone")).count == 1 }
                    && seen.outcomes(of: "k-1").count == Self.users.count
            }
            #expect(try await stage.look().outcomes(of: "k-1") == Self.users.map { "\($0)/phone accepted ok" }.sorted())
            try await stage.redis(["CONFIG SET maxmemory 0"])
            try await stage.settle()
            let seen = try await stage.play(events: [.message("k-2", to: Self.users, conv: "k", type: "group")])
            #expect(seen.outcomes(of: "k-2") == Self.users.map { "\($0)/phone accepted ok 2" }.sorted())
        }
    }

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

    private func claims(_ stage: Stage) async throws -> Int {
        let name = #"carillon_redis_command_seconds_count{op="claim"} "#
        let lines = try await stage.page("/metrics").text.split(separator: "\n").filter { $0.hasPrefix(name) }
        return lines.compactMap { Int($0.dropFirst(name.count)) }.reduce(0, +)
    }
}

// SPDX-License-Identifier: Apache-2.0
import JSON
import Testing
import VirtualStage
import Worker

/// A message to many: their claims go to Redis in few calls, and what is wrong with one recipient is his alone.
@Suite struct ClaimedTogetherTests {
    private static let users = (0..<40).map { "k\($0)" }

    @Test func manyAreClaimedInFewCallsAndEachHasHisOwnNumber() throws {
        try Stage.with { stage in
            try stage.play(state: Self.users.map { .bind($0) })
            // Whose client has reported a total as of later is claimed by the script, and shows that.
            try stage.redis(Self.users.map { "HSET c:s:{im:\($0)} b \"9000000000000000 5 0 0\"" })
            try stage.play(events: [.message("k-0", to: ["k7"])])
            let before = try claims(stage)
            let seen = try stage.play(events: [.message("k-1", to: Self.users, conv: "k", type: "group")])
            let expected = Self.users.map { "\($0)/phone accepted ok 5" }
            #expect(seen.outcomes(of: "k-1") == expected.sorted() && seen.doubled.isEmpty)
            let calls = try claims(stage) - before
            #expect((1..<40).contains(calls), "\(calls) calls")
            // A repeat finds them all finished.
            let again = try stage.play(
                events: [.message("k-1", to: Self.users, conv: "k", type: "group", event: "k-1-again")])
            #expect(again.outcomes(of: "k-1").count == 40 && again.doubled.isEmpty)
        }
    }

    @Test func aBrokenKeyIsItsOwnersAlone() throws {
        try Stage.with { stage in
            try stage.play(state: Self.users.map { .bind($0) })
            try stage.redis(Self.users.map { "HSET c:s:{im:\($0)} b \"9000000000000000 5 0 0\"" })
            let owner = "c:o:{im:\(token("k11", "phone"))}"
            try stage.redis(["SET c:l:{im:k9} broken", "DEL \(owner)", "SADD \(owner) x"])
            for number in 1...2 {
                let message = "k-\(number)"
                let seen = try stage.play(events: [.message(message, to: Self.users, conv: "k", type: "group")])
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

    @Test func aRedisThatTakesNoWritesRefusesThemAllAndCountsThemLater() throws {
        try Stage.with { stage in
            try stage.play(state: Self.users.map { .bind($0) })
            try stage.redis(["CONFIG SET maxmemory 1"])
            try stage.writeEvents([.message("k-1", to: Self.users, conv: "k", type: "group")])
            try until("all are pushed to, and told") {
                let seen = try stage.look()
                return Self.users.allSatisfy { seen.accepted(token($0, "phone")).count == 1 }
                    && seen.outcomes(of: "k-1").count == Self.users.count
            }
            #expect(try stage.look().outcomes(of: "k-1") == Self.users.map { "\($0)/phone accepted ok" }.sorted())
            try stage.redis(["CONFIG SET maxmemory 0"])
            try stage.settle()
            let seen = try stage.play(events: [.message("k-2", to: Self.users, conv: "k", type: "group")])
            #expect(seen.outcomes(of: "k-2") == Self.users.map { "\($0)/phone accepted ok 2" }.sorted())
        }
    }

    private func claims(_ stage: Stage) throws -> Int {
        let name = #"carillon_redis_command_seconds_count{op="claim"} "#
        let lines = try stage.page("/metrics").text.split(separator: "\n").filter { $0.hasPrefix(name) }
        return lines.compactMap { Int($0.dropFirst(name.count)) }.reduce(0, +)
    }
}

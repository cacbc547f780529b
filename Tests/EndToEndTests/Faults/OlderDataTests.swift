// SPDX-License-Identifier: Apache-2.0
import LocalServers
import Processes
import StageWords
import Support
import Testing

/// A Redis that returns with the data of an earlier time: nobody's text goes to a phone that changed hands since.
@Suite(.timeLimit(.minutes(10)))
struct OlderDataTests {
    /// The worker lives through it. `trust-copies` keeps it from making its newest changes again, which would hide the
    /// loss of the last half minute.
    @Test func aRestoredSnapshotSendsNobodysTextToAPhoneThatChangedHands() async throws {
        try await Stage.bare(.oneShard) { stage in
            let phone = token("a", "phone")
            let others = (0..<60).map { "other-\($0)" }
            try await stage.writeState([.bind("a", as: phone)] + others.map { .bind($0) })
            let worker = try await WorkerRun(stage, defect: "trust-copies")
            try await worker.awaitState()
            try await Self.awaitBeats(stage)
            try await stage.redis(["SAVE"])
            try await stage.writeState([
                .state("unbind", "a", #""token":{"device":"phone","token":"\#(phone)","bind_ver":1}"#),
                .bind("b", as: phone, version: 2),
            ])
            try await worker.awaitState()
            try await Self.awaitBeats(stage)
            let redis = stage.world.redis
            try await offPool {
                redis.kill()
                try redis.restart()
            }
            try await stage.writeEvents([
                .message("a-1", to: ["a"], push: #""content":"for a alone""#), .message("b-1", to: ["b"]),
                .message("o-1", to: ["other-1"]),
            ])
            let seen = try await stage.look(until: "all have their outcome") { seen in
                ["a-1", "b-1", "o-1"].allSatisfy { !seen.outcomes(of: $0).isEmpty }
            }
            #expect(seen.outcomes(of: "a-1") == ["a suppressed no_token"])
            #expect(seen.outcomes(of: "b-1") == ["b/phone accepted ok 1"])
            #expect(seen.outcomes(of: "o-1") == ["other-1/phone accepted ok 1"])
            let metrics = try await worker.metrics()
            #expect(metrics.sum("carillon_redis_rollbacks_total") == 1)
            #expect(metrics.sum("carillon_state_replayed_total") >= 2)
            #expect(try worker.logText.contains("Redis returned with older data"))
            try await until("it is ready again") {
                try await worker.metrics().sum("carillon_redis_older_data") == 0
            }
            #expect(try await worker.drain() == 0)
        }
    }

    /// Two more beats than now: what was applied before is noted in the first, and a commit names the second.
    private static func awaitBeats(_ stage: Stage) async throws {
        let before = try await count(stage)
        try await until("the heart beats") { try await count(stage) >= before + 3 }
    }

    private static func count(_ stage: Stage) async throws -> Int {
        Int(try await stage.redisText("HGET c:w:{h0} n").split(separator: " ").last ?? "") ?? 0
    }
}

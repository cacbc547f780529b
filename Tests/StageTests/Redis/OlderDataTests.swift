// SPDX-License-Identifier: Apache-2.0
import LocalServers
import Testing
import VirtualStage

/// A Redis that returns with the data of an earlier time: nobody's text goes to a phone that changed hands since.
@Suite struct OlderDataTests {
    /// The worker lives through it.
    @Test func aRestoredSnapshotSendsNobodysTextToAPhoneThatChangedHands() throws {
        try play { stage, restore in restore() }
    }

    /// No worker lives that has seen the newer data: the commits in Kafka name it.
    @Test func aWorkerThatStartsAfterTheRestoreNoticesToo() throws {
        try play { stage, restore in
            stage.kill(try stage.worker)
            restore()
            try stage.startWorker(waits: false)
        }
    }

    private func play(_ restore: (Stage, _ restore: () -> Void) throws -> Void) throws {
        try Stage.with(.oneShard) { stage in
            let phone = token("a", "phone")
            let others = (0..<60).map { "other-\($0)" }
            try stage.play(state: [.bind("a", as: phone)] + others.map { .bind($0) })
            // What was applied is noted in one beat, and a commit names the next.
            stage.wait(.seconds(3))
            let older = stage.redis.snapshot
            try stage.play(state: [
                .state("unbind", "a", #""token":{"device":"phone","token":"\#(phone)","bind_ver":1}"#),
                .bind("b", as: phone, version: 2),
            ])
            // Changes of half a minute before the newest one are made again in a new process, which would hide the loss.
            stage.wait(.seconds(40))
            try stage.play(state: [.bind("newest")])
            stage.wait(.seconds(3))
            try restore(stage) { stage.redis.restart(with: older) }
            try stage.writeEvents([
                .message("a-1", to: ["a"], push: #""content":"for a alone""#), .message("b-1", to: ["b"]),
                .message("o-1", to: ["other-1"]),
            ])
            let seen = try stage.look(until: "all have their outcome") { seen in
                ["a-1", "b-1", "o-1"].allSatisfy { !seen.outcomes(of: $0).isEmpty }
            }
            #expect(seen.outcomes(of: "a-1") == ["a suppressed no_token"])
            #expect(seen.outcomes(of: "b-1") == ["b/phone accepted ok 1"])
            #expect(seen.outcomes(of: "o-1") == ["other-1/phone accepted ok 1"])
            #expect(try stage.metric("carillon_redis_rollbacks_total") == 1)
            #expect(try stage.metric("carillon_state_replayed_total") >= 2)
            #expect(try stage.logText().contains("Redis returned with older data"))
            try until("it is ready again") { try stage.metric("carillon_redis_older_data") == 0 }
            #expect(try stage.stop(try stage.worker))
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import Simulator
import Testing
import VirtualStage
import Worker

/// `push.send_at_ms`: a message waits for its own time outside memory, and is decided then.
@Suite struct ScheduleTests {
    private static func push(at ms: Int64, _ more: String = "") -> String {
        #""content":"later","send_at_ms":\#(ms)\#(more)"#
    }

    private static func parked(_ seen: Seen, _ message: String) -> [String] {
        seen.parked.filter { $0["msg_id"]?.string == message }.map {
            "\($0["uid"]?.string ?? "?") \($0["reason"]?.string ?? "?")"
        }
    }

    @Test func `a scheduled message goes at its time and holds nothing of its conversation up`() throws {
        try Stage.with(.oneShard) { stage in
            try stage.play(state: [.bind("u1")])
            let at = nowMs + 60_000
            try stage.writeEvents([
                .message("later", to: ["u1"], push: Self.push(at: at)), .message("now", to: ["u1"]),
            ])
            var seen = try stage.look(until: "the other one is out") { !$0.outcomes(of: "now").isEmpty }
            #expect(nowMs < at - 30_000)
            #expect(seen.outcomes(of: "now") == ["u1/phone accepted ok 1"])
            #expect(Self.parked(seen, "later") == ["u1 scheduled"])
            try until("it is counted as waiting") { try stage.metric("carillon_scheduled_messages") == 1 }
            // Neither a read nor a report from before its time includes it.
            try stage.writeState([.read("u1", #""up_to_ms":\#(nowMs)"#), .report("u1", 5, clientMs: nowMs)])
            try stage.settle(within: .seconds(300))
            seen = try stage.look()
            #expect(seen.outcomes(of: "later") == ["u1/phone accepted ok 6"])
            let push = try #require(seen.push(of: "later"))
            #expect(push.atMs >= at && push.atMs < at + 2_000)
            #expect(push.headers["apns-expiration"] == String((at + 86_400_000) / 1000))
            #expect(seen.result(of: "later")?["latency_ms"]?.int ?? .max < 2_000)
            try until("none waits") { try stage.metric("carillon_scheduled_messages") == 0 }
        }
    }

    @Test func `a scheduled message outlives its worker and is pushed once`() throws {
        try Stage.with(.oneShard) { stage in
            try stage.play(state: [.bind("u1"), .bind("u2")])
            let (soon, late) = (nowMs + 30_000, nowMs + 120_000)
            try stage.writeEvents([
                .message("soon", to: ["u1", "u2"], conv: "c", push: Self.push(at: soon)),
                .message("late", to: ["u1"], conv: "c", push: Self.push(at: late)),
                // A repeat of the producer.
                .message("soon", to: ["u1", "u2"], conv: "c", push: Self.push(at: soon), event: "soon-2"),
            ])
            _ = try stage.look(until: "all wait") { $0.parked.count >= 3 }
            stage.kill(try stage.worker)
            stage.wait(.seconds(40))
            #expect(try stage.look().pushes.isEmpty)
            try stage.startWorker()
            let seen = try stage.look(until: "both are out", within: .seconds(300)) {
                !$0.outcomes(of: "late").isEmpty
            }
            #expect(seen.outcomes(of: "soon") == ["u1/phone accepted ok 1", "u2/phone accepted ok 1"])
            #expect(seen.outcomes(of: "late") == ["u1/phone accepted ok 2"])
            #expect(seen.pushes.count == 3 && seen.doubled.isEmpty)
            #expect(try #require(seen.push(of: "late")).atMs >= late)
        }
    }

    @Test func `a scheduled message survives a rebalance and is pushed once`() throws {
        try Stage.with { stage in
            let crowd = (0..<20).map { "r-\($0)" }
            try stage.play(state: crowd.map { .bind($0) })
            let at = nowMs + 60_000
            try stage.writeEvents(crowd.map { .message("\($0)-m", to: [$0], push: Self.push(at: at)) })
            _ = try stage.look(until: "all wait") { $0.parked.count == crowd.count }
            try stage.startWorker()
            #expect(nowMs < at)
            let seen = try stage.look(until: "all are out", within: .seconds(300)) { $0.results.count == crowd.count }
            #expect(seen.pushes.count == crowd.count && seen.doubled.isEmpty)
            #expect(seen.pushes.allSatisfy { $0.atMs >= at })
        }
    }

    @Test(arguments: ["p2p", "group"])
    func `a revoke before the time ends the message without an alert of its own`(_ type: String) throws {
        try Stage.with(.oneShard) { stage in
            try stage.redis(["HSET g:{im:c} u1 0 u2 0 sender 0"])
            try stage.play(state: [.bind("u1"), .bind("u2")])
            let at = nowMs + 30_000
            let to: [String]? = type == "group" ? nil : ["u1"]
            try stage.writeEvents([
                .message("m1", to: to, conv: "c", type: type, push: Self.push(at: at, #","collapse_id":"k""#)),
                .revoke("r1", of: "m1", to: to?.first, conv: "c", type: type),
            ])
            let early = try stage.look(until: "the revoke has ended") { !$0.outcomes(of: "r1").isEmpty }
            #expect(early.outcomes(of: "m1").isEmpty && nowMs < at)
            // Members who join before the message's time do not get the message either.
            try stage.redis(["HSET g:{im:c} u3 0"])
            try stage.writeState([.bind("u3")])
            try stage.settleState()
            #expect(nowMs < at)
            // Longer than a message can wait.
            let life = try stage.redisText("TTL c:d2:{im:u1}mm1")
            #expect(Int(life.dropFirst()) ?? 0 > 8 * 86_400, "\(life)")
            try stage.settle(within: .seconds(300))
            let seen = try stage.look()
            let users = type == "group" ? ["u1", "u2"] : ["u1"]
            #expect(seen.outcomes(of: "r1") == users.map { "\($0) suppressed revoked" })
            #expect(seen.outcomes(of: "m1").allSatisfy { $0.hasSuffix(" suppressed revoked") })
            #expect(seen.outcomes(of: "m1").count == (type == "group" ? 3 : 1))
            #expect(seen.pushes.isEmpty)
            // The badge does not change. A revoke after the time shows its own alert.
            try stage.play(events: [
                .message("m2", to: ["u1"], conv: "d"), .revoke("r2", of: "m2", to: "u1", conv: "d"),
            ])
            let last = try stage.look()
            #expect(last.outcomes(of: "m2") == ["u1/phone accepted ok 1"])
            #expect(last.outcomes(of: "r2").first?.contains("accepted") ?? false)
        }
    }

    /// The note has the collapse id and the time.
    @Test func `a revoke after the time replaces the alert`() throws {
        try Stage.with(.oneShard) { stage in
            try stage.play(state: [.bind("u1")])
            let push = Self.push(at: nowMs + 20_000, #","collapse_id":"k""#)
            try stage.writeEvents([.message("m1", to: ["u1"], push: push)])
            try stage.settle(within: .seconds(300))
            try stage.play(events: [.revoke("r1", of: "m1", to: "u1")])
            let seen = try stage.look()
            #expect(seen.push(of: "m1")?.headers["apns-collapse-id"] == "k")
            #expect(seen.push(of: "r1")?.headers["apns-collapse-id"] == "k")
        }
    }

    @Test func `the members of a group are those of the message's time`() throws {
        try Stage.with(.oneShard) { stage in
            try stage.redis(["HSET g:{im:g} leaves 0 stays 0"])
            try stage.play(state: ["leaves", "stays", "comes"].map { .bind($0) })
            try stage.writeEvents([
                .message("m1", to: nil, conv: "g", type: "group", push: Self.push(at: nowMs + 20_000))
            ])
            _ = try stage.look(until: "it waits") { $0.parked.count == 1 }
            try stage.redis(["HDEL g:{im:g} leaves", "HSET g:{im:g} comes 0"])
            try stage.settle(within: .seconds(300))
            let seen = try stage.look()
            #expect(seen.outcomes(of: "m1") == ["comes/phone accepted ok 1", "stays/phone accepted ok 1"])
        }
    }

    /// `expire_at_ms` stays as it is given.
    @Test func `a message that expires before its time ends as expired`() throws {
        try Stage.with(.oneShard) { stage in
            try stage.play(state: [.bind("u1")])
            let at = nowMs + 20_000
            try stage.writeEvents([
                .message("m1", to: ["u1"], push: Self.push(at: at), #","expire_at_ms":\#(at - 1_000)"#)
            ])
            try stage.settle(within: .seconds(300))
            #expect(try stage.look().outcomes(of: "m1") == ["u1 expired expired"])
        }
    }
}

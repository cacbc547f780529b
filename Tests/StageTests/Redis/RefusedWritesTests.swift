// SPDX-License-Identifier: Apache-2.0
import JSON
import KafkaModel
import PushCore
import Simulator
import Testing
import VirtualStage

@testable import Worker

/// A Redis that answers and refuses writes: pushes go without a badge, and once it takes them the number is exact.
@Suite struct RefusedWritesTests {
    @Test func aFullRedisIsReadFromAndCountsLater() throws {
        try Stage.with { stage in
            try play(
                stage, user: "f1", code: "out_of_memory", refuse: { try stage.redis(["CONFIG SET maxmemory 1"]) },
                accept: { try stage.redis(["CONFIG SET maxmemory 0"]) })
        }
    }

    @Test func aReplicaIsReadFromAndCountsLater() throws {
        try Stage.with { stage in
            try play(
                stage, user: "f2", code: "read_only", refuse: stage.redis.becomeReplica,
                accept: stage.redis.becomeMaster)
        }
    }

    private func play(
        _ stage: Stage, user: String, code: String, refuse: () throws -> Void, accept: () throws -> Void
    ) throws {
        let phone = token(user, "phone")
        var seen = try stage.play(
            state: [.bind(user), .bind(user, "pad")], events: [.message("\(user)-0", to: [user], seq: 1)])
        #expect(seen.outcomes(of: "\(user)-0") == ["\(user)/pad accepted ok 1", "\(user)/phone accepted ok 1"])
        try refuse()
        // A message twice (its repeat waits for the end of the first), and a revoke.
        try stage.writeEvents([
            .message("\(user)-1", to: [user], seq: 2), .message("\(user)-2", to: [user], seq: 3),
            .message("\(user)-1", to: [user], seq: 2, event: "\(user)-1-again"),
            .revoke("\(user)-r", of: "\(user)-0", to: user),
        ])
        let messages = ["\(user)-1", "\(user)-2", "\(user)-r"]
        try until("three pushes are out on each device, and told") {
            seen = try stage.look()
            return seen.accepted(phone).count == 4 && seen.accepted(token(user, "pad")).count == 4
                && messages.allSatisfy { seen.outcomes(of: $0).count == 2 }
        }
        for message in messages {
            #expect(seen.outcomes(of: message) == ["\(user)/pad accepted ok", "\(user)/phone accepted ok"])
            #expect(try seen.payload(of: message)?["aps"]?["badge"] == nil)
        }
        // A replica is left once a second, for a moment without a connection.
        try until("/readyz tells of it") {
            let page = try stage.page("/readyz")
            return page.status == 503 && page.text.contains("Redis refuses writes: \(code)")
        }
        try until("what is owed came back from the broker") {
            let status = try JSONTree(parsing: Array(try stage.page("/statusz").text.utf8))
            return status["shards"]?.array?.compactMap { $0["owed_claims"]?.int }.reduce(0, +) == 3
        }
        // Who waited behind an earlier one of the conversation is asked about anew.
        #expect(try stage.metric("carillon_redis_unclaimed_total") >= 3)
        #expect(try stage.page("/metrics").text.contains("carillon_redis_owed_claims_total 3"))

        try accept()
        try stage.settle()
        // 1 + 2 - 1 revoked, and now one more.
        seen = try stage.play(events: [.message("\(user)-3", to: [user], seq: 4)])
        #expect(seen.outcomes(of: "\(user)-3") == ["\(user)/pad accepted ok 3", "\(user)/phone accepted ok 3"])
        #expect(seen.doubled.isEmpty && seen.accepted(phone).count == 5)
        try until("/readyz is well again") { try stage.page("/readyz").status == 200 }
    }

    /// Redis accepts writes again, and the claim that is owed lies with the broker still: nothing in Redis tells of what ended.
    @Test func aRepeatBeforeTheOwedClaimIsPaidPushesNothing() throws {
        try Stage.with { stage in
            try stage.play(state: [.bind("f9")])
            // Its ack is missing after four seconds.
            try stage.redis([
                Gateway.lease("gw-f9"),
                Gateway.presence("f9", "phone", state: "bg", gateway: "gw-f9", flags: "l", since: nowMs),
                "CONFIG SET maxmemory 1",
            ])
            try stage.writeEvents([.message("f9-1", to: ["f9"], seq: 1)])
            try until("the message is delivered, and its claim was refused") {
                try stage.look().targets(of: "f9-1").count == 1
            }
            try stage.redis(["CONFIG SET maxmemory 0"])
            // The repeat waits for the end of the first, which the push brings.
            var seen = try stage.play(events: [.message("f9-1", to: ["f9"], seq: 1, event: "f9-1-again")])
            seen = try stage.play(events: [.message("f9-1", to: ["f9"], seq: 1, event: "f9-1-once-more")])
            #expect(seen.outcomes(of: "f9-1") == ["f9/phone accepted ok 1"])
            #expect(seen.targets(of: "f9-1").count == 1, "delivered once")
        }
    }

    /// The conversation was open on a phone, and is closed when the repeat comes.
    @Test func `a repeat before the owed claim is paid does not count what the first did not`() throws {
        try Stage.with { stage in
            try stage.play(state: [.bind("f10")])
            try stage.redis([
                Gateway.lease("gw-f10"),
                Gateway.presence("f10", "pad", gateway: "gw-f10", activeConversation: "c-f10"),
                "CONFIG SET maxmemory 1",
            ])
            try stage.writeEvents([.message("f10-1", to: ["f10"], conv: "c-f10", seq: 1)])
            _ = try stage.look(until: "its end is recorded") { $0.outcomes(of: "f10-1").count == 2 }
            // The owed claim was tried a few times: its next try is not at once.
            stage.wait(.seconds(5))
            try stage.redis(["CONFIG SET maxmemory 0", Gateway.off("f10", "pad")])
            try stage.play(events: [.message("f10-1", to: ["f10"], conv: "c-f10", seq: 1, event: "f10-1-again")])
            let seen = try stage.play(events: [.message("f10-2", to: ["f10"], conv: "c-f10", seq: 2)])
            #expect(seen.outcomes(of: "f10-2") == ["f10/phone accepted ok 1"])
        }
    }

    /// A crash repeats what is in flight only: nothing that was accepted waits for another device's ack.
    @Test func anEventIsSettledWhileOneOfItsDevicesWaitsForAnAck() throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        try Stage.with(settings) { stage in
            try stage.play(state: [.bind("f11"), .bind("f12"), .bind("f12", "pad")])
            try stage.redis([
                Gateway.lease("gw-f12"), Gateway.presence("f12", "phone", gateway: "gw-f12"), "CONFIG SET maxmemory 1",
            ])
            let settled = try stage.metric("carillon_events_settled_total")
            let beganMs = nowMs
            try stage.writeEvents([.message("f11-1", to: ["f11", "f12"], conv: "f", type: "group")])
            try until("the event is settled") {
                try stage.metric("carillon_events_settled_total") > settled
            }
            #expect(nowMs - beganMs < 6000, "its ack is due after eight seconds")
            var seen = try stage.look()
            #expect(seen.outcomes(of: "f11-1") == ["f11/phone accepted ok", "f12/pad accepted ok"])
            #expect(seen.parked.map { $0["reason"]?.string } == ["unclaimed"])
            #expect(try Self.deferred(stage) == ["marks imf", "work imf"])
            try stage.redis(["CONFIG SET maxmemory 0"])
            seen = try stage.look(until: "the ack was missed, and the phone is pushed", within: .seconds(40)) {
                !$0.accepted(token("f12", "phone")).isEmpty
            }
            try stage.settle()
            seen = try stage.look()
            #expect(
                seen.outcomes(of: "f11-1").map { String($0.prefix { $0 != " " }) } == [
                    "f11/phone", "f12/pad", "f12/phone",
                ])
            #expect(seen.doubled.isEmpty && seen.targets(of: "f11-1").count == 1)
        }
    }

    /// The phone's ack is late, so its recipient returns from the topic. Its mark is then one that all recipients share.
    @Test func `a claim that another worker may store is watched for a bounded time`() throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        try Stage.with(settings) { stage in
            try stage.startWorker()
            try stage.play(state: [.bind("f14"), .bind("f15")])
            try stage.redis([
                Gateway.lease("gw-f15"), Gateway.presence("f15", "phone", gateway: "gw-f15"), "CONFIG SET maxmemory 1",
            ])
            try stage.writeEvents([.message("f14-1", to: ["f14", "f15"], conv: "f", type: "group")])
            try until("a claim is watched") { Self.watched(stage) > 0 }
            try stage.redis(["CONFIG SET maxmemory 0"])
            try until("no claim is watched", within: .seconds(120)) { Self.watched(stage) == 0 }
        }
    }

    /// User-state work of all workers: no test record changes user state meanwhile.
    private static func watched(_ stage: Stage) -> Int {
        stage.workers.flatMap(\.seat.leftovers).filter { $0.part == "user-state records" }.reduce(0) { $0 + $1.count }
    }

    /// Case and key of the records of the one partition that has any.
    private static func deferred(_ stage: Stage) throws -> [String] {
        let topic = "carillon.parked"
        let all = (0..<stage.kafka.partitionCount(of: topic)).map { stage.kafka.records(topic, $0) }
        let used = all.filter { !$0.isEmpty }
        #expect(used.count == 1)
        return try used.joined().map { record in
            let head = record.value?.split(separator: 10).first ?? []
            let kind = try JSONTree(parsing: Array(head))["case"]?.string ?? "?"
            return "\(kind) \(String(decoding: record.key ?? [], as: UTF8.self))"
        }.sorted()
    }

    /// Later workers may write several recipients of an event in one record, and earlier ones wrote another form.
    @Test func `a record with several owed claims is settled when all are paid`() throws {
        try Stage.with { stage in
            let uids = ["f16", "f17", "f18"]
            try stage.play(state: uids.map { .bind($0) })
            try stage.redis(["CONFIG SET maxmemory 1"])
            let claims = uids.dropLast().map { uid in
                let subject = ClaimSubject(
                    kind: .message, id: "f16-1", conversation: "f", sentMs: nowMs, seq: 1, expireAtMs: nowMs + 60_000)
                return OwedClaim(
                    ClaimRequest(app: "im", uid: uid, subject, counted: true, nowMs: 0), eventID: "f16-1")
            }
            let marks = OwedMarks(app: "im", conversation: "f", part: nil, claims: claims)
            let earlier =
                #"{"v":1,"app":"im","uid":"f18","owed":"m","id":"f16-1","conv":"f","sent_ms":\#(nowMs),"seq":1,"#
                + #""expire_ms":\#(nowMs + 60_000),"counted":true}"#
            for value in [marks.bytes, Array(earlier.utf8)] {
                stage.kafka.append(ModelRecord(key: Array("imf".utf8), value: value), to: "carillon.parked", 0)
            }
            func owed() -> Int {
                (try? stage.worker)?.status().shards.map(\.owedClaims).reduce(0, +) ?? 0
            }
            try until("they are read, and Redis does not take them") { owed() == 3 }
            // The next worker reads them again.
            #expect(try stage.stop(try stage.worker), "drained")
            #expect(owed() == 0)
            try stage.startWorker(waits: false)
            try until("the next worker has them") { owed() == 3 }
            try stage.redis(["CONFIG SET maxmemory 0"])
            try until("they are paid") { owed() == 0 }
            try until("both records are settled") { try stage.metric("carillon_parked_settled_total") == 2 }
            for uid in uids {
                #expect(try stage.redisText("ZCARD c:l:{im:\(uid)}") == ":1", "\(uid)")
                #expect(try stage.redisText("GET c:d3:{im:\(uid)}mf16-1").hasSuffix("f"), "marked as ended")
            }
        }
    }

    /// What was delivered counts, whatever becomes of it before Redis accepts the claim.
    @Test func aMessageThatExpiresOrIsMutedBeforeItsClaimIsPaidCounts() throws {
        try Stage.with { stage in
            let (uids, group) = (["f13", "f14", "f15"], "group-f13")
            try stage.play(state: uids.map { .bind($0) })
            try stage.redis(
                [Gateway.lease("gw-f13"), "HSET g:{im:\(group)} f15 0"]
                    + uids.map { Gateway.presence($0, "phone", gateway: "gw-f13") } + ["CONFIG SET maxmemory 1"])
            try stage.writeEvents([
                .message("f13-1", to: ["f13"], seq: 1, #","expire_at_ms":\#(nowMs + 4000)"#),
                .message("f14-1", to: ["f14"], seq: 1),
                .message("f15-1", to: ["f15"], conv: group, type: "group", seq: 1),
            ])
            var seen = try stage.look(until: "all wait in the topic") { seen in
                Set(seen.parked.compactMap { $0["uid"]?.string }) == Set(uids)
            }
            #expect(seen.parked.allSatisfy { $0["reason"]?.string == "unclaimed" })
            try stage.redis(["CONFIG SET maxmemory 0", "HSET g:{im:\(group)} f15 5"])
            try stage.writeState([.state("mute", "f14", #""conv_id":"c-f14","level":5"#)])
            try stage.settle()
            seen = try stage.look()
            for uid in uids {
                #expect(try stage.redisText("ZCARD c:l:{im:\(uid)}") == ":1", "\(uid)")
            }
            #expect(
                uids.flatMap { seen.outcomes(of: "\($0)-1") } == [
                    "f13/phone expired expired", "f14/phone suppressed conv_muted", "f15/phone suppressed conv_muted",
                ])
        }
    }

    /// The drain waits for nothing that Redis may never take.
    @Test func aWorkerEndsInTimeWhileRedisTakesNoChanges() throws {
        try Stage.with { stage in
            try stage.play(state: [.bind("f10")], events: [.message("f10-0", to: ["f10"], seq: 1)])
            stage.redis.becomeReplica()
            try stage.writeState((1...50).map { .read("f10-\($0)", #""up_to_seq":\#($0)"#) })
            try until("they wait") {
                (try stage.worker).status().shards.contains { $0.pendingRecords > 10 }
            }
            #expect(try stage.stop(try stage.worker), "drained")
        }
    }

    /// Thousands of reads wait for a full Redis: their topic is paused, and messages go on.
    @Test func changesThatWaitHoldUpNoMessage() throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        try Stage.with(settings) { stage in
            try stage.play(state: [.bind("f6")], events: [.message("f6-0", to: ["f6"], seq: 1)])
            try stage.redis(["CONFIG SET maxmemory 1"])
            try stage.writeState((0..<2600).map { .read("f6-\($0 % 50)", #""up_to_seq":\#($0 + 1)"#) })
            try until("the shard has as many of them as it takes") {
                (try stage.worker).status().shards.contains { $0.pendingRecords >= 1000 }
            }
            try until("their partitions are paused") {
                (try stage.worker).status().shards.contains { $0.pausedPartitions >= 4 }
            }
            try stage.writeEvents((1...3).map { .message("f6-\($0)", to: ["f6"], seq: Int64($0) + 1) })
            try until("messages are pushed nevertheless") {
                try stage.look().accepted(token("f6", "phone")).count == 4
            }
            try stage.redis(["CONFIG SET maxmemory 0"])
            try stage.settle()
            let seen = try stage.play(
                state: [.read("f6", #""up_to_seq":2"#)], events: [.message("f6-4", to: ["f6"], seq: 5)])
            #expect(seen.outcomes(of: "f6-4") == ["f6/phone accepted ok 3"])
            #expect(try stage.redisText("HGET c:s:{im:f6-49} rc-f6-49").contains("2600"))
            #expect((try stage.worker).status().shards.allSatisfy { $0.pausedPartitions == 0 })
        }
    }

    /// Keys of the wrong type hold up nobody, neither others' nor our own.
    @Test func aBrokenKeyHoldsUpNobody() throws {
        try Stage.with { stage in
            try stage.play(state: ["f3", "f4", "f5", "f7", "f8"].map { .bind($0) })
            try stage.redis([
                "SET p:{im:f3} broken", "SET c:l:{im:f4} broken", "SET g:{im:group-f5} broken", "DEL c:l:{im:f5}",
                "SET c:u:{im:f7} broken", "DEL c:o:{im:\(token("f8", "phone"))}",
                "SADD c:o:{im:\(token("f8", "phone"))} x",
                // Whose client has reported a total as of later is claimed by the script, and his token's owner asked for.
                "HSET c:s:{im:f8} b \"9000000000000000 5 0 0\"", "SADD gw:{gw-f5} x",
                Gateway.presence("f5", "phone", gateway: "gw-f5"),
            ])
            let seen = try stage.play(
                state: [.read("f4", #""up_to_seq":1"#)],
                events: [
                    .message("f3-1", to: ["f3"]), .message("f4-1", to: ["f4"]), .message("f5-1", to: ["f5"]),
                    .message("f7-1", to: ["f7"]), .message("f8-1", to: ["f8"]),
                    .message("f5-2", to: nil, conv: "group-f5", type: "group"),
                    .message("f4-1", to: ["f4"], event: "f4-1-again"),
                ])
            #expect(seen.outcomes(of: "f3-1") == ["f3/phone accepted ok 1"])
            #expect(seen.outcomes(of: "f4-1") == ["f4/phone accepted ok"], "open to push, without a number")
            #expect(seen.outcomes(of: "f5-1") == ["f5/phone accepted ok 1"], "no lease that can be read is none")
            #expect(seen.outcomes(of: "f5-2") == [" suppressed no_token"], "one record says that nobody was told")
            #expect(seen.outcomes(of: "f7-1") == ["f7 suppressed no_token"])
            #expect(seen.outcomes(of: "f8-1") == ["f8/phone suppressed token_moved"], "whose it is must be known")
            #expect(seen.accepted(token("f4", "phone")).count == 1)
        }
    }

    @Test func theLogNamesAClaimsKeyThatCannotBeRead() throws {
        try Stage.with { stage in
            let owner = "c:o:{im:\(token("f9", "phone"))}"
            try stage.play(state: [.bind("f9")])
            try stage.redis([
                "DEL \(owner)", "SADD \(owner) x", "HSET c:s:{im:f9} b \"9000000000000000 5 0 0\"",
            ])
            try stage.play(events: [.message("f9-1", to: ["f9"])])
            #expect(try stage.logText().contains("owner of im:f9"))
        }
    }
}

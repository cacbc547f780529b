// SPDX-License-Identifier: Apache-2.0
import LocalServers
import Simulator
import Testing
import VirtualStage

/// A worker on a Redis Cluster whose nodes hang, answer late and hand over to each other.
@Suite struct ClusterTests {
    private func with(_ body: (Stage, StageCluster) throws -> Void) throws {
        var settings = LocalCluster.Settings()
        settings.usesRedisCluster = true
        try Stage.with(settings) { stage in try body(stage, stage.cluster) }
    }

    @Test func mastersThatHandOverUnderLoadLoseAndDoubleNothing() throws {
        try with { stage, cluster in
            let crowd = Crowd(name: "hand", count: 400)
            try stage.play(state: crowd.binds)
            try stage.writeEvents(crowd.messages)
            for index in 3..<5 {
                let pushed = crowd.accepted(try stage.look().pushes).count { $0 > 0 }
                try until("some more are pushed") {
                    crowd.accepted(try stage.look().pushes).count { $0 > 0 } > pushed
                }
                cluster.failOver(to: index)
            }
            #expect(crowd.accepted(try stage.look().pushes).contains(0), "in the midst of it")
            try stage.settle()
            crowd.expectOnceEach(try stage.look(), "with badge 1 each")
            try until("/readyz is well") { try stage.page("/readyz").status == 200 }
        }
    }

    /// A user's state and the owner of his token are mostly on two nodes: for the first push after a bind both are waited for.
    @Test func aNodeThatHangsHoldsUpItsOwnUsersOnly() throws {
        try with { stage, cluster in
            let crowd = Crowd(name: "hang", count: 240)
            try stage.play(state: crowd.binds)
            let held = Set(
                (0..<crowd.count).filter { index in
                    ["c:u:{im:\(crowd.uid(index))}", "c:o:{im:\(crowd.token(index))}"].contains {
                        cluster.isOn(1, $0)
                    }
                })
            #expect(held.count > 60 && held.count < 200)
            cluster.nodes[1].freeze()
            try stage.writeEvents(crowd.messages)
            try until("the others are pushed") {
                let accepted = crowd.accepted(try stage.look().pushes)
                return (0..<crowd.count).allSatisfy { held.contains($0) || accepted[$0] == 1 }
            }
            let early = crowd.accepted(try stage.look().pushes)
            #expect(held.allSatisfy { early[$0] == 0 })
            try until("/readyz names the node, and no other") {
                let text = try stage.page("/readyz").text
                return (0..<6).allSatisfy { text.contains(":700\($0)") == ($0 == 1) }
            }
            cluster.nodes[1].thaw()
            try stage.settle()
            crowd.expectOnceEach(try stage.look(), "with badge 1 each")
        }
    }

    /// Who has finished a group's message lies with the message's key, which may be on a node that is slow; a later message of
    /// the conversation, whose key is elsewhere, does not overtake it. Node 1 is the slow one.
    @Test func aSlowNodeOfAMessagesOwnKeyDoesNotChangeTheOrderOfItsConversation() throws {
        try with { stage, cluster in try Self.expectOrder(stage, cluster) }
    }

    private static func expectOrder(_ stage: Stage, _ cluster: StageCluster) throws {
        let users = cluster.names("slow", 6) {
            !cluster.isOn(1, "c:u:{im:\($0)}") && !cluster.isOn(1, "c:o:{im:\(token($0, "phone"))}")
        }
        let conversation = cluster.names("conv", 1) { !cluster.isOn(1, "g:{im:\($0)}") }[0]
        let elsewhere = cluster.names("other", 1) { !cluster.isOn(1, "g:{im:\($0)}") }[0]
        let first = cluster.names("first", 1) { cluster.isOn(1, "c:e:{im:\($0)}") }[0]
        let later = cluster.names("later", 2) { !cluster.isOn(1, "c:e:{im:\($0)}") }
        try stage.play(state: users.map { .bind($0) })
        // Known from here on: who owns the tokens.
        try stage.play(events: [.message("before", to: users, conv: elsewhere, type: "group")])
        cluster.nodes[1].freeze()
        try stage.writeEvents([
            .message(first, to: users, conv: conversation, type: "group"),
            .message(later[0], to: users, conv: conversation, type: "group"),
            // What comes later in another conversation waits for nobody.
            .message(later[1], to: users, conv: elsewhere, type: "group"),
        ])
        _ = try stage.look(until: "another conversation's message is pushed") { seen in
            users.allSatisfy { seen.accepted(token($0, "phone")).count >= 2 }
        }
        cluster.nodes[1].thaw()
        try stage.settle()
        let seen = try stage.look()
        for user in users {
            let ids = seen.pushIDs(of: [first, later[0]], to: user).compactMap { $0 }
            let pushes = seen.accepted(token(user, "phone")).map(\.apnsID)
            let ofConversation = pushes.filter { ids.contains($0) }
            #expect(pushes.count == 4 && ofConversation == ids, "\(user)")
        }
    }

    /// A message waits for the lease of his gateway, which is on a slow node; when the next one comes he is not connected any more,
    /// so that nothing of it is on that node. It is pushed after the first all the same.
    @Test func aSlowNodeOfAGatewaysLeaseDoesNotChangeTheOrder() throws {
        try with { stage, cluster in
            let users = cluster.names("lease", 2) {
                cluster.isOn(0, "p:{im:\($0)}") && !cluster.isOn(1, "c:o:{im:\(token($0, "phone"))}")
            }
            let gateway = cluster.names("gw", 1) { cluster.isOn(1, "gw:{\($0)}") }[0]
            try stage.play(state: users.map { .bind($0) })
            // Events are read once every node has compared its state with the topic's end.
            try stage.play(events: [.message("before", to: [users[1]])])
            try stage.redis([Gateway.presence(users[0], "phone", gateway: gateway)])
            cluster.nodes[1].freeze()
            let kinds = ["HGETALL", "HRANDFIELD"]
            let read = kinds.map { cluster.nodes[0].reads(by: $0) }
            try stage.writeEvents([.message("lease-a", to: [users[0]])])
            try until("his settings and presence are read") {
                zip(kinds, read).allSatisfy { cluster.nodes[0].reads(by: $0) > $1 }
            }
            try stage.redis([Gateway.off(users[0], "phone")])
            try stage.writeEvents([.message("lease-b", to: [users[0]])])
            // Two after it, one behind the other: by the second's end it has been read as well.
            for message in ["lease-c", "lease-d"] {
                try stage.writeEvents([.message(message, to: [users[1]])])
                _ = try stage.look(until: "another user's message is pushed") { $0.push(of: message) != nil }
            }
            #expect(try stage.look().pushes(to: token(users[0], "phone")).isEmpty)
            cluster.nodes[1].thaw()
            try stage.settle()
            let seen = try stage.look()
            let ids = seen.pushIDs(of: ["lease-a", "lease-b"], to: users[0])
            #expect(seen.accepted(token(users[0], "phone")).map(\.apnsID) == ids)
        }
    }

    /// A record comes again while its push is in flight. The claim of the repeat is answered, the token's owner by another
    /// node only after the first push has ended: what the claim said is out of date then.
    @Test func aRepeatWithALateOwnerReplyIsNotPushed() throws {
        var settings = LocalCluster.Settings()
        settings.usesRedisCluster = true
        settings.redisLines = "  timeout_ms: 60000\n"
        settings.answerSlow(afterMs: 3_000, answerSeconds: 10)
        try Stage.with(settings) { stage in
            let cluster = try stage.cluster
            let uid = cluster.names("late", 1) {
                cluster.isOn(0, "c:u:{im:\($0)}")
                    && cluster.isOn(1, "c:o:{im:\(token($0, "phone", TokenPrefix.slow))}")
            }[0]
            let phone = token(uid, "phone", TokenPrefix.slow)
            try stage.play(state: [.bind(uid, as: phone)])
            // Whose client has reported a total as of later is claimed by the script, and his token's owner asked for.
            try stage.redis(["HSET c:s:{im:\(uid)} b \"9000000000000000 5 0 0\""])
            let message = Line.message("late", to: [uid])
            try stage.writeEvents([message])
            try until("it is claimed, and the owner is known") {
                let claims = try stage.metric("carillon_redis_command_seconds_count", "op=\"claim\"")
                return try stage.metric("carillon_redis_pipeline_depth") == 0 && claims >= 1
            }
            cluster.nodes[1].freeze()
            try stage.writeEvents([message])
            try until("the first one has its mark") {
                try stage.metric("carillon_redis_command_seconds_count", "op=\"finish\"") >= 1
            }
            cluster.nodes[1].thaw()
            try stage.settle()
            #expect(try stage.look().accepted(phone).count == 1)
        }
    }

    /// Previous owner, token and owner are mostly on three nodes, of which one forgets what it was told last.
    @Test func bindsThatADeadMasterHadNotCopiedAreMadeAgain() throws {
        try with { stage, cluster in
            let phones = Handover(name: "uncopied", count: 120)
            try stage.play(state: phones.firstBinds)
            cluster.cut(4)
            try stage.play(state: phones.secondBinds)
            cluster.kill(1, takenOverBy: 4)
            try until("the changes are made once more") {
                try stage.logText().contains("repeating their newest changes")
            }
            try until("/readyz is well") { try stage.page("/readyz").status == 200 }
            try stage.writeEvents(phones.messages)
            try stage.settle()
            phones.expectOwnersOnly(try stage.look())
        }
    }

    /// The process that took over may lack the newest binds of the one before it.
    @Test func afterAFailoverOwnersAreAskedFor() throws {
        try with { stage, cluster in
            let users = (0..<20).map { "over-\($0)" }
            try stage.play(state: users.map { .bind($0) })
            try stage.play(events: users.map { .message("\($0)-1", to: [$0]) })
            let asked = try ownersAsked(stage)
            #expect(asked == users.count)
            cluster.failOver(to: 3)
            // Each message may be the one by which the worker hears of it.
            var round = 1
            try until("the worker has heard of it") {
                round += 1
                try stage.play(events: users.map { .message("\($0)-\(round)", to: [$0]) })
                return try ownersAsked(stage) >= asked + users.count
            }
        }
    }

    private func ownersAsked(_ stage: Stage) throws -> Int {
        try stage.metric("carillon_redis_command_seconds_count", #"op="owner""#)
    }
}

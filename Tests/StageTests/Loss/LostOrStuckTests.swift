// SPDX-License-Identifier: Apache-2.0
import JSON
import Kafka
import Simulator
import Testing
import VirtualStage
import Worker

/// Every message ends, for every device, in one recorded outcome, and nothing stays behind it.
struct LostOrStuckTests {
    /// Design 5, G1: members of a group are read anew where a cursor says nothing any more.
    @Test func aRestartOfRedisInTheMiddleOfAGroupSkipsNobody() throws {
        let crowd = Crowd(name: "member", count: 2000)
        var settings = LocalCluster.Settings()
        settings.shards = 1
        settings.appLines = "    limits: {in_flight: 100}\n"
        try Stage.with(settings) { stage in
            try stage.play(state: crowd.binds)
            for start in stride(from: 0, to: crowd.count, by: 500) {
                let members = (start..<start + 500).map { "\(crowd.uid($0)) 0" }.joined(separator: " ")
                try stage.redis(["HSET g:{im:crowd} \(members)"])
            }
            // At a pace that leaves most of the group unread.
            stage.answerPushes(.late(2000))
            try stage.writeEvents([.message("crowd-1", to: nil, conv: "crowd", type: "group")])
            try until("the first members are on their way") {
                stage.apns.counters.requests >= 100
            }
            stage.redis.restart()
            stage.answerPushes(nil)
            try stage.settle(within: .seconds(180))
            let seen = try stage.look()
            let ends = Set(seen.results.compactMap { $0["uid"]?.string })
            #expect(crowd.count - ends.count == 0, "members without any outcome, and the record is settled")
            #expect(crowd.accepted(seen.pushes).count { $0 == 0 } == 0, "members without a push")
            #expect(seen.doubled.count <= 100, "what was in flight when Redis forgot its last writes")
        }
    }

    /// A record that comes twice, the second time to one more: his delivery does not wait until the first recipient, who
    /// does not acknowledge, has ended.
    @Test func aDeliveryDoesNotWaitForTheEndOfARepeat() throws {
        try Stage.with { stage in
            try stage.redis(
                [Gateway.lease("gw-t")]
                    + ["t1", "t2"].map { Gateway.presence($0, "phone", gateway: "gw-t") })
            try stage.writeEvents([.message("t-1", to: ["t1"], conv: "c-t")])
            _ = try stage.look(until: "the first is delivered") { !$0.targets(of: "t-1").isEmpty }
            try stage.writeEvents([.message("t-1", to: ["t1", "t2"], conv: "c-t", event: "t-2")])
            let seen = try stage.look(until: "the second is delivered") {
                $0.targets(of: "t-1").contains { $0["uid"]?.string == "t2" }
            }
            #expect(seen.results.allSatisfy { $0["uid"]?.string != "t1" }, "nobody acknowledged yet")
            try stage.settle()
        }
    }

    // MARK: - Desktops

    /// Contract 5, routes: `hold_s` 0 is final at once where the desktop's ack came before.
    @Test func aPhoneThatDoesNotAcknowledgeIsDoneWhenTheDesktopDidBefore() throws {
        try Stage.with { stage in
            try stage.redis([
                Gateway.lease("gw-d"), Gateway.presence("d1", "pc", platform: "pc", gateway: "gw-d"),
                Gateway.presence(
                    "d1", "phone", state: "bg", gateway: "gw-d", flags: "l", since: nowMs - 30_000),
            ])
            try stage.play(state: [.bind("d1"), Self.desktopFirst("d1"), .ack("d1", "pc", ["d1-1"])])
            try stage.writeEvents([.message("d1-1", to: ["d1"])])
            let seen = try stage.look(until: "the phone's outcome is written", within: .seconds(40)) {
                $0.outcomes(of: "d1-1").count == 2
            }
            #expect(seen.outcomes(of: "d1-1") == ["d1/pc online acked", "d1/phone suppressed desktop_online"])
            #expect(seen.pushes(to: token("d1", "phone")).count == 0)
            #expect(try stage.stop(try stage.worker), "nothing is left behind")
        }
    }

    /// Contract 5, routes: `hold_s` 0 is final at once where the desktop got a push of its own.
    @Test func aPhoneIsDoneWhenTheDesktopGotAPushOfItsOwn() throws {
        try Stage.with { stage in
            try stage.redis([
                Gateway.lease("gw-d"), Gateway.presence("d2", "pc", platform: "pc", gateway: "gw-d"),
            ])
            try stage.play(state: [.bind("d2"), .bind("d2", "pc"), Self.desktopFirst("d2")])
            try stage.writeEvents([
                .message("d2-1", to: ["d2"], push: #""content":"x","strategy":4"#)
            ])
            let seen = try stage.look(until: "the phone's outcome is written", within: .seconds(40)) {
                $0.outcomes(of: "d2-1").count == 2
            }
            #expect(seen.outcomes(of: "d2-1") == ["d2/pc accepted ok 1", "d2/phone suppressed desktop_online"])
            #expect(seen.pushes(to: token("d2", "phone")).count == 0)
            #expect(try stage.stop(try stage.worker), "nothing is left behind")
        }
    }

    private static func desktopFirst(_ user: String) -> Line {
        .state("settings", user, #""push_when_desktop_online":false,"hold_s":0"#)
    }

    // MARK: - Badge

    /// Contract 2, `revoke`: `decrease` happens whatever the alert's fate.
    @Test func anExpiredRevokeLowersTheNumber() throws {
        try Stage.with { stage in
            try stage.play(
                state: [.bind("x1")],
                events: [.message("x1-1", to: ["x1"], seq: 1), .message("x1-2", to: ["x1"], seq: 2)])
            try stage.play(events: [
                .revoke(
                    "x1-r", of: "x1-2", to: "x1", sentMs: nowMs - 5000, #","expire_at_ms":\#(nowMs - 1000)"#)
            ])
            let seen = try stage.play(events: [.message("x1-3", to: ["x1"], seq: 3)])
            #expect(seen.outcomes(of: "x1-r").allSatisfy { $0.hasSuffix(" expired expired") })
            #expect(seen.outcomes(of: "x1-3") == ["x1/phone accepted ok 2"])
        }
    }

    // MARK: - After a crash

    /// Contract 5, step 5: what an earlier try sent gets its record too.
    @Test func pushesAcceptedBeforeACrashGetTheirRecords() throws {
        var settings = LocalCluster.Settings.oneShard
        // The pad is never answered, so the message is open at the crash.
        settings.leaveSlowUnanswered(answerSeconds: 10)
        try Stage.bare(settings) { stage in
            let users = (0..<20).map { "crash-\($0)" }
            try stage.writeState(
                users.flatMap { [.bind($0), .bind($0, "pad", as: token($0, "pad", TokenPrefix.slow))] })
            let first = try stage.startWorker(waits: false)
            try stage.awaitState(first)
            // From the first acceptance on the broker takes no records.
            try stage.writeEvents(users.map { .message("\($0)-1", to: [$0]) })
            stage.refuseRecords(true)
            try until("all phones are pushed") {
                stage.apns.counters.accepted >= users.count
            }
            try until("the worker has their answers") {
                first.metric("carillon_decisions_total", #"verdict="accepted""#)
                    >= Double(users.count)
            }
            stage.kill(first)
            stage.refuseRecords(false)
            stage.apns.set(Scenario())
            let second = try stage.startWorker(waits: false)
            try until("all pads are pushed") {
                let entries = stage.apns.requests
                return users.allSatisfy { user in
                    entries.contains { $0.token == token(user, "pad", TokenPrefix.slow) && $0.status == 200 }
                }
            }
            try until("nothing is in hand") {
                second.metric("carillon_pending_events") == 0
            }
            #expect(try stage.stop(second))
            let seen = try stage.look()
            let without = users.filter { user in
                !seen.outcomes(of: "\(user)-1").contains { $0.hasPrefix("\(user)/phone accepted ok") }
            }
            #expect(without.isEmpty, "\(without.count) of \(users.count) phones were pushed and have no record")
        }
    }

    /// A broker that takes no records for longer keeps no push from being known as accepted.
    @Test func pushesAcceptedDuringABrokerOutageAreNotRepeated() throws {
        var settings = LocalCluster.Settings.oneShard
        settings.answerSlow(afterMs: 2000, answerSeconds: 10)
        try Stage.bare(settings) { stage in
            let users = (0..<20).map { "mute-\($0)" }
            try stage.writeState(
                [.bind("mute-first")] + users.map { .bind($0, as: token($0, "phone", TokenPrefix.slow)) })
            let first = try stage.startWorker(waits: false)
            try stage.awaitState(first)
            try stage.writeEvents((["mute-first"] + users).map { .message("\($0)-1", to: [$0]) })
            stage.refuseRecords(true)
            try until("the worker has all answers") {
                first.metric("carillon_decisions_total", #"verdict="accepted""#)
                    >= Double(users.count + 1)
            }
            stage.kill(first)
            stage.refuseRecords(false)
            let second = try stage.startWorker(waits: false)
            try until("every user has his record") {
                let seen = try stage.look()
                return users.allSatisfy { !seen.outcomes(of: "\($0)-1").isEmpty }
            }
            #expect(try stage.stop(second))
            let seen = try stage.look()
            let doubled = users.filter { seen.accepted(token($0, "phone", TokenPrefix.slow)).count > 1 }
            #expect(doubled.count <= 2, "what was in hand at the very moment of the kill")
            for user in users {
                let outcomes = seen.outcomes(of: "\(user)-1")
                #expect(outcomes.count == 1 && outcomes[0].hasPrefix("\(user)/phone accepted ok"), "\(outcomes)")
            }
        }
    }

    /// The records of accepted pushes are not with the broker when another worker takes over: it is told of them by Redis.
    @Test func acceptedPushesAreNotRepeatedByARebalanceWithoutABroker() throws {
        var settings = LocalCluster.Settings.oneShard
        settings.answerSlow(afterMs: 700, answerSeconds: 10)
        try Stage.bare(settings) { stage in
            let users = (0..<20).map { "over-\($0)" }
            try stage.writeState(
                [.bind("over-first")] + users.map { .bind($0, as: token($0, "phone", TokenPrefix.slow)) })
            let first = try stage.startWorker(waits: false)
            try stage.awaitState(first)
            // From the first answer on all streams are open, so that the others are answered together.
            try stage.writeEvents([.message("over-first-1", to: ["over-first"])])
            _ = try stage.look(until: "the first one is pushed") { !$0.outcomes(of: "over-first-1").isEmpty }
            try stage.writeEvents(users.map { .message("\($0)-1", to: [$0]) })
            stage.refuseRecords(true)
            try until("the worker has all answers") {
                first.metric("carillon_decisions_total", #"verdict="accepted""#)
                    > Double(users.count)
            }
            let second = try stage.startWorker(waits: false)
            try until("the second one has read what the first could not settle") {
                second.metric("carillon_kafka_assigned_partitions") > 0
                    && second.metric("carillon_decisions_total", #"verdict="accepted""#) > 0
            }
            stage.refuseRecords(false)
            try until("every user has his record") {
                let seen = try stage.look()
                return users.allSatisfy { !seen.outcomes(of: "\($0)-1").isEmpty }
            }
            #expect(try stage.stop(first))
            #expect(try stage.stop(second))
            let seen = try stage.look()
            let doubled = users.filter { seen.accepted(token($0, "phone", TokenPrefix.slow)).count > 1 }
            #expect(doubled.isEmpty)
            for user in users {
                let outcomes = Set(
                    seen.outcomes(of: "\(user)-1").map { String($0.prefix("\(user)/phone accepted ok".count)) })
                #expect(outcomes == ["\(user)/phone accepted ok"])
            }
        }
    }

    /// Contract 3, `push.feedback`: the token goes when the broker has its record, so that a crash loses no word of it.
    @Test func aDeadTokenStaysUntilTheBrokerHasItsFeedback() throws {
        var settings = LocalCluster.Settings.oneShard
        settings.scenario = TokenPrefix.scenario
        let dead = token("told", "phone", TokenPrefix.gone)
        try Stage.bare(settings) { stage in
            try stage.writeState([.bind("told", as: dead)])
            let first = try stage.startWorker(waits: false)
            try stage.awaitState(first)
            try stage.writeEvents([.message("told-1", to: ["told"])])
            stage.refuseRecords(true)
            try until("the token is refused") {
                first.metric("carillon_decisions_total", #"verdict="rejected""#) >= 1
            }
            stage.kill(first)
            stage.refuseRecords(false)
            let second = try stage.startWorker(waits: false)
            let seen = try stage.look(until: "the backend is told") { !$0.feedback.isEmpty }
            #expect(
                seen.feedback.allSatisfy {
                    $0["token"]?.string == dead && $0["cause"]?.string == "ExpiredToken"
                })
            try stage.writeEvents([.message("told-2", to: ["told"])])
            let after = try stage.look(until: "the next has its record") {
                !$0.outcomes(of: "told-2").isEmpty
            }
            #expect(after.outcomes(of: "told-2") == ["told suppressed no_token"], "it is gone now")
            #expect(try stage.stop(second))
        }
    }

    /// A crash between the parking of a push and the commit of its offset: the event is read again while its parked record
    /// waits elsewhere. Both go through one partition, so that the message has one verdict.
    @Test func anEventReadAgainWhileParkedIsProcessedOnItsOwn() throws {
        try Stage.with { stage in
            try stage.play(state: [.bind("beside")])
            stage.answerPushes(.unavailable)
            try stage.writeEvents([.message("beside-1", to: ["beside"], seq: 1)])
            _ = try stage.look(until: "it is parked") { !$0.parked.isEmpty }
            let before = try stage.metric("carillon_parked_total")
            // Read meanwhile, so that neither has a push to make.
            try stage.writeState([.read("beside", #""up_to_seq":1"#)])
            try stage.writeEvents([.message("beside-1", to: ["beside"], seq: 1)])
            try until("what was read again is parked") {
                try stage.metric("carillon_parked_total") > before
            }
            stage.answerPushes(nil)
            try stage.settle()
            let outcomes = try stage.look().outcomes(of: "beside-1")
            #expect(outcomes.count == 1, "\(outcomes)")
        }
    }

    /// Its phone waits again, and the brokers have not taken the record that says so.
    @Test func `a parked recipient that waits again when its partition goes is left to the next owner`() throws {
        try Stage.with(.oneShard) { stage in
            try stage.play(state: [.bind("a")])
            let (soonMs, laterMs, endMs) = (nowMs + 2_000, nowMs + 20_000, nowMs + 60_000)
            try stage.redis([
                #"HSET c:u:{im:a} y "2 \#(soonMs) \#(nowMs) \#(endMs) mfirst""#,
                #"HSET c:u:{im:a} yphone "2 \#(laterMs) \#(nowMs) \#(endMs) msecond""#,
            ])
            try stage.writeEvents([.message("m", to: ["a"])])
            _ = try stage.look(until: "it is parked as a whole") { $0.parked.count == 1 }
            stage.wait(.milliseconds(500))
            stage.refuseRecords(true)
            stage.wait(untilMs: soonMs + 1_000)
            var hasEnded = false
            stage.beginStop(try stage.worker) { _ in hasEnded = true }
            stage.wait(.milliseconds(100))
            stage.refuseRecords(false)
            try until("the worker has ended") { hasEnded }
            #expect(try stage.look().parked.count == 2)
            #expect(stage.committedRecords(of: "carillon.parked") == 0)
            try stage.startWorker()
            try stage.settle()
            #expect(try stage.look().outcomes(of: "m") == ["a/phone accepted ok 1"])
        }
    }

    /// One is on a stream, and the other waits for an ack.
    @Test func `a parked record of two is left to the next owner if one of them is unfinished`() throws {
        try Stage.with(.oneShard) { stage in
            try stage.play(state: [.bind("a"), .bind("b")])
            let soonMs = nowMs + 2_000
            try stage.redis(
                ["a", "b"].map { #"HSET c:u:{im:\#($0)} y "2 \#(soonMs) \#(nowMs) \#(nowMs + 60_000) mfirst""# }
                    + [Gateway.lease("gw"), Gateway.presence("b", "phone", gateway: "gw")])
            stage.answerPushes(.late(3_000))
            try stage.writeEvents([.message("m", to: ["a", "b"], conv: "g", type: "group")])
            _ = try stage.look(until: "both are parked") { $0.parked.count == 2 }
            stage.wait(untilMs: soonMs + 1_000)
            try stage.stop(try stage.worker)
            #expect(try stage.look().outcomes(of: "m") == ["a/phone accepted ok 1"])
            #expect(stage.committedRecords(of: "carillon.parked") == 0)
            try stage.startWorker()
            try stage.settle()
            #expect(try stage.look().outcomes(of: "m") == ["a/phone accepted ok 1", "b/phone accepted ok 1"])
        }
    }

    /// A parked push that was accepted before a crash: its record comes back, and says nothing else of the device.
    @Test func aPushParkedAndAcceptedBeforeACrashHasOneVerdict() throws {
        try Stage.with { stage in
            try stage.play(state: [.bind("back")])
            stage.answerPushes(.unavailable)
            try stage.writeEvents([.message("back-1", to: ["back"])])
            _ = try stage.look(until: "it is parked") { !$0.parked.isEmpty }
            try stage.redis(["SET c:d4:{im:back}mback-1 ca5:phone EX 3600"])
            stage.answerPushes(nil)
            try stage.settle()
            #expect(try stage.look().outcomes(of: "back-1") == ["back/phone accepted ok"])
            // The record names no push to a token that was bound since.
            try stage.redis(["SET c:d4:{im:back}mback-2 ca5:phone EX 3600"])
            try stage.writeState([.bind("back", as: token("back", "new"), version: 2, sentMs: nowMs)])
            try stage.settle()
            var event = Line.message("back-2", to: ["back"], sentMs: nowMs - 60_000)
            event.timestampMs = nowMs - 60_000
            try stage.writeEvents([event])
            let seen = try stage.look(until: "it has ended") { $0.result(of: "back-2") != nil }
            #expect(seen.outcomes(of: "back-2") == ["back/phone accepted ok"])
            #expect(seen.result(of: "back-2")?["pid"] == nil)
        }
    }

    /// Pushed before a crash, and read, out of date, muted or without a token since: what happened is the verdict, and
    /// what would be decided now is none.
    @Test func devicesPushedBeforeACrashHaveOneVerdict() throws {
        try Stage.with { stage in
            let users = ["a-read", "a-late", "a-mute", "a-none", "a-gone"]
            try stage.play(
                state: [
                    .read("a-read", #""up_to_seq":1"#), .bind("a-read"), .bind("a-late"), .bind("a-mute"),
                    .bind("a-gone"),
                ])
            try stage.redis(
                users.map { "SET c:d6:{im:\($0)}m\($0)-1 ca5:phone EX 3600" } + [
                    "HSET g:{im:a-group} a-mute 5", "HSET c:e:{im:a-mute-1} \"\" 12345",
                    "SET c:d6:{im:a-gone}ma-gone-1 cx\(nowMs);a5:phone EX 3600",
                ])
            try stage.play(events: [
                .message("a-read-1", to: ["a-read"], seq: 1),
                .message("a-late-1", to: ["a-late"], sentMs: nowMs - 60_000, #","expire_at_ms":\#(nowMs - 1000)"#),
                .message("a-mute-1", to: nil, conv: "a-group", type: "group"),
                .message("a-none-1", to: ["a-none"]),
                .message("a-gone-1", to: ["a-gone"]),
            ])
            let seen = try stage.look()
            for user in users {
                #expect(seen.outcomes(of: "\(user)-1") == ["\(user)/phone accepted ok"])
                #expect(seen.accepted(token(user, "phone")).isEmpty, "\(user) was pushed twice")
            }
        }
    }

    /// Retriable: the producer keeps its records and tries again.
    private static let notEnoughReplicas: Int32 = 19
    /// Fatal for an idempotent producer.
    private static let outOfOrderSequence: Int32 = 45

    /// Contract 7: 70 is the exit code of a fatal Kafka error; results go on otherwise.
    @Test func resultsGoOnAfterTheProducerDied() throws {
        let settings = LocalCluster.Settings.oneShard
        try Stage.bare(settings) { stage in
            let users = (0..<8).map { "dead-\($0)" }
            let lasts = users.map { "\($0)-2" }
            try stage.writeState(users.map { .bind($0) })
            var worker = try stage.startWorker(waits: false)
            try stage.writeEvents(users.map { .message("\($0)-1", to: [$0]) })
            _ = try stage.look(until: "the first results are written") { $0.results.count >= users.count }
            // The next to write is the worker, with the results of the second messages.
            stage.answerPushes(.late(2000))
            try stage.writeEvents(users.map { .message("\($0)-2", to: [$0]) })
            for producer in stage.kafka.producers(of: worker.seat.kafka) {
                producer.fail(code: Self.outOfOrderSequence)
            }
            try until("the second messages have results", within: .seconds(60)) {
                // As a supervisor does.
                if worker.seat.hasFailed {
                    stage.kill(worker)
                    worker = try stage.startWorker(waits: false)
                }
                let seen = try stage.look()
                return lasts.allSatisfy { !seen.outcomes(of: $0).isEmpty }
            }
            stage.kill(worker)
        }
    }

    // MARK: - A group that shares out anew

    /// Design 5, G1: what a revocation abandons is gone, though Redis' answer to it comes later.
    @Test func nothingRemainsOfRecipientsOfRevokedPartitions() throws {
        let crowd = Crowd(name: "giant", count: 1000)
        var settings = LocalCluster.Settings.oneShard
        settings.redisLines = "  timeout_ms: 60000\n"
        try Stage.with(settings) { stage in
            let worker = try stage.worker
            try stage.play(state: crowd.binds)
            for start in stride(from: 0, to: crowd.count, by: 500) {
                let members = (start..<start + 500).map { "\(crowd.uid($0)) 0" }.joined(separator: " ")
                for group in 0..<4 { try stage.redis(["HSET g:{im:giant-\(group)} \(members)"]) }
            }
            try stage.writeEvents(
                (0..<4).map { .message("giant-\($0)-1", to: nil, conv: "giant-\($0)", type: "group") })
            try until("some hundred are pushed") {
                stage.apns.counters.accepted >= 300
            }
            // What was asked last is answered after the partitions are gone.
            stage.redis.freeze()
            let topics = Configuration.Topics()
            let guest = try Guest(stage, topics: [topics.events, topics.userState])
            try until("the partitions are revoked") {
                worker.assignedPartitions() == 0
            }
            stage.redis.thaw()
            guest.leave()
            try stage.awaitGroup(of: [worker])
            // What was handed back is gone at once, and read again.
            _ = try stage.look(until: "every recipient has an outcome", within: .seconds(100)) { seen in
                let ends = Set(
                    seen.results.map { "\($0["uid"]?.string ?? "") \($0["msg_id"]?.string ?? "")" })
                return ends.count == 4 * crowd.count
            }
            try until("nothing is in hand") {
                let events = try stage.metric("carillon_pending_events")
                let recipients = try stage.metric("carillon_pending_recipients")
                return events == 0 && recipients == 0
            }
            #expect(try stage.metric("carillon_device_lane_waiting") == 0)
            // And each of the devices can be pushed.
            try stage.writeEvents([.message("giant-0-2", to: nil, conv: "giant-0", type: "group")])
            _ = try stage.look(until: "every member has the next one too") {
                $0.outcomes(of: "giant-0-2").count == crowd.count
            }
        }
    }

    // MARK: - User state beside pushes

    /// Design 9: user state is never held back by pushes.
    @Test func userStateIsAppliedWhilePushesAreHeldBack() throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        settings.appLines = "    limits: {in_flight: 20, connections: 1}\n"
        try Stage.with(settings) { stage in
            let crowd = Crowd(name: "held", count: 2500)
            try stage.play(
                state: crowd.binds + [.bind("held-reader")],
                events: [.message("held-reader-1", to: ["held-reader"], seq: 1)])
            #expect(try Self.badge("held-reader", stage) == 1)
            // Five a second go out, so that what waits behind them waits for minutes.
            stage.answerPushes(.late(4000))
            try stage.writeEvents(crowd.messages)
            try until("pushes are held back") {
                try stage.metric("carillon_backpressure_seconds_total") > 0
            }
            try stage.writeState([.bind("held-new"), .read("held-reader", #""up_to_seq":1"#)])
            try until("both are applied", within: .seconds(60)) {
                let isBound = try stage.redisText("HEXISTS c:u:{im:held-new} ta5:phone") == ":1"
                return try isBound && Self.badge("held-reader", stage) == 0
            }
        }
    }

    /// The number of the user's unread messages.
    private static func badge(_ uid: String, _ stage: Stage) throws -> Int? {
        Int(try stage.redisText("ZCARD c:l:{im:\(uid)}").dropFirst())
    }

    /// Design 9: after an assignment user state is drained first.
    @Test func bindsInOneBacklogWithEventsCountForThem() throws {
        try Stage.bare { stage in
            let crowd = Crowd(name: "backlog", count: 1000)
            try stage.writeState(crowd.binds)
            try stage.writeEvents(crowd.messages)
            try stage.startWorker()
            try stage.settle()
            let without = try stage.look().results.count { $0["reason"]?.string == "no_token" }
            #expect(without == 0, "of \(crowd.count)")
        }
    }

    /// Design 9: an ack is not missing because pushes hold up the work.
    @Test func acknowledgedUsersAreNotAlertedWhilePushesAreHeldBack() throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        settings.appLines = "    limits: {in_flight: 20, connections: 1}\n"
        try Stage.with(settings) { stage in
            let users = (0..<20).map { "live-\($0)" }
            let crowd = Crowd(name: "flood", count: 2500)
            try stage.redis([Gateway.lease("gw-l")])
            try stage.redis(users.map { Gateway.presence($0, "phone", gateway: "gw-l") })
            try stage.play(state: crowd.binds + users.map { .bind($0) })
            stage.answerPushes(.late(4000))
            try stage.writeEvents(users.map { .message("\($0)-1", to: [$0]) })
            let delivered = try stage.look(until: "all are delivered") { seen in
                users.allSatisfy { !seen.targets(of: "\($0)-1").isEmpty }
            }
            let dues = delivered.deliveries.flatMap { $0["to"]?.array ?? [] }.compactMap { $0["ack_by_ms"]?.int }
            let dueMs = try #require(dues.min())
            try stage.writeEvents(crowd.messages)
            try until("pushes are held back") {
                try stage.metric("carillon_backpressure_seconds_total") > 0
            }
            try stage.writeState(users.map { .ack($0, "phone", ["\($0)-1"]) })
            #expect(nowMs < dueMs - 2000, "in time")
            let seen = try stage.look(until: "they have outcomes", within: .seconds(60)) { seen in
                users.allSatisfy { !seen.outcomes(of: "\($0)-1").isEmpty }
            }
            let acknowledged = users.count { seen.outcomes(of: "\($0)-1") == ["\($0)/phone online acked"] }
            #expect(acknowledged == users.count)
        }
    }

    // MARK: - One token that is told too much

    /// Design 5, G1: a push that waits for a token's 429 to pass is woken, whatever became of the one before it.
    @Test func bothAlertsGoAfterTwoRefusalsOfTheFirst() throws {
        try Stage.with { stage in
            try stage.play(state: [.bind("t1")])
            var once = ScenarioRule.Match()
            once.count = 1
            var refusedLate = ScenarioAnswer.tooMany
            refusedLate.delayMs = 3000
            stage.apns.set(
                Scenario(rules: [
                    ScenarioRule(once, .answer(.tooMany)), ScenarioRule(once, .answer(refusedLate)),
                ]))
            try stage.writeEvents([.message("t1-1", to: ["t1"])])
            try until("the second try is under way") {
                stage.apns.counters.requests >= 2
            }
            try stage.writeEvents([.message("t1-2", to: ["t1"])])
            try stage.settle()
            let seen = try stage.look()
            #expect(seen.outcomes(of: "t1-1") == ["t1/phone accepted ok 2"])
            #expect(seen.outcomes(of: "t1-2") == ["t1/phone accepted ok 2"])
        }
    }
}

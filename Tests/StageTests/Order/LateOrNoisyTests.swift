// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage
import Worker

/// In time, in order, one at a time, and without a flood of log lines.
struct LateOrNoisyTests {
    // MARK: - The end of a worker

    /// Contract 7, 0: drained. What only waits goes to the next owner: an ack that is awaited.
    @Test func anAwaitedAckDoesNotHoldUpTheEndAndTheNextWorkerGoesOnToThePush() throws {
        try Stage.bare(.oneShard) { stage in
            let phone = token("e1", "phone")
            try stage.redis([Gateway.lease("gw-e"), Gateway.presence("e1", "phone", gateway: "gw-e")])
            let first = try Self.worker(stage, after: [.bind("e1")])
            try stage.writeEvents([.message("e1-1", to: ["e1"])])
            let seen = try stage.look(until: "it is delivered") { !$0.targets(of: "e1-1").isEmpty }
            #expect(seen.targets(of: "e1-1").first?["ack_by_ms"]?.int != nil)
            #expect(try stage.stop(first))
            #expect(stage.apns.requests.count == 0, "the worker that ends does not wait for acks")
            let second = try stage.startWorker(waits: false)
            let pushed = try stage.look(until: "the phone is pushed") { !$0.accepted(phone).isEmpty }
            #expect(pushed.accepted(phone).count == 1)
            #expect(try stage.stop(second))
        }
    }

    /// Contract 7, 0: drained. What only waits goes to the next owner: a phone behind a desktop.
    @Test func aHeldPhoneDoesNotHoldUpTheEndAndTheNextWorkerGoesOnToThePush() throws {
        try Stage.bare(.oneShard) { stage in
            let phone = token("e2", "phone")
            try stage.redis([
                Gateway.lease("gw-e"), Gateway.presence("e2", "pc", platform: "pc", gateway: "gw-e"),
            ])
            let first = try Self.worker(
                stage,
                after: [
                    .bind("e2"), .ack("e2", "pc", ["e2-1"]),
                    .state("settings", "e2", #""push_when_desktop_online":false,"hold_s":25"#),
                ])
            try stage.writeEvents([.message("e2-1", to: ["e2"])])
            _ = try stage.look(until: "the desktop is done") {
                $0.outcomes(of: "e2-1") == ["e2/pc online acked"]
            }
            #expect(try stage.stop(first), "within drain_s, which is shorter than the hold")
            let second = try stage.startWorker(waits: false)
            let pushed = try stage.look(until: "the phone is pushed") { !$0.accepted(phone).isEmpty }
            #expect(pushed.accepted(phone).count == 1)
            stage.kill(second)
        }
    }

    /// Contract 7, 0: drained. A push that came back from `carillon.parked` and is put off once more.
    @Test func aReturnedPushThatIsPutOffAgainDoesNotHoldUpTheEnd() throws {
        try Stage.bare(.oneShard) { stage in
            let phone = token("e3", "phone")
            let first = try Self.worker(stage, after: [.bind("e3")])
            stage.answerPushes(.putOff(seconds: 10))
            try stage.writeEvents([.message("e3-1", to: ["e3"])])
            _ = try stage.look(until: "it is parked") { !$0.parked.isEmpty }
            stage.answerPushes(.putOff(seconds: 60, afterMs: 3000))
            try until("it is back on a stream") { stage.apns.counters.requests >= 2 }
            #expect(try stage.stop(first), "within drain_s, which is shorter than APNs' patience")
            stage.answerPushes(nil)
            let second = try stage.startWorker(waits: false)
            _ = try stage.look(until: "it has its result") { !$0.outcomes(of: "e3-1").isEmpty }
            #expect(try stage.stop(second))
            let seen = try stage.look()
            #expect(seen.accepted(phone).count == 1 && seen.outcomes(of: "e3-1").count == 1)
        }
    }

    /// A group whose members are being begun, while APNs has no room for more.
    @Test func aGroupThatWaitsForRoomDoesNotHoldUpTheEnd() throws {
        try Stage.with(.oneShard) { stage in
            let crowd = Crowd(name: "room", count: 1500)
            try stage.play(state: crowd.binds)
            let members = (0..<crowd.count).map { "\(crowd.uid($0)) 0" }.joined(separator: " ")
            try stage.redis(["HSET g:{im:group-room} \(members)"])
            stage.answerPushes(.unavailable)
            try stage.writeEvents([.message("room-1", to: nil, conv: "group-room", type: "group")])
            try until("some of them wait for APNs") {
                try stage.metric("carillon_pending_recipients") >= 500
            }
            #expect(try stage.stop(try stage.worker), "drained")
        }
    }

    /// A worker process that has settled these changes.
    private static func worker(_ stage: Stage, after changes: [Line]) throws -> StageWorker {
        try stage.writeState(changes)
        let worker = try stage.startWorker(waits: false)
        try stage.awaitState(worker)
        return worker
    }

    /// Contract 7, `run`: reads no more, finishes what is in hand.
    @Test func nothingIsReadAfterTheOrderToEnd() throws {
        var settings = LocalCluster.Settings.oneShard
        settings.lines = "window: {records: 40}\n"
        settings.drainSeconds = 90
        settings.appLines = "    limits: {in_flight: 10, connections: 1}\n"
        try Stage.with(settings) { stage in
            let crowd = Crowd(name: "window", count: 1000)
            let worker = try stage.worker
            try stage.play(state: crowd.binds)
            stage.answerPushes(.unavailable)
            try stage.writeEvents(crowd.messages)
            func ready() throws -> (status: Int, text: String) {
                let page = try stage.page("/readyz", of: worker)
                return (page.status, page.text)
            }
            try until("an APNs that is unavailable is told") {
                let page = try ready()
                return page.status == 503
                    && page.text.contains("app im production: down: APNs reports that it is unavailable")
            }
            try until("every partition's window is full") {
                worker.status().shards.allSatisfy { $0.pausedPartitions == 4 }
            }
            let consumed = stage.progress(of: worker.seat.status, isSettled: false) - crowd.count
            #expect(consumed < crowd.count / 2)
            func held(_ cause: String) throws -> Int {
                try stage.metric("carillon_backpressure_seconds_total", "cause=\"\(cause)\"")
            }
            let (windows, breaker) = (try held("window"), try held("breaker"))
            try until("the open breaker is told as the cause") { try held("breaker") >= breaker + 4 }
            #expect(try held("window") <= windows + 1, "full windows follow from it")
            let taken = stage.progress(of: worker.seat.status, isSettled: false) - crowd.count
            var hasEnded = false
            stage.beginStop(worker) { _ in hasEnded = true }
            try until("it is told while it drains") {
                let page = try ready()
                return page.status == 503 && page.text.hasPrefix("draining\n")
            }
            // At a pace, so that what is in hand becomes less by and by.
            stage.answerPushes(.late(500))
            try until("it has ended") { hasEnded }
            let pushed = Set(stage.apns.requests.map(\.token)).count
            #expect(pushed <= taken)
        }
    }

    /// Contract 8: `window.bytes` bounds what a shard has in hand, whatever the number of its partitions.
    @Test func thePartitionsOfAShardShareTheBytesOfItsWindow() throws {
        let windowBytes = 1 << 20
        let text = String(repeating: "x", count: 8000)
        var settings = LocalCluster.Settings.oneShard
        settings.lines = "window: {bytes: \(windowBytes)}\n"
        try Stage.with(settings) { stage in
            let crowd = Crowd(name: "bytes", count: 1200)
            // Each waits for an ack that does not come.
            try stage.redis(
                [Gateway.lease("gw-bytes")]
                    + (0..<crowd.count).map { Gateway.presence(crowd.uid($0), "phone", gateway: "gw-bytes") })
            func messages(_ numbers: Range<Int>, conv: (Int) -> String) -> [Line] {
                numbers.map {
                    .message("bytes-\($0)", to: [crowd.uid($0)], conv: conv($0), #","unknown":"\#(text)""#)
                }
            }
            // One conversation is one partition: it alone fills the share from which the largest rests.
            try stage.writeEvents(messages(0..<120) { _ in "c-bytes" })
            try until("that partition rests") {
                try stage.metric("carillon_kafka_paused_partitions") == 1
            }
            try stage.writeEvents(messages(120..<crowd.count) { "c-bytes-\($0)" })
            try until("all rest") {
                try stage.metric("carillon_kafka_paused_partitions") == settings.partitions
            }
            let rested = try stage.metric("carillon_backpressure_seconds_total")
            try until("they have rested for a while") {
                try stage.metric("carillon_backpressure_seconds_total") >= rested + 3
            }
            let pending = (try stage.worker).status().shards.reduce(0) { $0 + $1.pendingRecords }
            #expect((pending - 64) * text.utf8.count <= windowBytes, "one batch of records may come on top")
        }
    }

    // MARK: - Late

    /// Contract 5, order: a token that is bound between the read and the claim of a message has it read once more; later
    /// ones of its conversation, which saw the new token at once, wait for it.
    @Test func aTokenBoundInBetweenDoesNotChangeTheOrderOfAConversation() throws {
        try Stage.with(.oneShard) { stage in
            let users = (0..<20).map { "rebind-\($0)" }
            let turns = 80
            try stage.play(state: users.map { .bind($0, version: 1) })
            for part in 0..<turns / 8 {
                let binds = users.map { Line.bind($0, as: token("\($0)-\(part)", "phone"), version: part + 2) }
                let messages = (part * 8..<part * 8 + 8).flatMap { turn in
                    users.map { Line.message("\($0)-\(turn)", to: [$0], push: #""content":"\#(turn)""#) }
                }
                try stage.writeState(binds)
                try stage.writeEvents(messages)
                stage.wait(.milliseconds(20))
            }
            try stage.settle()
            let seen = try stage.look()
            var turnOf: [String: Int] = [:]
            var userOf: [String: String] = [:]
            for user in users {
                for turn in 0..<turns {
                    guard let id = seen.result(of: "\(user)-\(turn)")?["apns_id"]?.string else { continue }
                    (turnOf[id], userOf[id]) = (turn, user)
                }
            }
            var newest: [String: Int] = [:]
            var late = 0
            for push in seen.pushes where push.status == 200 {
                guard let turn = turnOf[push.apnsID], let user = userOf[push.apnsID] else { continue }
                if turn < newest[user] ?? 0 { late += 1 }
                newest[user] = max(turn, newest[user] ?? 0)
            }
            #expect(turnOf.count == users.count * turns)
            #expect(late == 0, "pushes of \(turnOf.count) came behind a newer one of their conversation")
        }
    }

    /// Design 5, G1: while pushes wait, APNs is looked for at least every five seconds, with jitter.
    @Test func anAPNsThatComesBackIsFoundInSeconds() throws {
        var settings = LocalCluster.Settings()
        // Each with a client of its own, and all of them have pushes that wait.
        settings.shards = 4
        try Stage.with(settings) { stage in
            let crowd = Crowd(name: "back", count: 40)
            try stage.play(state: crowd.binds)
            _ = stage.takeAPNsDown()
            try stage.writeEvents(crowd.messages)
            stage.wait(untilMs: nowMs + 40_000)
            stage.bringAPNsUp()
            let backMs = nowMs
            try until("everyone is pushed") {
                !crowd.accepted(stage.apns.requests).contains(0)
            }
            let last = stage.apns.requests.map(\.atMs).max() ?? .max
            // Thrice the wait, for a slow machine.
            #expect(last - backMs < 15_000)
        }
    }

    // MARK: - Order

    /// Contract 5, step 16: one push in flight per device, within a process always.
    @Test func oneDeviceNeverHasTwoPushesInFlight() throws {
        let answerMs: Int64 = 400
        var settings = LocalCluster.Settings()
        settings.scenario = Scenario(rules: [ScenarioRule(ScenarioRule.Match(), .answer(.late(answerMs)))])
        try Stage.with(settings) { stage in
            let users = (0..<20).map { "one-\($0)" }
            try stage.play(state: users.map { .bind($0) })
            let rebalances = try stage.metric("carillon_kafka_rebalances_total")
            // Conversations of one user lie on different partitions, and so with different shards.
            let seen = try stage.play(
                events: (0..<10).flatMap { number in
                    users.map { .message("\($0)-\(number)", to: [$0], conv: "c-\($0)-\(number)") }
                })
            let hasMoved = try stage.metric("carillon_kafka_rebalances_total") > rebalances
            var overlaps = 0
            for user in users {
                let pushes = seen.accepted(token(user, "phone"))
                #expect(pushes.count { $0.json["aps"]?["alert"] != nil } == 10)
                // A badge alone goes only where a rebalance left messages of the user to the other shard.
                #expect(hasMoved || pushes.count == 10)
                let times = pushes.map(\.atMs).sorted()
                // Each is answered so long after it came, at the earliest; the clock may jump a little.
                overlaps += zip(times, times.dropFirst()).count { $1 - $0 < answerMs - 50 }
            }
            #expect(overlaps == 0, "of \(users.count * 10) pushes")
        }
    }

    /// Design 9, lanes: within a shard a conversation's messages leave in their order.
    @Test func aStallOfRedisDoesNotChangeTheOrderOfAConversation() throws {
        try Stage.with { stage in
            let users = (0..<20).map { "stall-\($0)" }
            let count = 60
            try stage.play(state: users.map { .bind($0) })
            let redis = stage.redis
            for half in 0..<2 {
                try stage.writeEvents(
                    (half * count / 2..<(half + 1) * count / 2).flatMap { number in
                        users.map { .message("\($0)-\(number)", to: [$0], seq: Int64(number + 1)) }
                    })
                if half == 0 {
                    try until("some are pushed") { stage.apns.counters.accepted > 50 }
                    redis.freeze()
                }
            }
            // Longer than `timeout_ms`: links are cut, and what was asked is asked again.
            try until("the silence is noticed") { try stage.page("/readyz").status == 503 }
            redis.thaw()
            try stage.settle()
            let seen = try stage.look()
            var late = 0
            for user in users {
                var numbers: [String: Int] = [:]
                for number in 0..<count {
                    if let id = seen.result(of: "\(user)-\(number)")?["apns_id"]?.string { numbers[id] = number }
                }
                let order = seen.accepted(token(user, "phone")).compactMap { numbers[$0.apnsID] }
                #expect(order.count == count)
                late += zip(order, order.dropFirst()).count { $0 > $1 }
            }
            #expect(late == 0, "pushes of \(users.count * count) came behind a newer one of their conversation")
        }
    }

    // MARK: - Noise

    /// Design 9: one line per cause and ten seconds, the rest counted.
    @Test func anIntermittentlyFullRedisIsReportedInFewLines() throws {
        try Stage.with(.oneShard) { stage in
            try stage.play(state: [.bind("noise")])
            let before = try Self.loud(stage)
            let begunMs = nowMs
            var rounds = 0
            while nowMs < begunMs + 20_000 || rounds < 20 {
                let accepted = stage.apns.counters.accepted
                try stage.redis(["CONFIG SET maxmemory 1"])
                try stage.writeEvents([.message("noise-\(rounds)", to: ["noise"])])
                try until("it is pushed without a number") {
                    stage.apns.counters.accepted > accepted
                }
                try stage.redis(["CONFIG SET maxmemory 0"])
                try stage.settle()
                rounds += 1
            }
            let lines = try Self.loud(stage) - before
            // A few causes, each once in ten seconds.
            let periods = Int((nowMs - begunMs) / 10_000) + 1
            #expect(lines <= 6 * periods, "\(rounds) times full")
        }
    }

    /// Log lines at info and above.
    private static func loud(_ stage: Stage) throws -> Int {
        try stage.logText().split(separator: "\n").count { !$0.contains(#""level":"debug""#) }
    }

    /// The copy of a message waits for all devices of its user, and so does the message behind it. That one waits again later, for
    /// its own device.
    @Test func `a user has no note of parked work once all of it has ended`() throws {
        try Stage.with { stage in
            let crowd = Crowd(name: "noted", count: 100)
            try stage.play(state: crowd.binds)
            stage.answerPushes(.unavailable)
            try stage.writeEvents(crowd.messages + crowd.messages)
            _ = try stage.look(until: "both are parked") { $0.parked.count >= 150 }
            try stage.writeEvents((0..<crowd.count).map { .message("second-\($0)", to: [crowd.uid($0)]) })
            stage.wait(.seconds(30))
            stage.answerPushes(nil)
            try stage.settle()
            let seen = try stage.look()
            let again = Set(seen.parked.filter { $0["device"] == nil }.compactMap { $0["uid"]?.string })
            #expect(again.count > 50, "\(again.count)")
            #expect(crowd.accepted(seen.pushes).allSatisfy { $0 == 2 })
            let noted = try (0..<crowd.count).filter { number in
                try stage.redisText("HKEYS c:u:{im:\(crowd.uid(number))}").split(separator: " ")
                    .contains { ["y", "Y"].contains($0.prefix(1)) }
            }
            #expect(noted.isEmpty)
        }
    }
}

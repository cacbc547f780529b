// SPDX-License-Identifier: Apache-2.0
import Crypto
import JSON
import Simulator
import Testing
import VirtualStage
import Worker

/// Two apps in one worker: whatever becomes of the one, the other's pushes arrive.
struct TenantTests {
    /// Contract 0 and 8, `limits.share`: no tenant stops another's.
    @Test(arguments: Hostility.allCases)
    func aHostileAppDoesNotStopTheOther(_ way: Hostility) throws {
        try Stage.with(try way.settings()) { stage in
            let crowds = ["before", "during", "after"].map { Crowd(name: $0, count: 60) }
            try stage.play(state: crowds.flatMap(\.binds))
            try way.prepare(stage)
            var delays = [try Self.arrive(crowds[0], stage)]
            try stage.writeEvents(way.events)
            // In between and behind, into the same partitions.
            for crowd in crowds.dropFirst() { delays.append(try Self.arrive(crowd, stage)) }
            let texts = zip(crowds, delays).map { "\($0.name) \($1[$1.count / 2])/\($1[$1.count - 1])" }
            print("a hostile app, \(way): 60 pushes each, ms p50/worst: \(texts.joined(separator: ", "))")
            let seen = try stage.look()
            for crowd in crowds { crowd.expectOnceEach(seen, "\(way), \(crowd.name)") }
            #expect(try stage.page("/readyz").status == 200, "one app's trouble is not the process's")
            let decided = try stage.metric("carillon_decisions_total", #"app="im""#)
            #expect(decided == crowds.count * crowds[0].count)
            // Both apps have one key of one team (but for the bad one): APNs' series and breakers are each app's own.
            let attempts = try stage.metric("carillon_push_attempts_total", #"app="im""#)
            #expect(attempts >= decided && attempts < decided + 30)
            #expect(try stage.metric("carillon_breaker_state", #"app="im""#) == 0)
        }
    }

    /// Writes the crowd's messages and waits for their results; from the writing to APNs, ms, the shortest first.
    private static func arrive(_ crowd: Crowd, _ stage: Stage) throws -> [Int64] {
        let writtenMs = nowMs
        try stage.writeEvents(crowd.messages)
        let seen = try stage.look(until: "every push of \(crowd.name) has its result", within: .seconds(60)) {
            let ended = Set($0.results.compactMap { $0["uid"]?.string })
            return (0..<crowd.count).allSatisfy { ended.contains(crowd.uid($0)) }
        }
        let tokens = Set((0..<crowd.count).map(crowd.token))
        let accepted = seen.pushes.filter { $0.status == 200 && tokens.contains($0.token) }
        let delays = accepted.map { $0.atMs - writtenMs }
        try #require(delays.count == crowd.count)
        return delays.sorted()
    }

    /// Contract 14, "Tokens and feedback".
    @Test func `an app whose key cannot be read at the start waits alone, and goes on when it can`() throws {
        var settings = try Hostility.badKey.settings()
        settings.tenants[0].keyPEM = Array("no key".utf8)
        try Stage.bare(settings) { stage in
            try stage.startWorker()
            try Hostility.badKey.prepare(stage)
            let crowd = Crowd(name: "well", count: 10)
            try stage.play(state: crowd.binds)
            try stage.writeEvents([.message("bad-1", to: ["hostile-0"], push: #""content":"t""#).of("bad")])
            _ = try Self.arrive(crowd, stage)
            try until("/readyz names it") {
                stage.wait(.seconds(1))
                let page = try stage.page("/readyz")
                return page.status == 200
                    && page.text.contains("app bad production: down: a credential cannot be used: ")
                    && page.text.contains("key-bad.p8")
            }
            try until("its push is parked") { try stage.metric("carillon_parked_total") >= 1 }
            _ = try stage.folder.write(stage.keyPEM, to: "key-bad.p8")
            try stage.settle()
            #expect(
                try stage.look().outcomes(of: "bad-1").map { String($0.prefix(27)) } == ["hostile-0/phone accepted ok"])
        }
    }

    /// Contract 5, outcomes: 403 parks the pushes; they come back when the credential is good, once each and in order.
    @Test(arguments: [400, 200])
    func pushesDelayedByABadKeyArriveOnceAfterItsCorrection(window: Int) throws {
        let way = Hostility.badKey
        var settings = try way.settings()
        settings.lines = "window: {records: \(window)}\n"
        try Stage.with(settings) { stage in
            try way.prepare(stage)
            let uids = (0..<100).map { "hostile-\($0)" }
            for turn in 0..<3 {
                try stage.writeEvents(
                    uids.map {
                        .message("\($0)-\(turn)", to: [$0], seq: Int64(turn), push: #""content":"t\#(turn)""#).of(
                            "bad")
                    })
            }
            try until("pushes are parked") { try stage.metric("carillon_parked_total") >= 250 }
            _ = try stage.folder.write(stage.keyPEM, to: "key-bad.p8")
            try stage.settle()
            let seen = try stage.look()
            for uid in uids {
                let bodies = seen.accepted(token(uid, "phone")).map {
                    $0.json["aps"]?["alert"]?["body"]?.string ?? ""
                }
                #expect(bodies == ["Nick: t0", "Nick: t1", "Nick: t2"], "\(uid)")
                let badges = (0..<3).map { seen.result(of: "\(uid)-\($0)")?["badge"]?.int ?? 0 }
                #expect(badges == badges.sorted() && badges.last == 3, "each counted once: \(badges)")
                for turn in 0..<3 {
                    let outcomes = seen.outcomes(of: "\(uid)-\(turn)")
                    #expect(outcomes.count == 1 && outcomes[0].hasPrefix("\(uid)/phone accepted ok"), "\(outcomes)")
                }
            }
            #expect(seen.doubled.isEmpty)
            #expect(!seen.parked.isEmpty && seen.parked.allSatisfy { $0["reason"]?.string != nil })
        }
    }

    /// Contract 5, order: per device and conversation, for what is parked too. The first message waits in memory for an
    /// ack of the user's desktop; the second, whose desktop has acknowledged, waits for nothing but the first.
    @Test func aPushThatWaitsToBeParkedIsNotOvertakenByALaterOne() throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        try Stage.with(settings) { stage in
            let crowd = Crowd(name: "trouble", count: 100)
            let probes = Crowd(name: "probe", count: 100)
            try stage.play(
                state: crowd.binds + probes.binds + [.bind("order"), .ack("order", "pc", ["order-2"])])
            try stage.redis([
                Gateway.lease("gw-o"), Gateway.presence("order", "pc", platform: "pc", gateway: "gw-o"),
            ])
            stage.answerPushes(.unavailable)
            try stage.writeEvents(crowd.messages)
            try until("APNs is known to be in trouble") {
                try stage.metric("carillon_parked_total") > 0
            }
            // As many as may wait in the client to find out about it, so that more is parked at once.
            let before = try stage.metric("carillon_parked_total")
            try stage.writeEvents(probes.messages)
            try until("the client has its probes") {
                try stage.metric("carillon_parked_total") > before
            }
            for (turn, id) in ["order-1", "order-2"].enumerated() {
                try stage.writeEvents([
                    .message(id, to: ["order"], seq: Int64(turn), push: #""content":"\#(id)""#)
                ])
                _ = try stage.look(until: "\(id) is delivered to the desktop") { !$0.targets(of: id).isEmpty }
            }
            stage.answerPushes(nil)
            try stage.settle()
            let pushes = try stage.look().accepted(token("order", "phone"))
            #expect(pushes.map { $0.json["aps"]?["alert"]?["body"]?.string } == ["Nick: order-1", "Nick: order-2"])
        }
    }

    /// A note of what another worker parked for the device: a message of another conversation, whose own earlier messages
    /// wait here, is parked after them.
    @Test func aPushParkedBehindAnotherIsParkedAfterItsOwnEarlierOnes() throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        try Stage.with(settings) { stage in
            try stage.play(state: [.bind("noted")])
            stage.answerPushes(.unavailable)
            try stage.writeEvents([.message("noted-1", to: ["noted"])])
            try until("the first was refused") {
                stage.apns.requests.contains { $0.token == token("noted", "phone") }
            }
            try stage.redis([#"HSET c:u:{im:noted} yphone "\#(nowMs) mother""#])
            try stage.writeEvents([.message("noted-2", to: ["noted"])])
            let seen = try stage.look(until: "both are parked") { $0.parked.count == 2 }
            #expect(seen.parked.map { $0["msg_id"]?.string } == ["noted-1", "noted-2"])
            stage.answerPushes(nil)
            try stage.settle()
            #expect(try stage.look().outcomes(of: "noted-2") == ["noted/phone accepted ok 2"])
        }
    }

    /// Contract 5, order: what is parked as it comes may be read by another worker at once, so it is due after what this
    /// one has in hand of its conversation.
    @Test func anEventParkedOnArrivalIsDueAfterItsConversationsEarlierOnes() throws {
        let way = Hostility.slow
        var settings = try way.settings()
        // 200 recipients.
        settings.tenants[0].lines = "    limits: {share: 0.01}\n"
        settings.lines = ""
        settings.partitions = 1
        try Stage.with(settings) { stage in
            try way.prepare(stage)
            let first = (0..<300).map { Line.message("first-\($0)", to: ["hostile-\($0)"]).of("bad") }
            let second = Line.message("second-0", to: ["hostile-0"], push: #""content":"second""#).of("bad")
            try stage.writeEvents(first + [second])
            try stage.settle()
            let delays = try Self.parkedDelays(stage)
            #expect(delays["msecond-0"] == 15_000, "its first may still be in hand")
            let others = delays.filter { $0.key.hasPrefix("mfirst-") }
            #expect(others.values.count { $0 == 0 } >= 50, "nothing is before them")
            let pushes = try stage.look().accepted(token("hostile-0", "phone"))
            #expect(
                pushes.map { $0.json["aps"]?["alert"]?["body"]?.string } == ["Nick: hello", "Nick: second"])
        }
    }

    /// From its writing to its time, ms, of each record of `carillon.parked` by its id.
    private static func parkedDelays(_ stage: Stage) throws -> [String: Int64] {
        var delays: [String: Int64] = [:]
        for record in stage.records(of: Configuration.Topics().parked) {
            let head = try JSONTree(parsing: Array(try #require(record.value).prefix { $0 != UInt8(ascii: "\n") }))
            let id = try #require(head["id"]?.string)
            delays[id] = try #require(head["due_ms"]?.int) - #require(head["at_ms"]?.int)
        }
        return delays
    }

    /// Contract 8, `limits.share`: it holds for any window. The surplus comes back as soon as there is room.
    @Test func aSmallWindowLeavesTheOtherAppItsShare() throws {
        let way = Hostility.slow
        var settings = try way.settings()
        settings.tenants[0].lines = "    limits: {share: 0.2}\n"
        settings.lines = "window: {records: 1000}\n"
        settings.partitions = 1
        try Stage.with(settings) { stage in
            let crowd = Crowd(name: "small", count: 60)
            try stage.play(state: crowd.binds)
            try way.prepare(stage)
            try stage.writeEvents(way.events)
            let delays = try Self.arrive(crowd, stage)
            print("share 0.2 of a window of 1000: ms p50/worst \(delays[30])/\(delays[59])")
            #expect(delays[59] < 3000)
            let seen = try stage.look()
            #expect(seen.parked.contains { $0["reason"]?.string == "share" && $0["uid"]?.string != "" })
            try stage.settle()
        }
    }

    /// What is parked comes back after a restart, and no claim counts twice.
    @Test func parkedWorkReturnsAfterARestart() throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        settings.sessionMs = LocalCluster.Settings.shortSessionMs
        try Stage.with(settings) { stage in
            let crowd = Crowd(name: "again", count: 100)
            try stage.play(state: crowd.binds)
            let gone = stage.takeAPNsDown()
            try stage.writeEvents(crowd.messages)
            try until("every event is settled, its push parked") {
                try stage.metric("carillon_events_settled_total") >= 2 * crowd.count
            }
            let first = try stage.worker
            #expect(try stage.stop(first))
            try stage.startWorker(waits: false)
            stage.bringAPNsUp()
            var seen = try stage.look(until: "every push is accepted") {
                crowd.accepted($0.pushes).allSatisfy { $0 > 0 }
            }
            try stage.settle()
            seen = try stage.look()
            seen.pushes = gone + seen.pushes
            crowd.expectOnceEach(seen, "parked before a restart")
        }
    }

    /// Contract 8, `topic`: of a list a bind's topic must be one, else it is ignored.
    @Test func aBindToATopicThatIsNoneOfTheAppsIsIgnoredAndCounted() throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        settings.moreTopics = ["com.example.two"]
        settings.lines = "state_results: true\n"
        try Stage.with(settings) { stage in
            let seen = try stage.play(
                state: [
                    .bind("t1"), .bind("t2", "phone", #","topic":"com.example.two""#),
                    .bind("t3", "phone", #","topic":"com.example.three""#),
                ], events: ["t1", "t2", "t3"].map { .message("\($0)-1", to: [$0]) })
            #expect(seen.outcomes(of: "t1-1") == ["t1/phone accepted ok 1"])
            #expect(seen.outcomes(of: "t2-1") == ["t2/phone accepted ok 1"])
            #expect(seen.pushes(to: token("t2", "phone")).map { $0.headers["apns-topic"] } == ["com.example.two"])
            #expect(seen.outcomes(of: "t3-1") == ["t3 suppressed no_token"])
            #expect(try stage.metric("carillon_user_state_total", #"outcome="other_topic""#) == 1)
            let told = try stage.records(of: Configuration.Topics().stateResults).compactMap {
                try $0.value.map { try JSONTree(parsing: $0) }
            }
            let ignored = told.filter { $0["outcome"]?.string == "ignored" }
            #expect(ignored.map { $0["uid"]?.string } == ["t3"] && ignored[0]["reason"]?.string == "other_topic")
        }
    }

    /// Contract 5, routes: a long hold waits outside of memory, and the offset does not wait for it.
    @Test func aLongHoldDoesNotHoldTheOffset() throws {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        try Stage.with(settings) { stage in
            try stage.redis([
                Gateway.lease("gw-h"), Gateway.presence("h1", "pc", platform: "pc", gateway: "gw-h"),
            ])
            try stage.play(state: [
                .bind("h1"), .ack("h1", "pc", ["h1-1"]),
                .state("settings", "h1", #""push_when_desktop_online":false,"hold_s":8"#),
            ])
            let beganMs = nowMs
            try stage.writeEvents([.message("h1-1", to: ["h1"])])
            let phone = token("h1", "phone")
            try until("the event is settled while the phone waits") {
                try stage.metric("carillon_events_settled_total") >= 4
            }
            #expect(try stage.look().accepted(phone).isEmpty)
            let seen = try stage.look(until: "the phone is pushed") { !$0.accepted(phone).isEmpty }
            #expect(nowMs - beganMs >= 8_000)
            #expect(seen.accepted(phone).count == 1)
            try stage.settle()
            let outcomes = try stage.look().outcomes(of: "h1-1")
            #expect(outcomes == ["h1/pc online acked", "h1/phone accepted ok 1"])
        }
    }
}

/// In which way an app makes trouble.
enum Hostility: String, CaseIterable, Sendable {
    /// APNs refuses its credential.
    case badKey
    /// Its endpoint refuses connections.
    case away
    /// Its APNs answers late.
    case slow
    /// Its APNs says 503 to everything.
    case unavailable
    /// Its APNs says 429 to everything, and to come back in a minute.
    case tooMany
    /// Its APNs answers nothing.
    case silent
    /// Its users hold every push for a minute.
    case holds
    /// It may send one push in a second, and sends a thousand.
    case overRate
    /// All its tokens are dead.
    case deadTokens
    /// Its messages go to thousands.
    case crowds

    static let users = 300
    static let messages = 1200

    private var tenant: LocalCluster.Tenant {
        get throws {
            var tenant = LocalCluster.Tenant(id: "bad", topic: "com.example.bad")
            if self == .badKey { tenant.keyPEM = try PrivateKey.generate().pem() }
            if self == .away { tenant.endpoint = "https://127.0.0.1:1" }
            if self == .overRate { tenant.lines = "    limits: {rate: 1}\n" }
            return tenant
        }
    }

    func settings() throws -> LocalCluster.Settings {
        var settings = LocalCluster.Settings()
        settings.shards = 1
        // Small enough that what is stuck would be felt.
        settings.partitions = 2
        settings.lines = "window: {records: 400}\n"
        settings.tenants = [try tenant]
        if let action {
            var match = ScenarioRule.Match()
            match.topic = Array("com.example.bad".utf8)
            settings.scenario = Scenario(rules: [ScenarioRule(match, action)])
        }
        return settings
    }

    private var action: ScenarioAction? {
        switch self {
        case .badKey, .away, .holds, .overRate: nil
        case .slow: .answer(.late(3000))
        case .unavailable: .answer(.unavailable)
        case .tooMany:
            .answer(
                {
                    var answer = ScenarioAnswer.tooMany
                    answer.retryAfterSeconds = 60
                    return answer
                }())
        case .silent: .freezeStream
        case .deadTokens: .answer(ScenarioAnswer(410, "Unregistered"))
        case .crowds: .answer(.late(500))
        }
    }

    func prepare(_ stage: Stage) throws {
        var state: [Line] = (0..<Self.users).map { .bind("hostile-\($0)") }
        if self == .holds {
            state += (0..<Self.users).map {
                .state("settings", "hostile-\($0)", #""push_when_desktop_online":false,"hold_s":60"#)
            }
            try stage.redis(
                [Gateway.lease("gw-x")]
                    + (0..<Self.users).map {
                        Gateway.presence("hostile-\($0)", "pc", platform: "pc", gateway: "gw-x")
                            .replacing("p:{im:", with: "p:{bad:")
                    })
        }
        try stage.play(state: state.map { $0.of("bad") })
    }

    var events: [Line] {
        let lines: [Line] =
            self == .crowds
            ? (0..<20).map { turn in
                .message(
                    "crowd-\(turn)", to: (0..<Self.users).map { "hostile-\($0)" }, conv: "crowd-\(turn % 4)",
                    type: "group")
            }
            : (0..<Self.messages).map { .message("bad-\($0)", to: ["hostile-\($0 % Self.users)"]) }
        return lines.map { $0.of("bad") }
    }
}

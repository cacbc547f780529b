// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage
import Worker

/// The digest at the end of DND, in a world whose app sends it.
///
/// No test waits for a window's end: what is due in Redis is made due now.
@Suite(.onStage(DigestWorld.settings))
struct Digests {
    private static let quiet = #""dnd":{"on":true,"start":"00:00","end":"23:59","tz":"UTC","level":1}"#
    private static let loud = #""dnd":{"on":false}"#

    private func night(_ uid: String, _ more: [Line] = [], type: String = "group") throws -> Stage {
        let stage = try Stage.here
        try stage.play(
            state: [.bind(uid), .state("settings", uid, sentMs: nowMs - 5000, Self.quiet)],
            events: (1...3).map {
                .message("\(uid)-\($0)", to: [uid], type: type, seq: Int64($0), push: #""content":"text \#($0)""#)
            } + more)
        return stage
    }

    /// The digest itself is denied by no level, and by a snooze that goes on.
    @Test func `a snooze holds what comes, and its end brings the digest`() throws {
        let stage = try Stage.here
        let hourMs: Int64 = 3_600_000
        let end = nowMs + 72 * hourMs
        try stage.play(
            state: [
                .bind("g10"),
                .state(
                    "settings", "g10", sentMs: nowMs - 5000, #""snooze_until_ms":\#(end),"levels":{"system":5}"#),
            ],
            events: [.message("g10-1", to: ["g10"], seq: 1), .message("g10-2", to: ["g10"], seq: 2)])
        #expect(try stage.look().outcomes(of: "g10-2") == ["g10 suppressed dnd"])
        let due = DigestWorld.due("g10")
        #expect(try stage.redisText("ZSCORE \(due.key) \(due.member)").hasSuffix(" \(end)"))
        // Two nights more than the snooze.
        let seconds = try #require(Int(try stage.redisText("TTL c:g:{im:g10}").dropFirst()))
        #expect((119 * 3600...120 * 3600).contains(seconds), "\(seconds)")
        // The snooze becomes longer.
        let later = end + 100 * hourMs
        try stage.play(state: [.state("settings", "g10", #""snooze_until_ms":\#(later)"#)])
        try stage.redis(["ZADD \(due.key) XX 1 \(due.member)"])
        try until("it is put off to the snooze's end") {
            try stage.redisText("ZSCORE \(due.key) \(due.member)").hasSuffix(" \(later)")
        }
        let kept = try #require(Int(try stage.redisText("TTL c:h:{im:g10}").dropFirst()))
        #expect(kept > 172 * 3600, "\(kept)")
        try stage.play(state: [.state("settings", "g10", sentMs: nowMs + 1, #""snooze_until_ms":0"#)])
        try stage.redis(["ZADD \(due.key) XX 1 \(due.member)"])
        try until("the digest is out") { try isDone("g10", stage) }
        #expect(body(try stage.look().accepted(token("g10", "phone")).last) == "You have 2 new messages")
    }

    /// The user's time has come.
    private func makeDue(_ uid: String, _ stage: Stage, quietEnds: Bool = true) throws {
        if quietEnds { try stage.play(state: [.state("settings", uid, Self.loud)]) }
        let due = DigestWorld.due(uid)
        try stage.redis(["ZADD \(due.key) XX 1 \(due.member)"])
    }

    private func isDone(_ uid: String, _ stage: Stage) throws -> Bool {
        let due = DigestWorld.due(uid)
        return try stage.redisText("ZSCORE \(due.key) \(due.member)") == "$-1"
    }

    private func body(_ push: LedgerEntry?) -> String? { push?.json["aps"]?["alert"]?["body"]?.string }

    @Test func onePushShowsTheNumberOfUnreadMessages() throws {
        let stage = try night(
            "g1", [.message("g1-mention", to: ["g1"], type: "group", #","mention":{"all":false,"uids":["g1"]}"#)])
        var seen = try stage.look()
        #expect(seen.outcomes(of: "g1-3") == ["g1 suppressed dnd"])
        #expect(seen.accepted(token("g1", "phone")).count == 1, "the mention")
        try stage.play(state: [.read("g1", #""up_to_seq":1"#)])
        try makeDue("g1", stage)
        try until("the digest is out") { try isDone("g1", stage) }
        seen = try stage.look()
        let pushes = seen.accepted(token("g1", "phone"))
        #expect(pushes.count == 2)
        let digest = try #require(pushes.last)
        #expect(body(digest) == "You have 2 new messages", "neither what is read nor what alerted")
        #expect(digest.json["aps"]?["badge"]?.int == 3, "the mention counts too")
        #expect(digest.headers["apns-push-type"] == "alert")
        #expect(!String(decoding: digest.payload, as: UTF8.self).contains("text"))
        #expect(try stage.redisText("EXISTS c:g:{im:g1} c:h:{im:g1}") == ":0")
        #expect(seen.targets(of: "digest").isEmpty)
    }

    @Test func messagesReadBeforeTheDigestAreNotInIt() throws {
        let stage = try night("g2")
        try stage.play(state: [.read("g2", #""up_to_seq":3"#)])
        try makeDue("g2", stage)
        try until("it was looked at") { try isDone("g2", stage) }
        #expect(try stage.look().pushes(to: token("g2", "phone")).isEmpty)
    }

    @Test func aNewDNDWindowPutsTheDigestOff() throws {
        let stage = try night("g3")
        try makeDue("g3", stage, quietEnds: false)
        let due = DigestWorld.due("g3")
        // A lease is two minutes long; the window's end is a minute before midnight.
        let midnight = (nowMs / 86_400_000 + 1) * 86_400_000 - 60_000
        try until("it is put off to the window's end") {
            try stage.redisText("ZSCORE \(due.key) \(due.member)").hasSuffix(" \(midnight)")
        }
        #expect(try stage.look().pushes(to: token("g3", "phone")).isEmpty)
        try makeDue("g3", stage)
        try until("the digest is out") { try isDone("g3", stage) }
        #expect(body(try stage.look().accepted(token("g3", "phone")).last) == "You have 3 new messages")
    }

    @Test func `a digest that was due while APNs was away comes within seconds of its return`() throws {
        let stage = try night("g9")
        _ = stage.takeAPNsDown()
        try makeDue("g9", stage)
        stage.wait(.seconds(60))
        stage.bringAPNsUp()
        try until("the digest is out", within: .seconds(30)) {
            try stage.look().accepted(token("g9", "phone")).count == 1
        }
        try until("it is done") { try isDone("g9", stage) }
        #expect(try stage.look().accepted(token("g9", "phone")).count == 1)
    }

    @Test func aUserWithTheAppOpenGetsNoDigest() throws {
        let stage = try night("g4")
        try stage.redis([Gateway.lease("gw-g4"), Gateway.presence("g4", "pad", gateway: "gw-g4")])
        try makeDue("g4", stage)
        try until("it was looked at") { try isDone("g4", stage) }
        let seen = try stage.look()
        #expect(seen.pushes(to: token("g4", "phone")).isEmpty && seen.targets(of: "digest").isEmpty)
    }

    @Test func hiddenDetailsAndAMutedKindOfConversationChangeNothing() throws {
        let stage = try night("g5")
        try stage.play(state: [.state("settings", "g5", sentMs: nowMs + 1, #""show_detail":false"#)])
        try makeDue("g5", stage)
        try until("the digest is out") { try isDone("g5", stage) }
        #expect(body(try stage.look().accepted(token("g5", "phone")).last) == "You have 3 new messages")
    }
}

/// A world whose app sends digests, and how they stand in Redis.
private enum DigestWorld {
    static var settings: LocalCluster.Settings {
        var settings = LocalCluster.Settings()
        settings.sessionMs = LocalCluster.Settings.shortSessionMs
        settings.appLines = "    dnd_digest: true\n    default_levels: {system: 5}\n"
        settings.templates = Stage.templates
        return settings
    }

    static func due(_ uid: String) -> (key: String, member: String) {
        let due = DueUser(app: "im", uid: uid)
        return ("c:q:{q\(due.bucket)}", String(decoding: due.member, as: UTF8.self))
    }
}

struct DigestEndTests {
    @Test func aDigestSurvivesItsWorker() throws {
        try Stage.with(DigestWorld.settings) { stage in
            try stage.play(
                state: [
                    .bind("u1"),
                    .state(
                        "settings", "u1", sentMs: nowMs - 5000,
                        #""dnd":{"on":true,"start":"00:00","end":"23:59","tz":"UTC","level":5}"#),
                ], events: (1...2).map { .message("m\($0)", to: ["u1"], seq: Int64($0)) })
            let due = DigestWorld.due("u1")
            let score = try stage.redisText("ZSCORE \(due.key) \(due.member)")
            #expect(score.hasSuffix(" \((nowMs / 86_400_000 + 1) * 86_400_000 - 60_000)"), "\(score)")
            #expect(try stage.stop(try stage.worker))
            // Due while nobody was there.
            try stage.redis(["ZADD \(due.key) XX 1 \(due.member)"])
            try stage.startWorker()
            try stage.play(state: [.state("settings", "u1", #""dnd":{"on":false}"#)])
            try stage.redis(["ZADD \(due.key) XX 1 \(due.member)"])
            try until("the digest is out") {
                try stage.redisText("ZSCORE \(due.key) \(due.member)") == "$-1"
            }
            let pushes = try stage.look().accepted(token("u1", "phone"))
            #expect(pushes.count == 1 && pushes.first?.json["aps"]?["badge"]?.int == 2)
        }
    }
}

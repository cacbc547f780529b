// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Testing
import VirtualStage
import Worker

/// `limits.background_per_hour`: a device gets so many background pushes in an hour, and one more for the rest at its end.
@Suite struct BackgroundLimitTests {
    private static func settings(_ limit: Int = 2) -> LocalCluster.Settings {
        var settings = LocalCluster.Settings.oneShard
        settings.appLines = "    limits: {background_per_hour: \(limit)}\n"
        return settings
    }

    /// Background pushes of one user, each in a conversation of its own or all in one.
    private static func silent(_ uid: String, _ numbers: ClosedRange<Int>, oneConversation: Bool = true) -> [Line] {
        numbers.map { number in
            .message(
                "\(uid)-\(number)", to: [uid], conv: oneConversation ? "c-\(uid)" : "c-\(uid)-\(number)",
                push: #""silent":true"#, sentMs: nowMs - 100 + Int64(number))
        }
    }

    /// Until shortly before the end of an hour that began just now. Nobody works meanwhile, which makes it short.
    private static func sleep(_ stage: Stage, isKilled: Bool = false) throws {
        stage.wait(.seconds(5))
        if isKilled { stage.kill(try stage.worker) } else { _ = try stage.stop(try stage.worker) }
        stage.wait(.seconds(3_500))
        try stage.startWorker()
    }

    @Test(arguments: [true, false])
    func `the pushes over the limit become one at the end of the hour`(oneConversation: Bool) throws {
        try Stage.with(Self.settings()) { stage in
            let phone = token("u1", "phone")
            try stage.play(state: [.bind("u1")])
            let begun = nowMs
            try stage.writeEvents(Self.silent("u1", 1...2, oneConversation: oneConversation))
            _ = try stage.look(until: "two are out") { $0.accepted(phone).count == 2 }
            try stage.writeEvents(Self.silent("u1", 3...6, oneConversation: oneConversation))
            var seen = try stage.look(until: "four wait") { $0.parked.count == 4 }
            #expect(seen.parked.allSatisfy { $0["reason"]?.string == "background" })
            // Nothing else of the device waits, of whichever conversation.
            try stage.writeEvents([.message("alert-1", to: ["u1"]), .message("alert-2", to: ["u1"], conv: "other")])
            seen = try stage.look(until: "alerts go") { $0.accepted(phone).count == 4 }
            try Self.sleep(stage)
            seen = try stage.look(until: "all have ended", within: .seconds(180)) { seen in
                (1...6).allSatisfy { seen.outcomes(of: "u1-\($0)").count == 1 }
            }
            for number in 3...5 { #expect(seen.outcomes(of: "u1-\(number)") == ["u1/phone suppressed coalesced"]) }
            #expect(seen.outcomes(of: "u1-6").first?.hasPrefix("u1/phone accepted ok") ?? false)
            let pushes = seen.accepted(phone)
            #expect(pushes.count == 5 && seen.doubled.isEmpty)
            let merged = try #require(pushes.last)
            #expect(merged.headers["apns-push-type"] == "background")
            #expect((begun + 3_600_000...begun + 3_615_000).contains(merged.atMs))
            #expect(try stage.metric("carillon_coalesced_total") == 3)
        }
    }

    @Test func `each device has an hour of its own, and other pushes take no place`() throws {
        try Stage.with(Self.settings(1)) { stage in
            let (phone, pad) = (token("u1", "phone"), token("u1", "pad"))
            try stage.play(state: [.bind("u1")], events: [.message("alert", to: ["u1"])] + Self.silent("u1", 1...1))
            try stage.play(state: [.bind("u1", "pad")])
            try stage.writeEvents(Self.silent("u1", 2...2))
            var seen = try stage.look(until: "the pad has its first, and the phone waits for its second") {
                $0.accepted(pad).count == 1 && $0.parked.count == 1
            }
            #expect(seen.accepted(phone).count == 2)
            try Self.sleep(stage)
            seen = try stage.look(until: "all have ended", within: .seconds(180)) { $0.outcomes(of: "u1-2").count == 2 }
            #expect(seen.outcomes(of: "u1-2").allSatisfy { $0.contains(" accepted ok") })
            #expect(seen.accepted(pad).count == 1 && seen.accepted(phone).count == 3)
        }
    }

    @Test func `what waits for the next hour outlives its worker, and goes once`() throws {
        try Stage.with(Self.settings(1)) { stage in
            let users = ["u1", "u2"]
            try stage.play(state: users.map { .bind($0) }, events: users.flatMap { Self.silent($0, 1...1) })
            try stage.writeEvents(users.flatMap { Self.silent($0, 2...3) })
            _ = try stage.look(until: "four wait") { $0.parked.count == 4 }
            try Self.sleep(stage, isKilled: true)
            let seen = try stage.look(until: "all have ended", within: .seconds(180)) { seen in
                users.allSatisfy { seen.outcomes(of: "\($0)-2").count == 1 && seen.outcomes(of: "\($0)-3").count == 1 }
            }
            for uid in users {
                #expect(seen.accepted(token(uid, "phone")).count == 2)
                #expect(seen.outcomes(of: "\(uid)-2") == ["\(uid)/phone suppressed coalesced"])
            }
            #expect(seen.doubled.isEmpty)
        }
    }

    /// Without Redis nobody knows how many there were: where it takes no writes the pushes go, where it does not answer they wait.
    @Test func `a Redis that is away costs no push`() throws {
        try Stage.with(Self.settings(1)) { stage in
            let phone = token("u1", "phone")
            try stage.play(state: [.bind("u1")], events: Self.silent("u1", 1...1))
            stage.redis.becomeReplica()
            try stage.writeEvents(Self.silent("u1", 2...3))
            _ = try stage.look(until: "both are out") { $0.accepted(phone).count == 3 }
            stage.redis.becomeMaster()
            try stage.settle()
            // Its answer is kept back: the connection ends without it.
            stage.redis.hold(after: "c:f:{im:u1}")
            try stage.writeEvents(Self.silent("u1", 4...4))
            stage.wait(.seconds(20))
            stage.redis.release()
            _ = try stage.look(until: "it waits for the next hour") { $0.parked.count == 1 }
            try Self.sleep(stage)
            let seen = try stage.look(until: "it is out", within: .seconds(180)) { $0.accepted(phone).count == 4 }
            #expect(seen.doubled.isEmpty)
        }
    }

    /// The record has both devices, and one cause: that of the device that is due first.
    @Test(arguments: [false, true])
    func `a device that APNs wants left alone keeps its order beside one at its limit`(atTheEndOfTheHour: Bool) throws {
        try Stage.with(Self.settings(1)) { stage in
            let (phone, pad) = (token("u1", "phone"), token("u1", "pad"))
            try stage.play(state: [.bind("u1", "pad")], events: Self.silent("u1", 1...1))
            try stage.play(state: [.bind("u1")])
            if atTheEndOfTheHour {
                try Self.sleep(stage)
                stage.wait(.seconds(60))
            }
            stage.answerPushes(.putOff(seconds: 100))
            try stage.writeEvents(Self.silent("u1", 2...2))
            _ = try stage.look(until: "both devices wait") { $0.parked.count == 2 }
            stage.answerPushes(nil)
            // The pad's alerts go, and the phone's wait behind its push.
            try stage.writeEvents([.message("alert", to: ["u1"])])
            var seen = try stage.look(until: "the pad has it") { $0.accepted(pad).count == 2 }
            #expect(seen.accepted(phone).isEmpty)
            seen = try stage.look(until: "the phone has both", within: .seconds(120)) { $0.accepted(phone).count == 2 }
            #expect(seen.accepted(phone).map { $0.headers["apns-push-type"] } == ["background", "alert"])
            if !atTheEndOfTheHour { try Self.sleep(stage) }
            seen = try stage.look(until: "the pad has its second", within: .seconds(180)) {
                $0.accepted(pad).count == 3
            }
            #expect(seen.doubled.isEmpty)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import JSON
import Simulator
import Telemetry
import Testing
import VirtualStage
import Worker

/// A world whose app coalesces.
private enum BurstWorld {
    /// Long enough to write a burst into it, short enough to wait for.
    static let windowMs: Int64 = 1500
    /// Open for longer than a busy machine stands still.
    static let longWindowMs: Int64 = 10_000

    static func settings(windowMs: Int64) -> LocalCluster.Settings {
        var settings = LocalCluster.Settings()
        settings.scenario = TokenPrefix.scenario
        settings.appLines = "    coalesce: {window_s: \(Double(windowMs) / 1000)}\n"
        settings.templates = Stage.templates
        return settings
    }

    static func body(_ push: LedgerEntry?) -> String? {
        let alert = push?.json["aps"]?["alert"]
        return alert?["body"]?.string ?? alert?.string
    }
}

/// Bursts.
@Suite(.onStage(BurstWorld.settings(windowMs: BurstWorld.windowMs)))
struct Coalescing {
    private func body(_ push: LedgerEntry?) -> String? { BurstWorld.body(push) }

    @Test func theFirstGoesAtOnceAndTheRestAsOne() throws {
        let stage = try Stage.here
        try stage.play(state: [.bind("b1")])
        let begun = nowMs
        let seen = try stage.play(
            events: (1...4).map {
                .message(
                    "b1-\($0)", to: ["b1"], conv: "c-b1", type: "system", seq: Int64($0),
                    push: #""content":"text \#($0)","title":"Team""#)
            })
        #expect(seen.outcomes(of: "b1-1") == ["b1/phone accepted ok 1"])
        for message in ["b1-2", "b1-3"] { #expect(seen.outcomes(of: message) == ["b1/phone suppressed coalesced"]) }
        #expect(seen.outcomes(of: "b1-4") == ["b1/phone accepted ok 4"])
        let pushes = seen.accepted(token("b1", "phone"))
        #expect(pushes.count == 2)
        #expect(body(pushes.first) == "Nick: text 1")
        let merged = try #require(pushes.last)
        #expect(merged.atMs - begun >= BurstWorld.windowMs)
        #expect(body(merged) == "You have 3 new messages" && merged.json["aps"]?["alert"]?["title"]?.string == "Team")
        #expect(merged.json["aps"]?["badge"]?.int == 4)
        let collapse = merged.headers["apns-collapse-id"]
        #expect(collapse != nil && collapse != pushes.first?.headers["apns-collapse-id"])
        let count = try stage.page("/metrics").text.split(separator: "\n")
            .first { $0.hasPrefix("carillon_coalesced_total") }
        #expect(count?.hasSuffix(" 2") ?? false || (count.map { !$0.hasSuffix(" 0") } ?? false))
    }

    @Test func oneAloneKeepsItsText() throws {
        let stage = try Stage.here
        let seen = try stage.play(
            state: [.bind("b2")],
            events: (1...2).map { .message("b2-\($0)", to: ["b2"], seq: Int64($0), push: #""content":"text \#($0)""#) })
        #expect(seen.accepted(token("b2", "phone")).map(body) == ["Nick: text 1", "Nick: text 2"])
        #expect(seen.outcomes(of: "b2-2") == ["b2/phone accepted ok 2"])
    }

    @Test func usersWhoHideDetailsReadANumberOnly() throws {
        let stage = try Stage.here
        let seen = try stage.play(
            state: [.bind("b3"), .state("settings", "b3", #""show_detail":false"#)],
            events: (1...3).map {
                .message(
                    "b3-\($0)", to: ["b3"], seq: Int64($0),
                    push: #""content":"private","title":"Secret","aps":{"alert":{"subtitle":"private"}}"#)
            })
        let merged = try #require(seen.accepted(token("b3", "phone")).last)
        #expect(body(merged) == "You have 2 new messages")
        let text = String(decoding: merged.payload, as: UTF8.self)
        for word in ["private", "Secret", "Nick"] { #expect(!text.contains(word)) }
    }

    @Test func everyDeviceGetsOneMergedPush() throws {
        let stage = try Stage.here
        let dead = token("b7", "pad", TokenPrefix.gone)
        let seen = try stage.play(
            state: [.bind("b7"), .bind("b7", "pad", as: dead)],
            events: (1...3).map { .message("b7-\($0)", to: ["b7"], seq: Int64($0)) })
        #expect(seen.accepted(token("b7", "phone")).count == 2)
        #expect(seen.pushes(to: dead).count == 1, "its token went with the first answer")
        #expect(seen.outcomes(of: "b7-2").contains("b7/phone suppressed coalesced"))
        #expect(seen.outcomes(of: "b7-3").contains("b7/phone accepted ok 3"))
        #expect(
            seen.outcomes(of: "b7-3").contains {
                $0.hasPrefix("b7/pad suppressed token_moved") || $0 == "b7/pad suppressed no_token"
            })
        #expect(seen.doubled.isEmpty)
    }

    @Test func aLongBurstAlertsOncePerWindow() throws {
        let stage = try Stage.here
        try stage.play(state: [.bind("b8")])
        // Each half of the burst is written when the push before it is out: into the window that it opened, or, on a
        // machine that stalls so long, into the next.
        try stage.writeEvents([.message("b8-1", to: ["b8"], seq: 1), .message("b8-2", to: ["b8"], seq: 2)])
        try until("the second is pushed") {
            stage.apns.requests.count { $0.token == token("b8", "phone") } == 2
        }
        try stage.writeEvents((3...5).map { .message("b8-\($0)", to: ["b8"], seq: Int64($0)) })
        try stage.settle()
        let pushes = try stage.look().accepted(token("b8", "phone"))
        for (push, next) in zip(pushes, pushes.dropFirst()) {
            #expect(next.atMs - push.atMs >= BurstWorld.windowMs / 2, "of \(pushes.count) pushes")
        }
        // "You have 3 new messages" stands for three, any other text for one.
        let counts = pushes.map { body($0)?.split(separator: " ").compactMap { Int($0) }.first ?? 1 }
        #expect(counts.reduce(0, +) == 5 && pushes.last?.json["aps"]?["badge"]?.int == 5, "\(counts)")
    }
}

/// What happens while a window is open.
@Suite(.onStage(BurstWorld.settings(windowMs: BurstWorld.longWindowMs)))
struct CoalescingMeanwhile {
    @Test func mentionsForcedSilentAndRevokesGoAtOnce() throws {
        let stage = try Stage.here
        let seen = try stage.play(
            state: [.bind("b4"), .bind("b4", type: "voip")],
            events: [
                .message("b4-1", to: ["b4"]),
                .message("b4-2", to: ["b4"], type: "group", #","mention":{"all":false,"uids":["b4"]}"#),
                .message("b4-3", to: ["b4"], push: #""content":"x","force":{"mode":"all"}"#),
                .message("b4-4", to: ["b4"], push: #""silent":true"#),
                .message("b4-5", to: ["b4"], push: #""content":"call","voip":true"#),
                .revoke("b4-6", of: "b4-1", to: "b4"),
            ])
        for message in (1...6).map({ "b4-\($0)" }) {
            #expect(seen.outcomes(of: message).allSatisfy { $0.contains(" accepted ") }, "\(message)")
            #expect(!seen.outcomes(of: message).isEmpty)
        }
        let times = seen.pushes.filter { $0.token.hasPrefix(token("b4", "phone")) }.map(\.atMs)
        let (first, last) = (try #require(times.min()), try #require(times.max()))
        #expect(last - first < BurstWorld.longWindowMs, "none of them waited")
    }

    @Test func messagesThatWaitWhileTheTokenChangesAllEnd() throws {
        let stage = try Stage.here
        try stage.play(state: [.bind("b9")])
        try stage.writeEvents((1...4).map { .message("b9-\($0)", to: ["b9"], seq: Int64($0)) })
        try until("the first is pushed") { try stage.look().accepted(token("b9", "phone")).count == 1 }
        let new = token("b9", "new phone")
        try stage.writeState([.bind("b9", as: new, version: 2, sentMs: nowMs)])
        try stage.settle()
        let seen = try stage.look()
        for message in ["b9-2", "b9-3"] { #expect(seen.outcomes(of: message) == ["b9/phone suppressed coalesced"]) }
        #expect(seen.outcomes(of: "b9-4") == ["b9/phone accepted ok 4"])
        #expect(seen.accepted(new).map(BurstWorld.body) == ["You have 3 new messages"])
    }

    @Test func messagesReadOrRevokedInBetweenAreNotMerged() throws {
        let stage = try Stage.here
        try stage.play(state: [.bind("b5"), .bind("b6")])
        try stage.writeEvents(
            (1...4).map { .message("b5-\($0)", to: ["b5"], conv: "c-b5", seq: Int64($0)) }
                + (1...3).map { .message("b6-\($0)", to: ["b6"], conv: "c-b6", seq: Int64($0)) })
        try until("the first ones are pushed") {
            let seen = try stage.look()
            return seen.accepted(token("b5", "phone")).count == 1 && seen.accepted(token("b6", "phone")).count == 1
        }
        // The newest is revoked: the next newest carries the rest. Of the other user everything is read.
        try stage.writeEvents([
            .revoke("b5-r", of: "b5-4", to: "b5", conv: "c-b5", push: #""content":"x","enabled":false"#)
        ])
        try stage.writeState([.read("b6", conv: "c-b6", #""up_to_seq":3"#)])
        try stage.settle()
        let seen = try stage.look()
        #expect(seen.outcomes(of: "b5-4") == ["b5/phone suppressed revoked"])
        #expect(seen.outcomes(of: "b5-2") == ["b5/phone suppressed coalesced"])
        #expect(seen.outcomes(of: "b5-3") == ["b5/phone accepted ok 3"])
        let merged = try #require(seen.accepted(token("b5", "phone")).last)
        #expect(
            BurstWorld.body(merged) == "You have 2 new messages"
                && merged.json["aps"]?["alert"]?["title"]?.string == "Nick")
        for message in ["b6-2", "b6-3"] { #expect(seen.outcomes(of: message) == ["b6/phone suppressed already_read"]) }
        #expect(seen.accepted(token("b6", "phone")).count == 1)
    }
}

/// Merged pushes that wait for a slow push of their device.
@Suite(.onStage(BurstWorld.settings(windowMs: 1000)))
struct CoalescingQueueTests {
    /// The second burst's push waits behind the first one's, whose newest message is revoked at the last moment.
    @Test func theRestOfABurstKeepsItsPlaceBeforeNewerPushes() throws {
        let stage = try Stage.here
        let phone = token("b10", "phone", TokenPrefix.verySlow)
        try stage.play(state: [.bind("b10", as: phone)])
        try stage.writeEvents((1...3).map { .message("b10-\($0)", to: ["b10"], conv: "c-b10", seq: Int64($0)) })
        stage.wait(.milliseconds(1500))
        try stage.writeEvents((4...5).map { .message("b10-\($0)", to: ["b10"], conv: "c-b10", seq: Int64($0)) })
        stage.wait(.milliseconds(1000))
        try stage.writeEvents([
            .revoke("b10-r", of: "b10-3", to: "b10", conv: "c-b10", push: #""content":"x","enabled":false"#)
        ])
        try stage.settle()
        let seen = try stage.look()
        #expect(seen.outcomes(of: "b10-3") == ["b10/phone suppressed revoked"])
        let ids = seen.pushIDs(of: (1...5).map { "b10-\($0)" }, to: "b10")
        #expect(seen.accepted(phone).compactMap { ids.firstIndex(of: $0.apnsID) } == [0, 1, 4])
    }

    /// The device gets another token meanwhile. When it is free, the window of the next message is open, or over.
    @Test(arguments: [2500, 3300])
    func aBurstKeepsItsPlaceBeforeNewerPushesIfTheTokenChanges(nextMs: Int) throws {
        let stage = try Stage.here
        let user = "b11-\(nextMs)"
        let (old, new) = (token(user, "phone", TokenPrefix.verySlow), token(user, "new phone"))
        try stage.play(state: [.bind(user, as: old)])
        let begun = nowMs
        try stage.writeEvents((1...3).map { .message("\(user)-\($0)", to: [user], seq: Int64($0)) })
        stage.wait(.milliseconds(1500))
        try stage.writeState([.bind(user, as: new, version: 2, sentMs: nowMs)])
        stage.wait(untilMs: begun + Int64(nextMs))
        try stage.writeEvents([.message("\(user)-4", to: [user], seq: 4)])
        try stage.settle()
        let seen = try stage.look()
        let ids = seen.pushIDs(of: (1...4).map { "\(user)-\($0)" }, to: user)
        #expect(seen.accepted(new).compactMap { ids.firstIndex(of: $0.apnsID) } == [2, 3])
        #expect(seen.accepted(new).map(BurstWorld.body).first == "You have 2 new messages")
        #expect(seen.outcomes(of: "\(user)-2") == ["\(user)/phone suppressed coalesced"])
    }
}

/// Bursts that a worker leaves behind.
struct CoalescingEndTests {
    private static var settings: LocalCluster.Settings {
        var settings = LocalCluster.Settings()
        settings.sessionMs = LocalCluster.Settings.shortSessionMs
        settings.appLines = "    coalesce: {window_s: 15}\n"
        return settings
    }

    private static let burst: [Line] = (1...4).map { .message("m\($0)", to: ["u1"], seq: Int64($0)) }

    private func writeBurst(_ stage: Stage) throws {
        try stage.play(state: [.bind("u1")])
        try stage.writeEvents(Self.burst)
        try until("the first is pushed and the others are in hand") {
            let shards = try stage.worker.status().shards
            let accepted = try stage.look().accepted(token("u1", "phone")).count
            return accepted == 1 && shards.reduce(0) { $0 + $1.pendingRecords } == 3
        }
    }

    @Test func aWorkerThatStopsLeavesItsBurstsToTheNextOwner() throws {
        try Stage.with(Self.settings) { stage in
            try writeBurst(stage)
            #expect(try stage.stop(try stage.worker), "drained, with a window open")
            #expect(try stage.look().accepted(token("u1", "phone")).count == 1, "the window is not cut short")
            try stage.startWorker()
            try expectReported(stage)
        }
    }

    @Test func aPartitionThatMovesTakesItsBurstsAlong() throws {
        try Stage.with(Self.settings) { stage in
            try writeBurst(stage)
            try stage.startWorker()
            try expectReported(stage)
        }
    }

    /// A new owner has the second message for the first of a window and tells the others at that window's end; the one that
    /// gets the partition back goes on with its own window.
    private func expectReported(_ stage: Stage) throws {
        try stage.settle()
        let seen = try stage.look()
        let second = seen.outcomes(of: "m2")
        let isNewWindow = second.allSatisfy { $0.hasPrefix("u1/phone accepted ok") }
        #expect(second.count == 1 && (isNewWindow || second == ["u1/phone suppressed coalesced"]))
        #expect(seen.outcomes(of: "m3") == ["u1/phone suppressed coalesced"])
        #expect(seen.outcomes(of: "m4") == ["u1/phone accepted ok 4"])
        #expect(seen.accepted(token("u1", "phone")).count == (isNewWindow ? 3 : 2) && seen.doubled.isEmpty)
    }

    @Test func aKillInsideAWindowLosesNoAlertAndDoublesNone() throws {
        var settings = Self.settings
        settings.shards = 1
        settings.logLevel = .info
        try Stage.bare(settings, playKilled)
    }

    private func isFinished(_ stage: Stage, _ message: String) throws -> Bool {
        try stage.redisText("GETRANGE c:d2:{im:u1}m\(message) 0 0") == "$1 f"
    }

    private func playKilled(_ stage: Stage) throws {
        try stage.writeState([.bind("u1")])
        let first = try stage.startWorker(waits: false)
        try until("the token is bound") {
            try stage.redisText("EXISTS c:o:{im:\(token("u1", "phone"))}") == ":1"
        }
        try stage.writeEvents(Self.burst)
        try until("the first is finished and the last is in hand") {
            try isFinished(stage, "m1") && stage.redisText("EXISTS c:d2:{im:u1}mm4") == ":1"
        }
        stage.kill(first)
        #expect(stage.apns.counters.accepted == 1)
        let second = try stage.startWorker(waits: false)
        try until("the next is pushed, and at the window's end the others are told") {
            try ["m2", "m3", "m4"].allSatisfy { try isFinished(stage, $0) }
        }
        try stage.stop(second)
        let seen = try stage.look()
        #expect(seen.outcomes(of: "m1") == ["u1/phone accepted ok 1"])
        #expect(seen.outcomes(of: "m2").allSatisfy { $0.hasPrefix("u1/phone accepted ok") })
        #expect(seen.outcomes(of: "m3") == ["u1/phone suppressed coalesced"])
        #expect(seen.outcomes(of: "m4") == ["u1/phone accepted ok 4"])
        #expect(seen.accepted(token("u1", "phone")).count == 3 && seen.doubled.isEmpty)
        #expect(stage.committedRecords(of: Configuration.Topics().events) == 4)
    }
}

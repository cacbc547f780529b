// SPDX-License-Identifier: Apache-2.0
import JSON
import LocalServers
import Processes
import PushCore
import StageWords
import Support
import Testing

/// `carillon trace`: what support is told, by the built binary against the world's Redis.
extension OneWorld {
    @Suite struct Traces {
        /// One object per event.
        private func trace(_ uid: String, _ more: String...) async throws -> (run: CommandRun, records: [JSONTree]) {
            let stage = try Stage.here
            let path = try stage.world.writeConfiguration()
            let words = ["trace", "--config", path, "--app", "im", "--user", uid, "--json"] + more
            let run = try await offPool { try CommandRun(words: words) }
            return (run, try run.lines.map { try JSONTree(parsing: Array($0.utf8)) })
        }

        private func people(_ uid: String, _ more: String...) async throws -> CommandRun {
            let stage = try Stage.here
            let path = try stage.world.writeConfiguration()
            let words = ["trace", "--config", path, "--app", "im", "--user", uid] + more
            return try await offPool { try CommandRun(words: words) }
        }

        /// `device verdict reason` of each outcome.
        private func outcomes(_ record: JSONTree) -> [String] {
            (record["outcomes"]?.array ?? []).map {
                [$0["device"]?.string, $0["verdict"]?.string, $0["reason"]?.string].compactMap { $0 }
                    .joined(separator: " ")
            }.sorted()
        }

        @Test func aMemberDeniedByTheGroupsLevelShowsTheSkippedStep() async throws {
            let stage = try Stage.here
            try await stage.redis(["HSET g:{im:tr-g} tr-g1 5"])
            try await stage.play(events: [.message("tr-g1-1", to: nil, conv: "tr-g", type: "group")])
            let record = try #require(try await trace("tr-g1", "--msg", "tr-g1-1").records.first)
            #expect(outcomes(record) == ["suppressed conv_muted"])
            let steps = record["steps"]?.array ?? []
            #expect(steps.compactMap { $0["step"]?.int } == [2, 6, 7, 8, 9, 10])
            #expect(steps.first { $0["step"]?.int == 8 }?["outcome"]?.string == "conv_muted")
            #expect(steps.first { $0["step"]?.int == 9 }?["outcome"]?.string == "not looked at")
        }

        @Test func aPushIsTracedWithItsAnswerAndItsSteps() async throws {
            let stage = try Stage.here
            let seen = try await stage.play(
                state: [.bind("tr1"), .bind("tr1", "pad", as: token("tr1", "pad", TokenPrefix.gone))],
                events: [.message("tr1-1", to: ["tr1"], push: #""content":"secret words""#)])
            let told = try await trace("tr1", "--msg", "tr1-1")
            #expect(told.run.code == 0)
            let record = try #require(told.records.first)
            #expect(told.records.count == 1 && record["kind"]?.string == "message")
            #expect(record["msg_id"]?.string == "tr1-1" && record["event_id"]?.string == "e-tr1-1")
            #expect(outcomes(record) == ["pad rejected ExpiredToken", "phone accepted ok"])
            let phone = record["outcomes"]?.array?.first { $0["device"]?.string == "phone" }
            let result = seen.results.first { $0["msg_id"]?.string == "tr1-1" && $0["device"]?.string == "phone" }
            #expect(phone?["apns_id"]?.string == result?["apns_id"]?.string && phone?["apns_id"] != nil)
            #expect(phone?["status"]?.int == 200 && phone?["badge"]?.int == 1 && phone?["attempts"]?.int == 1)
            #expect(phone?["latency_ms"]?.int == result?["latency_ms"]?.int)
            let pad = record["outcomes"]?.array?.first { $0["device"]?.string == "pad" }
            #expect(pad?["status"]?.int == 410)
            #expect((record["steps"]?.array ?? []).compactMap { $0["step"]?.int } == [2, 6, 7, 8, 9, 10])
            let text = try await people("tr1", "--msg", "tr1-1")
            for shown in ["tr1-1", "phone", "accepted", "ok", "status 200", "badge 1", "ExpiredToken", "let through"] {
                #expect(text.output.contains(shown), "\(shown)")
            }
            for output in [text.output, told.run.output] {
                #expect(!output.contains("secret words") && !output.contains(token("tr1", "phone")))
            }
            let stored = try await stage.redisText("GET c:d3:{im:tr1}mtr1-1")
            #expect(stored.contains("phone"), "the mark carries it")
            #expect(!stored.contains("secret words") && !stored.contains(token("tr1", "phone")))
        }

        @Test func aTraceExplainsWhyNoPushWasSent() async throws {
            let stage = try Stage.here
            let off = nowMs - 60_000
            try await stage.play(
                state: [
                    .bind("tr2"), .state("mute", "tr2", #""conv_id":"c-muted","level":5"#),
                    .read("tr2", conv: "c-read", #""up_to_seq":9"#),
                ],
                events: [
                    .message("tr2-muted", to: ["tr2"], conv: "c-muted"),
                    .message("tr2-read", to: ["tr2"], conv: "c-read", seq: 9),
                    .message("tr2-veto", to: ["tr2"], push: #""content":"x","enabled":false"#),
                    .message("tr2-late", to: ["tr2"], sentMs: off, #","expire_at_ms":\#(off + 1)"#),
                    .message(
                        "tr2-forced", to: ["tr2"], conv: "c-muted", push: #""content":"x","force":{"mode":"all"}"#),
                    .message("tr3-none", to: ["tr3"]),
                ])
            let told = try await trace("tr2")
            func record(_ id: String) throws -> JSONTree {
                try #require(told.records.first { $0["msg_id"]?.string == id }, "\(id)")
            }
            let rows: [(String, String, Int64)] = [
                ("tr2-muted", "conv_muted", 8), ("tr2-read", "already_read", 6), ("tr2-veto", "msg_push_off", 7),
                ("tr2-late", "expired", 2),
            ]
            for (id, reason, step) in rows {
                let verdict = reason == "expired" ? "expired" : "suppressed"
                #expect(try outcomes(record(id)) == ["\(verdict) \(reason)"])
                let denied = try record(id)["steps"]?.array?.first { $0["outcome"]?.string == reason }
                #expect(denied?["step"]?.int == step, "\(id)")
            }
            #expect(try outcomes(record("tr2-forced")) == ["phone accepted forced"])
            let mute = try record("tr2-forced")["steps"]?.array?.first { $0["step"]?.int == 8 }
            #expect(mute?["input"]?.string == "level 5 of the user, no mention, forced")
            #expect(told.records.count == 5)
            let nobody = try await trace("tr3", "--msg", "tr3-none")
            #expect(nobody.records.map(outcomes) == [["suppressed no_token"]])
        }

        @Test func revokesActivitiesAndConnectionsAreTraced() async throws {
            let stage = try Stage.here
            try await stage.redis([
                Gateway.lease("gw-tr4"), Gateway.presence("tr4", "pc", platform: "pc", gateway: "gw-tr4"),
            ])
            try await stage.play(
                state: [.bind("tr4"), .bind("tr4", type: "start"), .ack("tr4", "pc", ["tr4-1", "tr4-r"])],
                events: [.message("tr4-1", to: ["tr4"])])
            try await stage.play(events: [
                .revoke("tr4-r", of: "tr4-1", to: "tr4"),
                .activity(
                    "tr4-a", to: "tr4",
                    #""activity_id":"o","event":"start","state":{},"attributes_type":"O","attributes":{},"alert":"begins""#
                ),
            ])
            let records = try await trace("tr4").records
            #expect(records.map { $0["kind"]?.string }.filter { $0 == "message" }.count == 1)
            let message = try #require(records.first { $0["msg_id"]?.string == "tr4-1" })
            #expect(outcomes(message) == ["pc online acked", "phone accepted ok"])
            let revoke = try #require(records.first { $0["kind"]?.string == "revoke" })
            #expect(outcomes(revoke) == ["pc online acked", "phone accepted ok"])
            let activity = try #require(records.first { $0["kind"]?.string == "live_activity" })
            #expect(activity["event_id"]?.string == "e-tr4-a" && outcomes(activity) == ["phone accepted ok"])
        }

        @Test func aDeliveryWithoutAnAckIsTracedBeforeThePush() async throws {
            let stage = try Stage.here
            try await stage.redis([
                Gateway.lease("gw-tr8"),
                Gateway.presence("tr8", "phone", state: "bg", gateway: "gw-tr8", flags: "l", since: nowMs),
            ])
            try await stage.play(state: [.bind("tr8")], events: [.message("tr8-1", to: ["tr8"])])
            let record = try #require(try await trace("tr8").records.first)
            let told = (record["outcomes"]?.array ?? []).compactMap { $0["reason"]?.string }
            #expect(told == ["no_ack", "ok"])
        }

        /// Whatever rounds the decision takes: only what an earlier try had begun is resumed.
        @Test func onlyWhatAnEarlierTryHadBegunIsCalledResumed() async throws {
            let stage = try Stage.here
            try await stage.redis([
                Gateway.lease("gw-tr10"),
                Gateway.presence("tr10", "phone", state: "bg", gateway: "gw-tr10", flags: "l", since: nowMs),
                "SET c:d4:{im:tr11}mtr11-begun c",
                "HSET g:{im:tr-g2} tr11 0 tr12 5",
            ])
            try await stage.play(
                state: [.bind("tr10"), .bind("tr11")],
                events: [
                    .message("tr10-1", to: ["tr10"]), .message("tr11-1", to: ["tr11"]),
                    .message("tr11-begun", to: ["tr11"]),
                    .message("tr11-g", to: nil, conv: "tr-g2", type: "group"),
                ])
            let rows: [(uid: String, message: String, isResumed: Bool)] = [
                ("tr10", "tr10-1", false), ("tr11", "tr11-1", false), ("tr11", "tr11-begun", true),
                ("tr11", "tr11-g", false), ("tr12", "tr11-g", false),
            ]
            for row in rows {
                let record = try #require(try await trace(row.uid, "--msg", row.message).records.first, "\(row)")
                #expect(record["resumed"]?.bool == row.isResumed, "\(row)")
            }
            let late = try #require(try await trace("tr10", "--msg", "tr10-1").records.first)
            #expect(outcomes(late) == ["phone accepted ok", "phone parked no_ack"], "two rounds")
        }

        @Test func aRepeatLeavesTheTraceAsItWas() async throws {
            let stage = try Stage.here
            let line = Line.message("tr5-1", to: ["tr5"])
            try await stage.play(state: [.bind("tr5")], events: [line])
            try await stage.play(events: [line, line])
            #expect(try await trace("tr5").records.count == 1)
        }

        @Test func missingDataIsExplained() async throws {
            let stage = try Stage.here
            let nobody = try await people("tr6")
            #expect(nobody.code == 1 && nobody.errors.contains("no event named this user"))
            let never = try await people("tr6", "--msg", "tr6-never")
            #expect(never.code == 1 && never.errors.contains("no worker has decided it"))
            try await stage.redis(["SET c:d3:{im:tr6}mtr6-begun c"])
            let begun = try await people("tr6", "--msg", "tr6-begun")
            #expect(begun.code == 1 && begun.errors.contains("in progress"))
            try await stage.redis(["SET c:d3:{im:tr6}mtr6-done f"])
            let done = try await people("tr6", "--msg", "tr6-done")
            #expect(done.code == 1 && done.errors.contains("it has ended"))
        }

        @Test func theBoxShowsTheTraceAndThePresentSteps() async throws {
            let stage = try Stage.here
            let given = token("o4", "phone")
            try await stage.play(state: [.bind("o4")], events: [.message("o4-1", to: ["o4"])])
            let found = try await stage.page("/trace?app=im&user=o4&msg=o4-1")
            #expect(found.status == 200, "\(found.text)")
            for words in [
                "o4-1 for o4 of app im", "message o4-1", "accepted", "status", "A plain message", "DND", "value=\"o4\"",
            ] {
                #expect(found.text.contains(words), "\(words)")
            }
            #expect(!found.text.contains(given) && !found.text.contains("<script>"))
            let unknown = try await stage.page("/trace?app=im&user=o4&msg=o4-none")
            #expect(unknown.text.contains("no worker has decided it for this user"))
            let nobody = try await stage.page("/trace?app=im&user=%3Cb%3E")
            #expect(nobody.status == 200 && nobody.text.contains("no_token") && nobody.text.contains("&lt;b&gt;"))
            #expect(try await stage.page("/trace?app=none&user=o4").status == 400)
            #expect(try await stage.page("/trace?app=im").status == 400)
            #expect(try await stage.page("/trace").status == 200)
        }

        /// The page and the log tell of a message without its texts and tokens.
        @Test func theTracePageShowsNoTextAndNoToken() async throws {
            let stage = try Stage.here
            let dead = token("o2", "phone", TokenPrefix.gone)
            let canary = "canary-\(nowMs)"
            try await stage.play(
                state: [.bind("o2", as: dead), .bind("o2", "pad")],
                events: [
                    .message(
                        "o2-1", to: ["o2"],
                        push: #""title":"\#(canary)-title","content":"\#(canary)-content","payload":{"k":"\#(canary)"}"#
                    )
                ])
            let text = try await stage.page("/trace?app=im&user=o2&msg=o2-1").text
            #expect(text.contains("message o2-1") && !text.contains(canary))
            #expect(!text.contains(dead) && !text.contains(token("o2", "pad")))
        }

        @Test func theMarkLivesAsLongAsTheTraceIsWanted() async throws {
            let stage = try Stage.here
            try await stage.play(state: [.bind("tr7")], events: [.message("tr7-1", to: ["tr7"])])
            let life = try await stage.redisText("TTL c:d3:{im:tr7}mtr7-1")
            let seconds = try #require(Int64(life.filter { $0.isNumber }))
            #expect((72 * 3600 - 60...72 * 3600).contains(seconds), "\(life)")
        }

        @Test func aUserNamedLikeAGlobIsFoundAlone() async throws {
            let stage = try Stage.here
            try await stage.play(
                state: [.bind("tr[9]*"), .bind("tr9xx")],
                events: [.message("tr9-1", to: ["tr[9]*"]), .message("tr9-2", to: ["tr9xx"])])
            #expect(try await trace("tr[9]*").records.compactMap { $0["msg_id"]?.string } == ["tr9-1"])
        }
    }
}

struct TraceSettingsTests {
    private static func settings(_ sample: String) -> LocalCluster.Settings {
        var settings = LocalCluster.Settings()
        settings.scenario = TokenPrefix.scenario
        settings.lines = "trace: {sample: \(sample)}\n"
        return settings
    }

    /// No ack comes, which leaves no trace of a user of the others; the second round's claim finds the first one's mark.
    @Test func theSecondRoundOfAFirstDeliveryIsNotCalledResumed() async throws {
        try await Stage.with(Self.settings("0.000000001")) { stage in
            try await stage.redis([
                Gateway.lease("g"),
                Gateway.presence("t1", "phone", state: "bg", gateway: "g", flags: "l", since: nowMs),
                "SET c:d2:{im:t2}mm2 c",
            ])
            try await stage.play(
                state: ["t1", "t2"].map { .bind($0, as: token($0, "phone", TokenPrefix.gone)) },
                events: [.message("m1", to: ["t1"]), .message("m2", to: ["t2"])])
            let path = try stage.world.writeConfiguration()
            for (uid, isResumed) in [("t1", false), ("t2", true)] {
                let run = try await offPool {
                    try CommandRun(words: ["trace", "--config", path, "--app", "im", "--user", uid, "--json"])
                }
                let record = try JSONTree(parsing: Array(try #require(run.lines.first).utf8))
                let outcome = try #require(record["outcomes"]?.array?.first)
                #expect(outcome["reason"]?.string == "ExpiredToken" && record["resumed"]?.bool == isResumed, "\(uid)")
            }
        }
    }
}

extension Stage {
    /// The server's answer as it came, line ends as blanks.
    nonisolated func redisText(_ command: String) async throws -> String {
        let server = world.redis
        let answer = try await offPool { try server.command(command) }
        return answer.split(whereSeparator: \.isNewline).joined(separator: " ")
    }
}

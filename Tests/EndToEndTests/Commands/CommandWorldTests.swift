// SPDX-License-Identifier: Apache-2.0
import Crypto
import Foundation
import JSON
import LocalServers
import Processes
import Simulator
import Support
import Telemetry
import Testing

/// Commands against broker, Redis and simulator.
struct CommandWorldTests {
    private static let event = """
        {"v":1,"kind":"message","app":"im","event_id":"e1","sent_ms":1700000000000,"msg_id":"m1",\
        "conv":{"id":"c1","type":"p2p"},"from":{"uid":"alice"},"to":{"uids":["bob"]},"push":{"content":"嗨"}}
        """
    private static let mark = """
        {"v":1,"kind":"read","app":"im","event_id":"e2","sent_ms":1700000001000,"uid":"bob","conv_id":"c1",\
        "up_to_ms":1700000000500}
        """

    @Test func checkFindsAWholeWorldWellAndNamesWhatIsMissing() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        let well = try CommandRun("check", "--config", path)
        // The tests' server keeps nothing on disk.
        #expect(well.code == 0 && well.output.contains("0 problems, 1 warning"), "\(well.output)")
        #expect(!well.output.contains("kafka-acls"), "rights are printed on demand")
        let rights = try CommandRun("check", "--config", path, "--acl")
        #expect(rights.output.contains("kafka-acls") && rights.output.contains("ACL SETUSER"))
        #expect(well.output.contains("appendonly no") && well.output.contains("a provider key (p8): it never expires"))
        #expect(await world.simulator.entries.isEmpty, "nothing is sent")
        _ = try world.redis.command("CONFIG SET appendonly yes")
        let persisting = try CommandRun("check", "--config", path, "--probe")
        #expect(persisting.code == 0 && persisting.output.contains("all well"), "\(persisting.output)")
        #expect(persisting.output.contains("400 BadDeviceToken: the credential is accepted"))
        #expect(await world.simulator.entries.map(\.status) == [400])
        let other = world.configurationText.replacingOccurrences(
            of: "group: carillon", with: "group: carillon\n  topics: {events: not.there}")
        let missing = try CommandRun(
            "check", "--json", "--config", try world.folder.write(Array(other.utf8), to: "missing.yaml"))
        #expect(missing.code == 1)
        let fails = missing.lines.filter { $0.contains(#""grade":"fail""#) }
        #expect(fails.count == 1 && fails.first?.contains("not.there") == true, "\(missing.output)")
        // The broker has created the other one by now.
        let another = other.replacingOccurrences(of: "not.there", with: "not.here")
        let people = try CommandRun(
            "check", "--config", try world.folder.write(Array(another.utf8), to: "another.yaml"))
        #expect(people.lines.first?.hasPrefix("FAIL") == true, "the problem is first: \(people.output)")
        #expect(people.lines.dropLast().last?.hasPrefix("FAIL") == true, "and last: \(people.output)")
        await world.close()
    }

    @Test func aProbeDistinguishesKeyTopicAndEnvironment() async throws {
        var settings = LocalCluster.Settings()
        var environment = ScenarioRule.Match()
        environment.topic = Array("com.example.other".utf8)
        var busy = ScenarioRule.Match()
        busy.topic = Array("com.example.busy".utf8)
        settings.scenario = Scenario(rules: [
            ScenarioRule(environment, .answer(ScenarioAnswer(403, "BadEnvironmentKeyInToken"))),
            ScenarioRule(busy, .answer(ScenarioAnswer(503, "ServiceUnavailable"))),
        ])
        settings.moreTopics = ["com.example.other", "com.example.busy"]
        let world = try await LocalCluster(settings)
        let text = world.configurationText
        let list = "[\(settings.topic), com.example.other, com.example.busy]"
        func probe(_ name: String, _ text: String) throws -> CommandRun {
            try CommandRun(
                "check", "--json", "--probe", "--config", try world.folder.write(Array(text.utf8), to: name))
        }
        for (name, topic, words) in [
            ("topic.yaml", "com.example.unknown", "400 TopicDisallowed: the credential may not push to this topic"),
            ("env.yaml", "com.example.other", "the credential is for the other environment: set environment: sandbox"),
        ] {
            let run = try probe(name, text.replacingOccurrences(of: list, with: topic))
            let fails = run.lines.filter { $0.contains(#""grade":"fail""#) }
            #expect(run.code == 1 && fails.count == 1 && fails[0].contains(words), "\(run.output)")
        }
        let unavailable = try probe("busy.yaml", text.replacingOccurrences(of: list, with: "com.example.busy"))
        #expect(
            unavailable.code == 0 && unavailable.output.contains("503 ServiceUnavailable: APNs is busy"),
            "\(unavailable.output)")
        let key = try PrivateKey.generate().pem()
        try world.folder.write(key, to: "strange.p8")
        let strange = try probe(
            "key.yaml",
            text.replacingOccurrences(of: list, with: settings.topic)
                .replacingOccurrences(of: world.credentials.keyFile, with: world.folder.file("strange.p8")))
        #expect(strange.code == 1 && strange.output.contains("403 InvalidProviderToken: the credential is refused"))
        await world.close()
    }

    @Test func aCertificateIsShownWithItsDaysAndItsSubject() throws {
        let folder = try TemporaryFolder()
        func check(bundle: String, days: Int) throws -> CommandRun {
            let (certificate, key) = (folder.file("push.pem"), folder.file("push-key.pem"))
            let made = try FinishedProcess.run(
                "openssl",
                [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                    "/UID=\(bundle)/CN=Apple Push Services", "-days", String(days), "-keyout", key, "-out", certificate,
                ])
            #expect(made.exitCode == 0)
            let text = """
                kafka: {brokers: "127.0.0.1:1"}
                redis: {url: "redis://127.0.0.1:1"}
                apps:
                  - id: im
                    topic: com.example.im
                    credentials: {certificate_file: \(certificate), key_file: \(key)}

                """
            return try CommandRun(
                "check", "--offline", "--json", "--config", try folder.write(Array(text.utf8), to: "c.yaml"))
        }
        // An app with a certificate alone cannot serve Live Activities: that is a warning of its own.
        func warnings(_ run: CommandRun) -> [String] {
            let all = run.lines.filter { $0.contains(#""grade":"warn""#) }
            let others = all.filter { !$0.contains("no provider key (p8)") }
            #expect(all.count == others.count + 1, "\(all)")
            return others
        }
        let well = try check(bundle: "com.example.im", days: 300)
        #expect(
            well.code == 0 && warnings(well).isEmpty && well.output.contains(/(299|300) days left/), "\(well.output)")
        #expect(warnings(try check(bundle: "com.example.im.voip", days: 300)).isEmpty)
        let strange = warnings(try check(bundle: "com.example.other", days: 5))
        #expect(strange.count == 2, "\(strange)")
        #expect(
            strange.contains { $0.contains(/[45] days left/) } && strange.contains { $0.contains("com.example.other") })
    }

    @Test func aDefaultLanguageWithoutAGenericTextIsAWarning() throws {
        let folder = try TemporaryFolder()
        let templates = try folder.write(Array("languages: {en: {generic: You have mail}}\n".utf8), to: "t.yaml")
        for (lines, isWarned) in [
            ("default_language: en", true), ("default_language: en, templates: \(templates)", false),
            ("default_language: zh-Hans", false),
        ] {
            let text = """
                kafka: {brokers: "127.0.0.1:1"}
                redis: {url: "redis://127.0.0.1:1"}
                apps:
                  - {id: im, topic: t, credentials: {key_file: no, key_id: ABC123DEFG, team_id: DEF123GHIJ}, \(lines)}

                """
            let run = try CommandRun(
                "check", "--offline", "--json", "--config", try folder.write(Array(text.utf8), to: "c.yaml"))
            #expect(run.output.contains("en has no generic text") == isWarned, "\(lines): \(run.output)")
        }
    }

    @Test func theEffectiveConfigurationIsPrintedWithoutAServer() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write(
            Array(
                """
                kafka: {brokers: "127.0.0.1:1"}
                redis: {url: "redis://127.0.0.1:1"}
                apps: [{id: im, topic: t, credentials: {key_file: no, key_id: ABC123DEFG, team_id: DEF123GHIJ}}]

                """.utf8), to: "c.yaml")
        let run = try CommandRun("check", "--print", "--config", path)
        #expect(run.code == 0 && run.output.contains("drain_s: 25  # default"), "\(run.output + run.errors)")
        let json = try CommandRun("check", "--print", "--json", "--config", path)
        #expect(try JSONTree(parsing: Array(json.output.utf8))["drain_s"]?.int == 25)
    }

    @Test func checkNamesARedisThatCannotBeWorkedWith() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        for (commands, grade, words) in [
            (["CONFIG SET maxmemory 500kb"], "fail", "(maxmemory) are in use"),
            (
                ["CONFIG SET maxmemory 0", "CONFIG SET maxmemory-policy allkeys-lru"], "warn",
                "maxmemory-policy allkeys-lru"
            ),
            (["REPLICAOF 127.0.0.1 1"], "fail", "is a replica"),
            (["REPLICAOF NO ONE", "ACL SETUSER default -eval"], "fail", "may run no scripts"),
        ] {
            for command in commands { _ = try world.redis.command(command) }
            let run = try CommandRun("check", "--json", "--config", path)
            #expect(run.code == (grade == "fail" ? 1 : 0), "\(run.output)")
            #expect(
                run.lines.contains {
                    $0.contains(#""grade":"\#(grade)","check":"redis""#) && $0.contains(words)
                        && $0.contains(String(world.redis.port))
                }, "\(run.output)")
        }
        await world.close()
    }

    @Test func aRecordingIsReplayedAsItWas() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        let input = try world.folder.write(Array("\(Self.event)\n\n\(Self.mark)\n".utf8), to: "in.ndjson")
        let replay = try CommandRun("replay", "--config", path, "--in", input, "--wait", "0", "--json")
        #expect(replay.code == 0 && replay.output.contains(#""written":2"#), "\(replay.output)\(replay.errors)")
        let record = try CommandRun(
            "record", "--config", path, "--topic", "events", "--out", "-", "--until-end", "--json")
        #expect(record.code == 0)
        let line = try JSONTree(parsing: Array(try #require(record.lines.first).utf8))
        #expect(record.lines.count == 1 && line["topic"]?.string == "im.events" && line["key"]?.string == "c1")
        #expect(line["value"]?.bytes == Array(Self.event.utf8))
        let marks = try CommandRun("record", "--config", path, "--topic", "user-state", "--out", "-", "--until-end")
        #expect(marks.output.contains(#""key":"bob""#) && marks.lines.count == 1)
        await world.close()
    }

    @Test func shiftedTimesMoveTogether() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        let input = try world.folder.write(Array("\(Self.event)\n\(Self.mark)\n".utf8), to: "in.ndjson")
        let replay = try CommandRun(
            "replay", "--config", path, "--in", input, "--shift-times", "--topic", "push.sms")
        #expect(replay.code == 0, "\(replay.errors)")
        let record = try CommandRun("record", "--config", path, "--topic", "push.sms", "--out", "-", "--until-end")
        let values = try record.lines.compactMap { try JSONTree(parsing: Array($0.utf8))["value"] }
        let message = try #require(values.first { $0["kind"]?.string == "message" }?["sent_ms"]?.int)
        let read = try #require(values.first { $0["kind"]?.string == "read" })
        #expect(read["sent_ms"]?.int == message + 1000 && read["up_to_ms"]?.int == message + 500)
        #expect(message > 1_700_000_000_000)
        await world.close()
    }

    @Test func aPushIsSentAndItsAnswerPrintedWithoutTheToken() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        let token = String(repeating: "ab", count: 32)
        let sent = try CommandRun(
            "send", "--config", path, "--app", "im", "--token", token, "--alert", "hi", "--json")
        #expect(sent.code == 0 && sent.output.contains(#""status":200"#), "\(sent.output)\(sent.errors)")
        let refused = try CommandRun(
            "send", "--config", path, "--app", "im", "--token", token, "--alert", "hi", "--topic", "com.other")
        #expect(refused.code == 1 && refused.output.contains("400"), "\(refused.output)\(refused.errors)")
        for run in [sent, refused] { #expect(!(run.output + run.errors).contains(token)) }
        let entries = await world.simulator.entries
        #expect(entries.count == 2)
        await world.close()
    }

    /// What APNs said, not what became of the connections for it.
    @Test(arguments: [
        (#"{"rules": [{"answer": {"status": 403, "reason": "InvalidProviderToken"}}]}"#, "403 InvalidProviderToken"),
        (
            #"{"rules": [{"fault": {"kind": "goaway", "last": "none", "reason": "BadCertificateEnvironment"}}]}"#,
            "APNs sent GOAWAY: BadCertificateEnvironment"
        ),
    ])
    func sendNamesTheFirstCause(scenario: String, cause: String) async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        await world.simulator.setScenario(try Scenario(json: Array(scenario.utf8)))
        let token = String(repeating: "ab", count: 32)
        let run = try await offPool {
            try CommandRun("send", "--config", path, "--app", "im", "--token", token, "--alert", "hi")
        }
        #expect(run.code == 1)
        #expect(run.output.contains(cause) && !run.output.contains("draining"), "\(run.output)\(run.errors)")
        await world.close()
    }

    /// GOAWAY that leaves the push its answer is no refusal of it.
    @Test func sendWaitsForTheAnswerAfterAGoAway() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        let scenario = #"{"goaway_after_requests": 1, "rules": [{"answer": {"status": 200, "delay_ms": 300}}]}"#
        await world.simulator.setScenario(try Scenario(json: Array(scenario.utf8)))
        let token = String(repeating: "ab", count: 32)
        let run = try await offPool {
            try CommandRun("send", "--config", path, "--app", "im", "--token", token, "--alert", "hi", "--json")
        }
        #expect(run.code == 0 && run.output.contains(#""status":200"#), "\(run.output)\(run.errors)")
        await world.close()
    }

    @Test func explainAndUserReadRedisAndExplainPrintsOneObjectPerDevice() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        let told = try CommandRun(
            "explain", "--config", path, "--event", "-", "--at", "sent", "--json",
            input: "\(Self.event)\n{}\n\(Self.mark)\n")
        #expect(told.code == 0, "\(told.errors)")
        let lines = try told.lines.map { try JSONTree(parsing: Array($0.utf8)) }
        #expect(lines.map { $0["reason"]?.string } == ["no_token", "bad_event", "ok"])
        #expect(lines.map { $0["route"]?.string } == ["none", "none", "none"])
        #expect(lines[0]["steps"]?[0]?["step"]?.int == 1)
        let unknown = Self.event.replacing(#""push":{"#, with: #""push":{"body":"x","#)
        for (input, code, isNamed) in [(unknown, 1, true), (Self.event, 0, false), ("{}", 1, false)] {
            let run = try CommandRun(
                "explain", "--config", path, "--event", "-", "--at", "sent", "--strict", input: input + "\n")
            #expect(
                run.code == code
                    && run.output.contains("unknown field push.body, did you mean push.content?") == isNamed)
        }
        let user = try CommandRun("user", "--config", path, "--app", "im", "--user", "bob", "--json")
        #expect(user.code == 0 && user.output.contains(#""badge":0"#))
        let nobody = try CommandRun("user", "--config", path, "--app", "im", "--user", "bob")
        #expect(nobody.code == 0 && nobody.output.contains("check the id and the app"), "\(nobody.output)")
        world.redis.stop()
        let away = try CommandRun("user", "--config", path, "--app", "im", "--user", "bob")
        #expect(away.code == 1 && away.errors.contains("redis.url"), "\(away.errors)")
        await world.close()
    }

    @Test func tailShowsTheOutcomesThatWereAskedForUntilItIsEnded() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        let out = world.folder.file("out")
        let script = #"exec "$0" tail --config "$1" --app im --verdict rejected --json >"$2""#
        let process = try await offPool {
            try ServerProcess("sh", ["-c", script, CommandRun.binary.path, path, out], readyLine: "from now on")
        }
        func outcome(_ verdict: String, _ message: String) -> LocalCluster.Record {
            let text = """
                {"v":1,"app":"im","event_id":"e","msg_id":"\(message)","uid":"bob","device":"phone","verdict":"\(verdict)",\
                "reason":"Unregistered","attempts":1,"latency_ms":4,"at_ms":1700000000000}
                """
            return LocalCluster.Record(key: Array("bob".utf8), value: Array(text.utf8))
        }
        try await world.produce([outcome("accepted", "m1"), outcome("rejected", "m2")], to: "push.results")
        try await until("the outcome is shown") { try !readFile(out).isEmpty }
        process.send(SIGINT)
        try await until("it has ended") { !process.isRunning }
        #expect(process.exitCode == 0)
        let lines = String(decoding: try readFile(out), as: UTF8.self).split(separator: "\n")
        #expect(lines.count == 1 && lines.first?.contains("m2") == true, "\(lines)")
        await world.close()
    }

    /// What workers do then: StageTests.TokenLossTests.
    @Test func anAcceptedLossIsNotedByTheServersClock() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        let run = try CommandRun("tokens", "accept", "--config", path, "--json")
        #expect(run.code == 0, "\(run.output)\(run.errors)")
        let script = #"EVAL "return redis.call('TIME')[1] - redis.call('GET', KEYS[1]) / 1000" 1 c:w:{accepted}"#
        let age = try world.redis.command(script)
        #expect([":0", ":1", ":2", ":3"].contains { age.hasPrefix($0) }, "\(age)")
        await world.close()
    }

    @Test func userShowsMutesThatHoldAndMalformedPresenceAsSuch() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        _ = try world.redis.command(#"HSET "p:{im:bob}" phone "fg,ios,gw-1""#)
        let user = try CommandRun("user", "--config", path, "--app", "im", "--user", "bob")
        #expect(user.code == 0 && user.output.contains("malformed") && user.output.contains("fg,ios,gw-1"))
        let until: Int64 = 4_000_000_000_000
        _ = try world.redis.command(#"HSET c:s:{im:bob} mgone "5 1" mnews "2 \#(until)" mteam 5 rteam "9 9|""#)
        let muted = try CommandRun("user", "--config", path, "--app", "im", "--user", "bob")
        #expect(
            muted.output.contains(
                "news  level 2 until 2096-10-02T07:06:40Z: only mentions of the user in groups alert")
                && muted.output.contains("team  level 5: no message alerts"))
        #expect(!muted.output.contains("gone") && !muted.output.contains("check the id"))
        let json = try JSONTree(
            parsing: Array(
                try CommandRun("user", "--config", path, "--app", "im", "--user", "bob", "--json").output.utf8))
        let mutes = json["mutes"]?.array ?? []
        #expect(mutes.compactMap { $0["conv"]?.string } == ["gone", "news", "team"])
        #expect(mutes.map { $0["until_ms"]?.int } == [1, until, nil])
        await world.close()
    }

    /// What a client, a gateway or a producer chose comes before an operator's eyes as text, never as an order to his
    /// terminal; what programs read stays JSON.
    @Test func noNameSteersTheTerminal() async throws {
        let world = try await LocalCluster()
        let path = try world.writeConfiguration()
        let hostile = #"x\x1b]0;owned\x07\r\n\x1b[2J\xe2\x80\xae"#
        let uid = "b\u{9b}31m\u{202e}ob"
        _ = try world.redis.command(#"HSET "p:{im:\#(uid)}" "\#(hostile)" "fg,ios,\#(hostile),1,1,1,-,\#(hostile),l""#)
        _ = try world.redis.command(#"HSET "c:u:{im:\#(uid)}" la "1 \#(hostile)" ph "1 1\x1b[2J""#)
        _ = try world.redis.command(#"HSET "c:s:{im:\#(uid)}" "m\#(hostile)" 5"#)
        let event = Self.event.replacing("bob", with: uid).replacing("\"c1\"", with: #""c\u001b[2J\u009b1m\u2066""#)
        let told = try CommandRun("explain", "--config", path, "--event", "-", "--at", "sent", input: event + "\n")
        let user = try CommandRun("user", "--config", path, "--app", "im", "--user", uid)
        let trace = try CommandRun("trace", "--config", path, "--app", "im", "--user", uid)
        let check = try CommandRun("check", "--offline", "--config", path + "\u{1b}[2J")
        let send = try CommandRun(
            "send", "--config", path, "--app", "a\u{1b}[2J", "--token", "abab", "--alert", "hi", "--topic", "t\u{9b}1m")
        for run in [told, user, trace, check, send] {
            let text = run.output + run.errors
            #expect(!text.isEmpty)
            #expect(
                !text.unicodeScalars.contains { $0 != "\n" && Unprintable.contains($0) }, "\(text.debugDescription)")
        }
        #expect(user.output.contains(#"x\u001b]0;owned\u0007\u000d\n\u001b[2J\u202e"#), "\(user.output)")
        let json = try CommandRun("user", "--config", path, "--app", "im", "--user", uid, "--json")
        #expect(try JSONTree(parsing: Array(json.output.utf8))["uid"]?.string == uid)
        await world.close()
    }
}

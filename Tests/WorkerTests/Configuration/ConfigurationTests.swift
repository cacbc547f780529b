// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import EventLoop
import Kafka
import Payload
import PushCore
import Redis
import Support
import Telemetry
import Testing
import Worker

struct ConfigurationTests {
    private func read(_ yaml: String, _ environment: [String: String] = [:]) throws -> Configuration {
        try Configuration.read(Array(yaml.utf8), source: "f", environment: environment).get()
    }

    /// The repository's sample, wherever the tests run.
    private func sample() throws -> Configuration {
        let root = #filePath.split(separator: "/Tests/WorkerTests/").first.map(String.init) ?? "."
        let environment = ["CARILLON__APPS__0__TEMPLATES": root + "/Config/templates.yaml"]
        return try Configuration.load(path: root + "/Config/carillon.yaml", environment: environment).get()
    }

    @Test func theSampleLoadsWithoutProblemsAndShowsTheDefaults() throws {
        let sample = try sample()
        let bare = try read(ConfigurationProblemTests.good)
        #expect(sample.kafka.brokers == "localhost:9092")
        #expect(sample.kafka.topics == bare.kafka.topics)
        #expect(sample.kafka.options == bare.kafka.options)
        #expect(sample.redis.timeoutMs == bare.redis.timeoutMs)
        #expect(sample.redis.topology == bare.redis.topology)
        #expect(sample.results == bare.results)
        #expect(sample.stateResults == bare.stateResults)
        #expect(sample.http == bare.http)
        #expect(sample.shards == bare.shards)
        #expect(sample.logLevel == bare.logLevel)
        #expect(sample.window == bare.window)
        #expect(sample.drainSeconds == bare.drainSeconds)
        let app = try #require(sample.apps.first)
        let plain = try #require(bare.apps.first)
        #expect(app.limits == plain.limits)
        #expect(app.endpoints == plain.endpoints)
        #expect(app.policy.profile == plain.policy.profile)
        #expect(app.policy.badge == plain.policy.badge && app.policy.communication == plain.policy.communication)
        #expect(app.policy.title == plain.policy.title && plain.policy.title == .absent)
        #expect(app.policy.defaultZone == plain.policy.defaultZone)
        #expect(app.credentials.map(\.name) == ["default"])
    }

    @Test func theSamplesTemplatesHaveEveryTextInEveryLanguage() throws {
        let languages = try #require(try sample().apps.first).templates.languages
        #expect(Set(languages.keys) == ["zh-Hans", "zh-Hant", "en", "ja"])
        let model = try #require(languages["zh-Hans"])
        #expect(model.generic == "你收到一条新消息")
        #expect(model.types["RC:ImgMsg"] == "[图片]")
        for (name, language) in languages {
            #expect(Set(language.types.keys) == Set(model.types.keys), "\(name)")
            #expect(Set(language.contentKeys.keys) == Set(model.contentKeys.keys), "\(name)")
            #expect(language.merged["other"]?.contains("{count}") == true, "\(name)")
            #expect(language.generic?.isEmpty == false, "\(name)")
            #expect(language.revoke?.contains("{nick}") == true, "\(name)")
        }
    }

    private static let full = """
        kafka:
          brokers: a:1,b:2
          group: g
          topics: {events: e, dead_letter: d, state_results: s}
          options: {socket.timeout.ms: 5000, auto.offset.reset: error}
        redis: {url: "rediss://r:7/3?ca_file=/ca.pem", timeout_ms: 50}
        apps:
          - id: one
            topic: com.one
            environment: sandbox
            endpoint: {production: "https://p:2197", sandbox: "https://127.0.0.1:8443"}
            ca_file: /tmp/ca.pem
            credentials:
              main: {key_file: k.p8, key_id: ABC123DEFG, team_id: DEF123GHIJ}
              voip: {certificate_file: c.pem, key_file: c.key}
              old: {certificate_file: c.p12, password_file: pw}
            profile: rc
            strategy: 4
            default_levels: {p2p: 0, group: 1, ultra: -1, system: 5}
            dnd_mode: chain
            force_overrides_dnd: true
            clear_on_read: true
            badge_cap: 99
            badge: server
            communication: true
            title: conversation
            default_language: ja
            default_tz: Asia/Tokyo
            coalesce: {window_s: 2.5}
            dnd_digest: true
            proxy: http://proxy:3128
            limits: {rate: 7, background_per_hour: 3, in_flight: 3, connections: 5, answer_s: 0.5, unknown_tries: 0, suspects: {silent_d: 7, unconfirmed_s: 90}}
        results: failures
        state_results: true
        trace: {sample: 0.25, ttl_h: 24}
        http: {listen: "[::1]:0", hosts: [One.internal, two]}
        shards: 3
        log: {level: debug}
        window: {records: 5, bytes: 1048576}
        lanes: {urgent: 20, bulk: 1}
        drain_s: 0.5
        """

    @Test func everyKeyOfTheWorkerIsRead() throws {
        let configuration = try read(Self.full)
        #expect(configuration.kafka.brokers == "a:1,b:2" && configuration.kafka.group == "g")
        #expect(configuration.kafka.topics.events == "e" && configuration.kafka.topics.deadLetter == "d")
        #expect(configuration.kafka.topics.userState == "im.user-state")
        #expect(configuration.kafka.topics.chunks == "carillon.chunks")
        #expect(configuration.kafka.topics.parked == "carillon.parked")
        #expect(configuration.kafka.topics.stateResults == "s" && configuration.stateResults)
        #expect(Configuration.Topics().stateResults == "push.state-results")
        #expect(configuration.kafka.options == ["socket.timeout.ms": "5000", "auto.offset.reset": "error"])
        #expect(configuration.kafka.client(id: "x").offsetReset == .error)
        #expect(configuration.redis.endpoint?.database == 3 && configuration.redis.endpoint?.usesTLS == true)
        #expect(configuration.redis.limits.commandTimeoutNanos == 50_000_000)
        #expect(configuration.results == .failures)
        #expect(configuration.trace.sample == 0.25 && configuration.trace.ttlHours == 24)
        #expect(configuration.http.host == "::1" && configuration.http.port == 0)
        #expect(configuration.http.access.hosts == ["one.internal", "two"] && configuration.http.access.token == nil)
        #expect(configuration.shards == 3 && configuration.logLevel == .debug)
        #expect(configuration.window.records == 5 && configuration.window.bytes == 1_048_576)
        #expect(configuration.lanes.urgent == 20 && configuration.lanes.bulk == 1 && configuration.lanes.direct == 45)
        #expect(configuration.drainSeconds == 0.5)
    }

    @Test func everyKeyOfAnAppIsRead() throws {
        let app = try #require(try read(Self.full).apps.first)
        #expect(app.limits.suspects.silentMs == 7 * 86_400_000 && app.limits.suspects.unconfirmedMs == 90_000)
        #expect(app.policy.id == "one" && app.policy.topic == "com.one" && app.environment == .sandbox)
        #expect(app.endpoints[.production].host == "p" && app.endpoints[.production].port == 2197)
        #expect(app.endpoints[.sandbox].host == "127.0.0.1" && app.endpoints[.sandbox].caFile == "/tmp/ca.pem")
        #expect(app.credentials.map(\.name) == ["main", "voip", "old"])
        #expect(app.credential(named: nil)?.name == "main")
        func chosen(_ type: TokenRecord.Kind, cert: String?) -> String? {
            app.credential(
                for: TokenRecord(
                    hex: "aa", environment: .production, topic: "t", type: type, credential: cert, boundMs: 1))?.name
        }
        #expect(chosen(.alert, cert: nil) == "main" && chosen(.voip, cert: "voip") == "voip")
        #expect(chosen(.alert, cert: "none") == "main")
        // Live Activities go by provider key, whatever was named.
        #expect(chosen(.activity, cert: "voip") == "main" && chosen(.start, cert: "old") == "main")
        #expect(app.credential(named: "voip")?.source == .certificate(chainFile: "c.pem", keyFile: "c.key"))
        #expect(app.credential(named: "old")?.source == .archive(file: "c.p12", passwordFile: "pw"))
        #expect(app.credential(named: "none") == nil)
        #expect(app.policy.profile == .rc && app.policy.strategy == .apnsThenConnection)
        #expect(app.policy.defaultLevels == [.p2p: .unset, .group: .mentions, .ultra: .all, .system: .blocked])
        #expect(app.policy.dndMode == .chain && app.policy.forceOverridesDND && app.policy.clearOnRead)
        #expect(app.policy.badgeCap == 99 && app.policy.badge == .server && app.policy.communication)
        #expect(app.policy.title == .conversation)
        #expect(app.endpoints[.production].proxy == HTTPProxy(host: "proxy", port: 3128))
        #expect(app.limits.client.connectionsMax == 5)
        #expect(app.policy.defaultLanguage == "ja" && app.templates.defaultLanguage == "ja")
        #expect(app.policy.defaultZone == "Asia/Tokyo")
        #expect(app.limits.client.answerNanos == 500_000_000 && app.limits.client.inFlightMax == 3)
        #expect(app.coalesceSeconds == 2.5 && app.sendsDigest)
        #expect(app.limits.rate == 7 && app.limits.unknownTries == 0)
    }

    @Test func anAppsTopicMayBeAList() throws {
        let one = ConfigurationProblemTests.good
        let app = try read(one).apps[0].policy
        #expect(app.topic == "com.example.im" && app.allows(topic: "com.example.other"))
        let two = one.replacing("topic: com.example.im", with: "topic: [a.b, c.d]")
        let list = try read(two).apps[0].policy
        #expect(list.topic == "a.b" && list.allows(topic: "c.d") && !list.allows(topic: "c.de"))
        #expect(!list.allows(topic: ""))
    }

    @Test(arguments: [("none", AppPolicy.BadgeCounter.client), ("sender", .sender)])
    func onlyTheServersNumberIsSentWithoutAnAlert(word: String, badge: AppPolicy.BadgeCounter) throws {
        let configuration = try read(ConfigurationProblemTests.good + "    badge: \(word)\n    clear_on_read: true\n")
        let policy = try #require(configuration.apps.first?.policy)
        #expect(policy.badge == badge && !policy.clearOnRead)
    }

    @Test(arguments: [("", "Anna: "), ("    prefix: \"[{nick}] \"\n", "[Anna] "), ("    prefix: \"\"\n", "")])
    func thePrefixIsRead(line: String, text: String) throws {
        let policy = try #require(try read(ConfigurationProblemTests.good + line).apps.first?.policy)
        #expect(policy.prefix.text(nick: "Anna") == text)
    }

    @Test func templatesAndTheTextOfARevokeAreRead() throws {
        let folder = try TemporaryFolder()
        let file = """
            languages:
              en:
                revoke: "{nick} took it back"
                templates:
                  order: { title: "Order {no}", content: "It left" }
                  short: { content: "Hi" }
                  bare: { title: "  " }
                  filled: { content: "{who}{what} " }
            """
        let path = try folder.write(Array(file.utf8), to: "t.yaml")
        let app = try #require(try read(ConfigurationProblemTests.good + "    templates: \(path)\n").apps.first)
        let english = try #require(app.templates.languages["en"])
        #expect(english.revoke == "{nick} took it back")
        #expect(english.templates[UTF8Key("order")] == .init(title: "Order {no}", content: "It left"))
        #expect(app.policy.templateIDs == [UTF8Key("order"), UTF8Key("short")])
        #expect(
            app.policy.argumentTemplates
                == [UTF8Key("bare"): [], UTF8Key("filled"): [UTF8Key("who"), UTF8Key("what")]])
    }

    @Test func oneEndpointServesBothEnvironments() throws {
        let configuration = try read(ConfigurationProblemTests.good + "    endpoint: https://localhost:9\n")
        let app = try #require(configuration.apps.first)
        #expect(app.endpoints[.production] == app.endpoints[.sandbox])
        #expect(app.endpoints[.sandbox].port == 9)
    }

    @Test func theEnvironmentWinsOverTheFile() throws {
        let configuration = try read(
            ConfigurationProblemTests.good,
            [
                "CARILLON__KAFKA__BROKERS": "k:1", "CARILLON__KAFKA__OPTIONS__SOCKET_TIMEOUT_MS": "7000",
                "CARILLON__KAFKA__OPTIONS__SASL_PASSWORD": "hush",
                "CARILLON__REDIS__URL": "redis://:hush@localhost:1/2",
                "CARILLON__APPS__0__LIMITS__RATE": "500", "CARILLON__APPS__1": "{id: b, topic: t}",
                "CARILLON__APPS__1__CREDENTIALS": "{key_file: k, key_id: ABC123DEFG, team_id: DEF123GHIJ}",
                "CARILLON__SHARDS": "2", "CARILLONX": "ignored", "HOME": "/",
            ])
        #expect(configuration.kafka.brokers == "k:1")
        #expect(configuration.kafka.options["socket.timeout.ms"] == "7000")
        #expect(configuration.kafka.options["sasl.password"] == "hush")
        #expect(configuration.redis.endpoint?.password?.isEmpty == false)
        #expect(configuration.apps.map(\.policy.id) == ["im", "b"])
        #expect(configuration.apps.first?.limits.rate == 500)
        #expect(configuration.shards == 2)
    }

    @Test func theProcessEnvironmentIsRead() {
        #expect(Configuration.processEnvironment()["PATH"]?.isEmpty == false)
    }
}

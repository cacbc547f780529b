// SPDX-License-Identifier: Apache-2.0
import Support
import Testing
import Worker

/// Each row is a configuration with one mistake, and the problem that must be told with its line.
struct ConfigurationProblemTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var yaml: String
        var problem: String

        var testDescription: String { problem }
    }

    /// Of the app of `good`.
    static let credentials = "{key_file: k.p8, key_id: ABC123DEFG, team_id: DEF123GHIJ}"
    /// Lines 1-6 of every row that begins with it.
    static let good = """
        kafka: {brokers: "localhost:9092"}
        redis: {url: "redis://localhost:6379"}
        apps:
          - id: im
            topic: com.example.im
            credentials: \(credentials)

        """

    /// `good` with one more key of the app in line 7.
    private static func app(_ line: String, _ problem: String) -> Row {
        Row(yaml: good + "    \(line)\n", problem: "f:7: \(problem)")
    }

    /// `good` with one more key of the file in line 7.
    private static func top(_ line: String, _ problem: String) -> Row {
        Row(yaml: good + line + "\n", problem: "f:7: \(problem)")
    }

    static let whole: [Row] = [
        Row(
            yaml: "a: [",
            problem: "f:2: did not find expected node content (is a line indented too much or too little?)"),
        Row(yaml: "- a", problem: "f:1: the file must be a mapping of keys to values"),
        Row(yaml: "", problem: "f:1: kafka is missing; it needs brokers at least"),
        Row(yaml: "kafka: {}", problem: "f:1: kafka.brokers is missing"),
        Row(yaml: "kafka: 7", problem: "f:1: kafka must be a mapping of keys to values"),
        Row(yaml: "redis: {}", problem: "f:1: redis.url is missing"),
        Row(yaml: "apps: []", problem: "f:1: apps must be a list with one app at least"),
        Row(yaml: "x: 1\napps:\n  - topic: t", problem: "f:3: apps[0].id is missing"),
        Row(yaml: "apps:\n  - id: im", problem: "f:2: apps[0].topic is missing"),
        Row(yaml: "apps:\n  - id: im", problem: "f:2: apps[0].credentials is missing"),
        Row(
            yaml: "\(String(repeating: "k", count: 257)): 1", problem: "f:1: a key is longer than 256 bytes"),
        Row(
            yaml: "apps:\n  - id: im\n    topic: [a.b, a b]",
            problem: "f:3: apps[0].topic must hold bundle ids: letters, digits, dots and hyphens, at most 255"),
        Row(yaml: "apps:\n  - id: im\n    topic: [a.b, a.b]", problem: "f:3: apps[0].topic names \"a.b\" twice"),
        Row(yaml: "apps:\n  - id: im\n    topic: []", problem: "f:3: apps[0].topic names no bundle id"),
        Row(yaml: "x: *a", problem: "f:1: aliases (*name) are not supported"),
    ]

    static let why: [Row] = [
        app(
            "coalesce: {window_s: -1}", "apps[0].coalesce.window_s must be 0 or a number of seconds from 0.1 to 600"),
        app(
            "coalesce: {window_s: 5}\n    badge: none",
            "apps[0].coalesce.window_s cannot be used with badge: none: the client would count several messages as one"),
        app("prefix: \(String(repeating: "x", count: 257))", "apps[0].prefix is longer than 256 bytes"),
        app("badge: client", "apps[0].badge must be one of server, none, sender"),
        app("title: name", "apps[0].title must be one of none, nick, conversation"),
        app("coalesce: 10", "apps[0].coalesce must be a mapping of keys to values"),
        app("limits: {share: 2}", "apps[0].limits.share must be a number from 0 to 1"),
        top("token_loss: go", "token_loss must be one of stop, alarm"),
        app("badge: client", "apps[0].badge must be one of server, none"),
        app("communication: 1", "apps[0].communication must be true or false"),
        top("state_results: all", "state_results must be true or false"),
        top("trace: {sample: 1.5}", "trace.sample must be a number from 0 to 1"),
        top("trace: {ttl_h: 0}", "trace.ttl_h must be a whole number from 1 to 720"),
        top("trace: {tt_h: 3}", "unknown key \"tt_h\" (did you mean \"ttl_h\"?)"),
    ]

    static let stores: [Row] = [
        Row(
            yaml: "redis: {}\nkafka:\n  brokerz: x\n",
            problem: "f:3: unknown key \"brokerz\" (did you mean \"brokers\"?)"),
        Row(yaml: "kafka:\n  brokers: a\n  brokers: b\n", problem: "f:3: key \"brokers\" is repeated"),
        Row(yaml: "kafka:\n  brokers: [a]\n", problem: "f:2: kafka.brokers must be text"),
        Row(
            yaml: "kafka:\n  topics:\n    events: a b\n",
            problem: "f:3: kafka.topics.events must be letters, digits, dots, _ and -, at most 249"),
        Row(
            yaml: "kafka:\n  topics:\n    events: x\n    user_state: x\n",
            problem: "f:4: kafka.topics.events and user_state name the same topic, x"),
        Row(
            yaml: "kafka:\n  brokers: a\n  options:\n    auto.offset.reset: latest\n",
            problem: "f:4: kafka.options.auto.offset.reset: must be earliest or error"),
        Row(
            yaml: "kafka:\n  brokers: a\n  options:\n    no.such.thing: 1\n",
            problem: "f:4: kafka.options.no.such.thing: "),
        Row(
            yaml: "kafka:\n  brokers: a\n  options:\n    sasl.password: hush\n",
            problem: "f:4: kafka.options.sasl.password is a secret"),
        Row(
            yaml: "kafka:\n  brokers: a\n  secret_files:\n    sasl.password: /no/such/file\n",
            problem: "f:4: /no/such/file: No such file or directory"),
        Row(yaml: "redis:\n  url: http://x\n", problem: "f:2: redis.url: the URL must begin with redis://"),
        Row(yaml: "redis:\n  url: redis://:hush@x\n", problem: "f:2: redis.url holds a password"),
        Row(yaml: "redis:\n  url: []\n", problem: "f:2: redis.url names no node"),
        Row(
            yaml: "redis:\n  url: [unix:///r]\n", problem: "f:2: redis.url: a node is reached by redis:// or rediss://"),
        Row(
            yaml: "redis:\n  url: [redis://localhost/1]\n", problem: "f:2: redis.url: only database 0 exists here"
        ),
        Row(
            yaml: "redis:\n  url: [rediss://a, redis://localhost]\n",
            problem: "f:2: redis.url: all nodes are reached by TLS with the same ca_file, or none is"),
        Row(
            yaml: "redis:\n  url: redis://localhost\n  sentinel: {master: m, nodes: [localhost:1]}\n",
            problem: "f:2: redis.url and redis.sentinel: give one of the two"),
        Row(yaml: "redis:\n  sentinel: {nodes: [localhost:1]}\n", problem: "f:2: redis.sentinel.master is missing"),
        Row(
            yaml: "redis:\n  sentinel: {master: m, nodes: [localhost:1], user: u}\n",
            problem: "f:2: redis.sentinel.user needs redis.sentinel.password_file"),
        Row(
            yaml: "redis:\n  sentinel: {master: m, nodes: []}\n", problem: "f:2: redis.sentinel.nodes names no node"),
        Row(
            yaml: "redis:\n  timeout_ms: 1\n", problem: "f:2: redis.timeout_ms must be a whole number from 10 to 60000"),
        Row(
            yaml: "redis:\n  password_file: /no/such/file\n", problem: "f:2: /no/such/file: No such file or directory"),
        Row(yaml: "redis:\n  user: u\n", problem: "f:2: redis.user needs redis.password_file"),
        Row(
            yaml: "redis:\n  url: rediss://localhost\n  key_file: k\n",
            problem: "f:3: redis.certificate_file and redis.key_file need each other"),
        Row(
            yaml: "redis:\n  url: rediss://localhost\n  certificate_file: /no/c\n  key_file: /no/k\n",
            problem: "f:3: redis.certificate_file: /no/c: No such file or directory"),
        Row(
            yaml: "redis:\n  url: redis://localhost\n  certificate_file: /no/c\n  key_file: /no/k\n",
            problem: "f:3: redis.certificate_file has no effect without rediss://"),
    ]

    static let apps: [Row] = [
        app("strategi: 1", "unknown key \"strategi\" (did you mean \"strategy\"?)"),
        app("strategy: 5", "apps[0].strategy must be a whole number from 1 to 4"),
        app("strategy: \"1\"", "apps[0].strategy must be a whole number from 1 to 4"),
        app("strategy: 1.0", "apps[0].strategy must be a whole number from 1 to 4"),
        app("profile: gt", "apps[0].profile must be one of nim, rc, wps, raw"),
        app("environment: dev", "apps[0].environment must be one of production, sandbox"),
        app("endpoint: http://x", "apps[0].endpoint: endpoint 'http://x' must begin with https://"),
        app("endpoint: {prod: https://x}", "unknown key \"prod\"; known are production, sandbox"),
        app("endpoint: {sandbox: 'https://x:0'}", "apps[0].endpoint: endpoint 'https://x:0' has no valid port"),
        app("default_levels: {p2p: 3}", "apps[0].default_levels.p2p must be one of -1, 0, 1, 2, 4, 5"),
        app("default_levels: {grup: 0}", "unknown key \"grup\" (did you mean \"group\"?)"),
        app("dnd_mode: both", "apps[0].dnd_mode must be one of independent, chain"),
        app("clear_on_read: yes", "apps[0].clear_on_read must be true or false"),
        app("badge_cap: -1", "apps[0].badge_cap must be a whole number from 0 to 2147483647"),
        app("default_tz: Mars/Base", "apps[0].default_tz: no such time zone; write it like Asia/Shanghai"),
        app("default_tz: ../../etc/passwd", "apps[0].default_tz: no such time zone; write it like Asia/Shanghai"),
        app("templates: /no/such/file", "/no/such/file: No such file or directory"),
        app("limits: {in_flight: 0}", "apps[0].limits.in_flight must be a whole number from 1 to 1000000"),
        app("limits: {rate: -1}", "apps[0].limits.rate must be a whole number from 0 to 10000000"),
        app("limits: {answer_s: 0}", "apps[0].limits.answer_s must be a number of seconds from 0.1 to 300"),
        app("limits: {answer_s: 1e-10}", "apps[0].limits.answer_s must be a number of seconds from 0.1 to 300"),
        app("limits: {answer_s: 301}", "apps[0].limits.answer_s must be a number of seconds from 0.1 to 300"),
        app("limits: {answer_s: nan}", "apps[0].limits.answer_s must be a number of seconds from 0.1 to 300"),
        app(
            "limits: {removals: {window_s: 1e-9}}",
            "apps[0].limits.removals.window_s must be a number of seconds from 1 to 86400"),
        app(
            "limits: {removals: {cool_down_s: 0.5}}",
            "apps[0].limits.removals.cool_down_s must be a number of seconds from 1 to 604800"),
        app(
            "coalesce: {window_s: 1e-10}",
            "apps[0].coalesce.window_s must be 0 or a number of seconds from 0.1 to 600"),
        app(
            "default_language: \(String(repeating: "x", count: 65))", "apps[0].default_language is longer than 64 bytes"
        ),
        app("limits: {connections: 0}", "apps[0].limits.connections must be a whole number from 1 to 256"),
        app("proxy: proxy.example.com:3128", "apps[0].proxy must be http://host:port"),
        app("proxy: http://proxy.example.com", "apps[0].proxy must be http://host:port"),
        app("proxy_password_file: x", "apps[0].proxy_password_file has no effect without proxy"),
        app("limits: {unknown_tries: 11}", "apps[0].limits.unknown_tries must be a whole number from 0 to 10"),
        app(
            "limits: {suspects: {silent_d: -1}}",
            "apps[0].limits.suspects.silent_d must be a whole number from 0 to 3650"),
        Row(
            yaml: good + "  - id: im\n    topic: t\n    credentials: {key_file: k, key_id: i, team_id: t}\n",
            problem: "f:7: two apps have the id \"im\""),
        Row(
            yaml: good.replacing("- id: im", with: "- id: a:b"),
            problem: "f:4: apps[0].id must not hold ':', '{' or '}': they divide the parts of Redis keys"),
        Row(
            yaml: good.replacing("- id: im", with: "- id: \(String(repeating: "中", count: 22))"),
            problem: "f:4: apps[0].id is longer than 64 bytes"),
        Row(
            yaml: good.replacing("com.example.im", with: String(repeating: "a", count: 256)),
            problem: "f:5: apps[0].topic must be a bundle id: letters, digits, dots and hyphens, at most 255"),
        Row(
            yaml: good.replacing(
                "{key_file: k.p8, ", with: "{\(String(repeating: "n", count: 65)): {key_file: k.p8, "
            )
            .replacing("DEF123GHIJ}", with: "DEF123GHIJ}}"),
            problem: "f:6: apps[0].credentials: a name is longer than 64 bytes"),
        Row(yaml: good.replacing("- id: im", with: "- id: 'a{'"), problem: "f:4: apps[0].id must not hold"),
        Row(yaml: good.replacing("- id: im", with: "- id: '}'"), problem: "f:4: apps[0].id must not hold"),
        Row(
            yaml: good.replacing("com.example.im", with: "a b"),
            problem: "f:5: apps[0].topic must be a bundle id: letters, digits, dots and hyphens"),
        Row(
            yaml: good.replacing("key_id: ABC123DEFG, ", with: ""),
            problem: "f:6: apps[0].credentials.key_id is missing"),
        Row(
            yaml: good.replacing("key_file: k.p8, ", with: ""),
            problem: "f:6: apps[0].credentials needs key_file, key_id and team_id"),
        Row(
            yaml: good.replacing("key_file: k.p8, ", with: "certificate_file: c, ")
                .replacing("team_id: DEF123GHIJ", with: "password_file: p"),
            problem: "f:6: apps[0].credentials.key_id has no effect with certificate_file"),
    ]

    static let others: [Row] = [
        top("results: some", "results must be one of all, failures, none"),
        top(
            "http: {hosts: ['a:80']}",
            "http.hosts must contain names such as carillon.internal, without scheme and port"),
        top("http: {token_file: /dev/null}", "/dev/null: is not a regular file"),
        top(
            "waivers: [plain]",
            "no waiver is called \"plain\"; there are plain_redis, plain_sasl, unverified_kafka, unnamed_kafka, "
                + "kafka_plugins, unsigned_jwt"),
        top("http: {url: 'javascript:x'}", "http.url must be an address such as http://carillon-1.internal:9464/"),
        top("http: {listen: 9464}", "http.listen must be host:port, such as 127.0.0.1:9464"),
        top("http: {listen: ':80'}", "http.listen must name its host; 0.0.0.0 for all addresses"),
        top("shards: -1", "shards must be a whole number from 0 to 1024"),
        top("log: {level: loud}", "log.level must be one of debug, info, warning, error"),
        top("lanes: {bulk: 0}", "lanes.bulk must be a whole number from 1 to 100"),
        top("window: {records: 0}", "window.records must be a whole number from 1 to 10000000"),
        top("window: {bytes: 10}", "window.bytes must be a whole number from 1048576 to 1099511627776"),
        top("drain_s: 0", "drain_s must be a number of seconds from 0.1 to 3600"),
        top("drain_s: 1e9", "drain_s must be a number of seconds from 0.1 to 3600"),
        top("drain_s: 4", "drain_s (4.0) must not be below the longest limits.answer_s (5.0)"),
    ]

    private func problems(_ yaml: String, _ environment: [String: String] = [:]) -> [String] {
        switch Configuration.read(Array(yaml.utf8), source: "f", environment: environment) {
        case .success: []
        case .failure(let found): found.problems.map(\.description)
        }
    }

    @Test(arguments: whole + stores)
    func isReportedWithItsLine(row: Row) {
        let found = problems(row.yaml)
        #expect(found.contains { $0.hasPrefix(row.problem) }, "\(found)")
        #expect(!found.contains { $0.contains("hush") }, "a secret must not be repeated")
    }

    @Test(arguments: apps + others + why)
    func isTheOnlyProblem(row: Row) {
        let found = problems(row.yaml)
        #expect(found.count == 1 && found.first?.hasPrefix(row.problem) == true, "\(found)")
    }

    @Test func allProblemsAreReportedInOrder() {
        let yaml = "kafka:\n  brokers: a\n  x1: 1\nredis: {url: \"redis://localhost\"}\napps: 7\nresults: no\nx2: 1\n"
        #expect(problems(yaml).map { $0.prefix(4) } == ["f:3:", "f:5:", "f:6:", "f:7:"])
    }

    /// A file of an earlier version starts this one.
    @Test func aRemovedKeyIsAWarning() throws {
        let yaml = Self.good.replacing("redis: {", with: "redis: {group_marks: together, ")
        for (yaml, environment) in [(yaml, [:]), (Self.good, ["CARILLON__REDIS__GROUP_MARKS": "each"])] {
            let read = try Configuration.read(Array(yaml.utf8), source: "f", environment: environment).get()
            let warnings = read.warnings.map(\.description)
            #expect(warnings.count == 1, "\(warnings)")
            #expect(warnings.first?.contains("redis.group_marks has no effect any more") == true)
            let printed = try Configuration.effective(Array(yaml.utf8), source: "f", environment: environment).get()
            #expect(!printed.text.contains("group_marks"))
        }
    }

    @Test func environmentProblemsNameTheirVariable() {
        let found = problems(Self.good, ["CARILLON__SHARDS": "many", "CARILLON__REDIS__URI": "x", "CARILLON__": "1"])
        #expect(
            found.sorted() == [
                "environment variable CARILLON__: names no key; write it like CARILLON__KAFKA__BROKERS",
                "environment variable CARILLON__REDIS__URI: unknown key \"uri\" (did you mean \"url\"?)",
                "environment variable CARILLON__SHARDS: shards must be a whole number from 0 to 1024",
            ])
    }

    @Test func aMissingFileIsOneProblem() {
        guard case .failure(let found) = Configuration.load(path: "/no/such/file", environment: [:]) else {
            Issue.record("loaded")
            return
        }
        #expect(found.description == "/no/such/file: No such file or directory")
    }

    @Test func moreThanAHundredContentKeysAreReportedWithTheirLine() throws {
        let folder = try TemporaryFolder()
        for (count, isProblem) in [(100, false), (101, true)] {
            var file = "languages:\n  en:\n    content_keys:\n"
            for number in 0..<count { file += "      k\(number): text\n" }
            let path = try folder.write(Array(file.utf8), to: "\(count).yaml")
            let found = problems(Self.good + "    templates: \(path)\n")
            #expect(found == (isProblem ? ["\(path):4: languages.en.content_keys has more than 100 texts"] : []))
        }
    }

    @Test func aTemplateWithoutATextIsAProblem() throws {
        let folder = try TemporaryFolder()
        let file = "languages:\n  en:\n    templates:\n      a: {title: x, body: y}\n      b: {}\n"
        let path = try folder.write(Array(file.utf8), to: "t.yaml")
        let found = problems(Self.good + "    templates: \(path)\n")
        #expect(
            found.count == 2 && found[0].hasPrefix("\(path):4: unknown key \"body\""),
            "\(found)")
        #expect(found.last == "\(path):5: languages.en.templates.b needs a title or a content")
    }

    @Test func aBrokenCredentialFileIsReportedWithItsLine() throws {
        let configuration = try Configuration.read(Array(Self.good.utf8), source: "f").get()
        let problems = configuration.credentialProblems().map(\.description)
        #expect(problems.count == 1)
        #expect(problems.first?.hasPrefix("f:6: ") == true)
        #expect(problems.first?.contains("k.p8") == true)
    }

    @Test func aWrongPasswordIsReportedWithItsLine() throws {
        let folder = try TemporaryFolder()
        let archive = try folder.writeArchive(password: "right", to: "push.p12")
        for (password, count) in [("right", 0), ("wrong", 1)] {
            let file = try folder.write(Array(password.utf8), to: password)
            let yaml = Self.good.replacing(
                Self.credentials, with: "{certificate_file: \(archive), password_file: \(file)}")
            let problems = try Configuration.read(Array(yaml.utf8), source: "f").get().credentialProblems()
            #expect(problems.count == count)
            for problem in problems {
                #expect(problem.description == "f:6: \(archive): the password does not open the PKCS#12 archive")
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import EventLoop
import Kafka
import Payload
import PushCore
import Redis
import Telemetry
import YAML

/// Converts the tree to values. Reports problems and continues with defaults.
struct ConfigurationReader {
    let problems: ProblemList
    let secrets: SecretFileList

    static let keys = [
        "kafka", "redis", "apps", "results", "state_results", "token_loss", "trace", "stats", "http", "shards", "log",
        "window",
        "planner", "lanes",
        "drain_s", "waivers",
    ]

    /// - Returns: nil if a required part is missing; the problem is then in the list.
    func read(_ root: YAMLNode) -> Configuration? {
        let section = Section(root, path: "", keys: Self.keys, problems: problems)
        let kafka = kafka(section)
        let redis = redis(section)
        let apps = apps(section)
        var configuration = Configuration(kafka: kafka, redis: redis, apps: apps)
        if let results = section.word(
            "results", Configuration.Results.allCases.map(\.rawValue), Configuration.Results.self)
        {
            configuration.results = results
        }
        if let writes = section.bool("state_results") { configuration.stateResults = writes }
        if let loss = section.word("token_loss", ["stop", "alarm"], Configuration.TokenLoss.self) {
            configuration.stopsAtTokenLoss = loss == .stop
        }
        if let shards = section.int("shards", in: 0...1024) { configuration.shards = shards }
        trace(section, &configuration.trace)
        let stats = section.optionalSection("stats", keys: ["days"])
        if let days = stats.int("days", in: 1...366) { configuration.statisticsDays = days }
        http(section, &configuration.http)
        log(section, &configuration.logLevel)
        let window = section.optionalSection("window", keys: ["records", "bytes"])
        if let records = window.int("records", in: 1...10_000_000) { configuration.window.records = records }
        if let bytes = window.int("bytes", in: (1 << 20)...(1 << 40)) { configuration.window.bytes = bytes }
        let planner = section.optionalSection("planner", keys: ["direct_max"])
        if let direct = planner.int("direct_max", in: 256...1_000_000) { configuration.planner.directMax = direct }
        lanes(section, &configuration.lanes)
        drain(section, &configuration)
        waivers(section, &configuration)
        configuration.secretFiles = secrets.files
        configuration.warnings = problems.warnings
        return configuration
    }

    private func trace(_ root: Section, _ trace: inout Configuration.Trace) {
        let section = root.optionalSection("trace", keys: ["sample", "ttl_h"])
        if let sample = section.number("sample", in: 0...1) { trace.sample = sample }
        if let hours = section.int("ttl_h", in: 1...720) { trace.ttlHours = hours }
    }

    private func lanes(_ root: Section, _ shares: inout LaneShares) {
        let section = root.optionalSection("lanes", keys: PushLane.allCases.map { "\($0.name)" })
        for lane in PushLane.allCases {
            if let share = section.int("\(lane.name)", in: 1...100) { shares[lane] = share }
        }
    }

    private func drain(_ section: Section, _ configuration: inout Configuration) {
        if let seconds = section.seconds("drain_s", in: 0.1...3600) { configuration.drainSeconds = seconds }
        let slowest = configuration.apps.map(\.limits.answerSeconds).max() ?? 0
        if configuration.drainSeconds < slowest {
            problems.add(
                section["drain_s"]?.mark ?? section.mark,
                "drain_s (\(configuration.drainSeconds)) must not be below the longest limits.answer_s (\(slowest)): "
                    + "pushes in flight would be dropped before their answer")
        }
    }

    private func http(_ root: Section, _ http: inout Configuration.HTTPSection) {
        let section = root.optionalSection("http", keys: ["listen", "url", "hosts", "token_file"])
        listen(section, &http)
        if let url = section.string("url"), let node = section["url"] {
            if Configuration.HTTPSection.isAddress(url) {
                http.url = url
            } else {
                problems.add(node.mark, "http.url must be an address such as http://carillon-1.internal:9464/")
            }
        }
        for (text, mark) in section.strings("hosts") {
            guard (1...253).contains(text.utf8.count), text.utf8.allSatisfy(Self.isHostByte) else {
                problems.add(
                    mark, "http.hosts must contain names such as carillon.internal, without scheme and port")
                continue
            }
            http.access.hosts.append(text.lowercased())
        }
        guard let path = section.string("token_file"), let mark = section["token_file"]?.mark else { return }
        guard let token = secret(path, mark) else { return }
        // RFC 6750 section 2.1 allows fewer characters. The length limit fits a typed token.
        guard token.withBytes({ $0.count >= 16 && $0.allSatisfy { (0x21...0x7E).contains($0) } }) else {
            return problems.add(mark, "\(path): a token of at least 16 printable ASCII characters is required")
        }
        http.access.token = token
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    private func listen(_ section: Section, _ http: inout Configuration.HTTPSection) {
        guard let listen = section.string("listen"), let node = section["listen"] else { return }
        var host = listen[...]
        guard let colon = listen.lastIndex(of: ":"), let port = UInt16(listen[listen.index(after: colon)...]) else {
            problems.add(node.mark, "http.listen must be host:port, such as 127.0.0.1:9464")
            return
        }
        host = listen[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty else {
            problems.add(node.mark, "http.listen must name its host; 0.0.0.0 for all addresses")
            return
        }
        http.host = String(host)
        http.port = port
    }

    /// The secret in a file, recorded as secret; nil if it cannot be read.
    func secret(_ path: String, _ mark: YAMLNode.Mark) -> Secret? {
        secrets.add(path, mark)
        switch SmallFile.readSecret(path) {
        case .success(let secret): return secret
        case .failure(let fault):
            problems.add(mark, "\(path): \(fault.why)")
            return nil
        }
    }

    /// The named waivers, and every weak link that none of them covers.
    private func waivers(_ section: Section, _ configuration: inout Configuration) {
        for (text, mark) in section.strings("waivers") {
            guard let waiver = WeakLink.Waiver(rawValue: text) else {
                let names = WeakLink.Waiver.allCases.map(\.rawValue).joined(separator: ", ")
                problems.add(mark, "no waiver is called \"\(text)\"; there are \(names)")
                continue
            }
            configuration.waivers.insert(waiver)
        }
        for link in configuration.weakLinks where !configuration.waivers.contains(link.waiver) {
            let kafka = section.section("kafka", keys: nil)
            let mark =
                link.option.flatMap { kafka?.section("options", keys: nil)?[$0]?.mark }
                ?? section.section("redis", keys: nil)?["url"]?.mark ?? section.mark
            problems.add(mark, link.refusal)
        }
    }

    private func log(_ root: Section, _ level: inout Log.Level) {
        let section = root.optionalSection("log", keys: ["level"])
        guard let name = section.string("level"), let node = section["level"] else { return }
        guard let known = Log.Level(name: name) else {
            let names = Log.Level.allCases.map(\.name).joined(separator: ", ")
            problems.add(node.mark, "log.level must be one of \(names)")
            return
        }
        level = known
    }

    // MARK: Apps

    private static let appKeys = [
        "id", "topic", "environment", "endpoint", "ca_file", "proxy", "proxy_password_file", "credentials", "profile",
        "strategy", "default_levels", "dnd_mode", "force_overrides_dnd", "clear_on_read", "title", "prefix",
        "badge_cap",
        "badge",
        "communication", "default_language", "default_tz", "templates", "limits", "coalesce", "dnd_digest",
    ]

    func apps(_ root: Section) -> [Configuration.App] {
        guard let list = root["apps"] else {
            problems.add(root.mark, "apps is missing; it needs one app at least")
            return []
        }
        guard case .sequence(let nodes) = list.value, !nodes.isEmpty else {
            problems.add(list.mark, "apps must be a list with one app at least")
            return []
        }
        let templates = TemplatesReader(problems: problems)
        var seen: Set<String> = []
        return nodes.enumerated().compactMap { index, node in
            let section = Section(node, path: "apps[\(index)]", keys: Self.appKeys, problems: problems)
            guard let app = app(section, templates) else { return nil }
            if !seen.insert(app.policy.id).inserted {
                problems.add(section["id"]?.mark ?? section.mark, "two apps have the id \"\(app.policy.id)\"")
            }
            return app
        }
    }

    private func app(_ section: Section, _ templates: TemplatesReader) -> Configuration.App? {
        let id = section.requiredString("id")
        let topics = topics(section)
        let topic = topics.first
        let credentials = credentials(section)
        if let id, id.utf8.count > InputLimit.id {
            problems.add(
                section["id"]?.mark ?? section.mark,
                "\(section.name("id")) is longer than \(InputLimit.id) bytes")
        }
        if let id, id.utf8.contains(where: { ":{}".utf8.contains($0) }) {
            // Others write `p:{app:uid}`, `gw:` and `g:`, so such keys could not be distinguished.
            problems.add(
                section["id"]?.mark ?? section.mark,
                "\(section.name("id")) must not hold ':', '{' or '}': they divide the parts of Redis keys")
        }
        var app = Configuration.App(
            policy: policy(section, AppPolicy(id: id ?? "", topic: topic ?? "")), credentials: credentials)
        if case .sequence? = section["topic"]?.value { app.policy.allowedTopics = topics }
        if let environment = section.word("environment", ["production", "sandbox"], APNsEnvironment.self) {
            app.environment = environment
        }
        endpoints(section, &app.endpoints)
        limits(section, &app.limits)
        if let sends = section.bool("dnd_digest") { app.sendsDigest = sends }
        let coalesce = section.optionalSection("coalesce", keys: ["window_s"])
        if let seconds = coalesce.seconds("window_s", in: 0.1...600, zeroIsOff: true) {
            app.coalesceSeconds = seconds
        }
        if app.policy.badge == .client, app.coalesceSeconds > 0 {
            problems.add(
                coalesce.mark,
                "\(coalesce.name("window_s")) cannot be used with badge: none: the client would count several messages as one"
            )
        }
        if let path = section.string("templates"), let node = section["templates"] {
            app.templates = templates.read(path, at: node.mark)
        }
        app.templates.defaultLanguage = app.policy.defaultLanguage
        app.policy.templateIDs = app.templates.templateIDs
        app.policy.argumentTemplates = app.templates.argumentTemplates
        return id == nil || topic == nil ? nil : app
    }

    /// The bundle id, or the list of bundle ids.
    private func topics(_ section: Section) -> [String] {
        guard case .sequence(let nodes)? = section["topic"]?.value else {
            let topic = section.requiredString("topic")
            if let topic, !AppPolicy.isTopic(topic) {
                problems.add(
                    section["topic"]?.mark ?? section.mark,
                    "\(section.name("topic")) must be a bundle id: letters, digits, dots and hyphens, at most \(AppPolicy.topicBytesMax)"
                )
            }
            return topic.map { [$0] } ?? []
        }
        if nodes.isEmpty {
            problems.add(section["topic"]?.mark ?? section.mark, "\(section.name("topic")) names no bundle id")
        }
        var topics: [String] = []
        for entry in section.strings("topic") {
            if !AppPolicy.isTopic(entry.text) {
                problems.add(
                    entry.mark,
                    "\(section.name("topic")) must hold bundle ids: letters, digits, dots and hyphens, at most \(AppPolicy.topicBytesMax)"
                )
            } else if topics.containsSame(entry.text) {
                problems.add(entry.mark, "\(section.name("topic")) names \"\(entry.text)\" twice")
            }
            topics.append(entry.text)
        }
        return topics
    }

    private func policy(_ section: Section, _ start: AppPolicy) -> AppPolicy {
        var policy = start
        if let profile = section.word("profile", ["nim", "rc", "wps", "raw"], PayloadProfile.self) {
            policy.profile = profile
        }
        if let strategy = section.int("strategy", in: 1...4).flatMap({ Strategy(rawValue: $0) }) {
            policy.strategy = strategy
        }
        if let mode = section.word("dnd_mode", ["independent", "chain"], AppPolicy.DNDMode.self) {
            policy.dndMode = mode
        }
        if let overrides = section.bool("force_overrides_dnd") { policy.forceOverridesDND = overrides }
        if let clears = section.bool("clear_on_read") { policy.clearOnRead = clears }
        if let prefix = section.string("prefix", atMost: InputLimit.name, mayBeEmpty: true) {
            policy.prefix = PrefixFormat(prefix)
        }
        if let title = section.word("title", ["none", "nick", "conversation"], AppPolicy.AlertTitle.self) {
            policy.title = title
        }
        if let cap = section.int("badge_cap", in: 0...Int(Int32.max)) { policy.badgeCap = Int64(cap) }
        if let badge = section.word("badge", ["server", "none", "sender"], AppPolicy.BadgeCounter.self) {
            policy.badge = badge
        }
        // Only the server's own number is sent without an alert.
        if policy.badge != .server { policy.clearOnRead = false }
        if let communication = section.bool("communication") { policy.communication = communication }
        if let language = section.string("default_language", atMost: InputLimit.word) {
            policy.defaultLanguage = language
        }
        if let zone = section.string("default_tz") {
            if SystemZones().offset(of: zone, at: 0) == nil {
                problems.add(
                    section["default_tz"]?.mark ?? section.mark,
                    "\(section.name("default_tz")): "
                        + (SystemZones().isPresent
                            ? "no such time zone; write it like Asia/Shanghai" : SystemZones.absence))
            }
            policy.defaultZone = zone
        }
        let kinds = Conversation.Kind.allCases
        let levels = section.optionalSection("default_levels", keys: kinds.map(\.rawValue))
        for kind in kinds {
            guard let node = levels[kind.rawValue] else { continue }
            guard case .scalar(let text, quoted: false) = node.value,
                let level = Int(text).flatMap({ MuteLevel(rawValue: $0) })
            else {
                problems.add(node.mark, "\(levels.name(kind.rawValue)) must be one of -1, 0, 1, 2, 4, 5")
                continue
            }
            policy.defaultLevels[kind] = level
        }
        return policy
    }

    private func credentials(_ app: Section) -> [Configuration.Credential] {
        guard let node = app["credentials"] else {
            problems.add(app.mark, "\(app.name("credentials")) is missing")
            return []
        }
        // Named sets are mappings of mappings; one unnamed set is a mapping of texts.
        guard case .mapping(let entries) = node.value, !entries.isEmpty,
            entries.allSatisfy({ if case .mapping = $0.value.value { true } else { false } })
        else { return credential(node, named: "default", path: app.name("credentials")).map { [$0] } ?? [] }
        if let long = entries.first(where: { $0.key.utf8.count > InputLimit.word }) {
            problems.add(
                long.keyMark,
                "\(app.name("credentials")): a name is longer than \(InputLimit.word) bytes, and no bind could name it"
            )
        }
        return entries.compactMap {
            credential($0.value, named: $0.key, path: "\(app.name("credentials")).\($0.key)")
        }
    }

    private func credential(_ node: YAMLNode, named name: String, path: String) -> Configuration.Credential? {
        let keys = ["key_file", "key_id", "team_id", "certificate_file", "password_file"]
        let section = Section(node, path: path, keys: keys, problems: problems)
        func made(_ source: Configuration.Credential.Source) -> Configuration.Credential {
            for path in source.secretFiles { secrets.add(path, node.mark) }
            return Configuration.Credential(name: name, source: source, mark: node.mark)
        }
        if let certificate = section.string("certificate_file") {
            if let key = section.string("key_file") {
                refuse(["key_id", "team_id", "password_file"], in: section, beside: "certificate_file and key_file")
                return made(.certificate(chainFile: certificate, keyFile: key))
            }
            refuse(["key_id", "team_id"], in: section, beside: "certificate_file")
            return made(.archive(file: certificate, passwordFile: section.string("password_file")))
        }
        refuse(["password_file"], in: section, beside: "key_file")
        guard let key = section.string("key_file") else {
            problems.add(
                node.mark,
                "\(path) needs key_file, key_id and team_id, or certificate_file with password_file or key_file")
            return nil
        }
        guard let keyID = section.requiredString("key_id"), let teamID = section.requiredString("team_id") else {
            return nil
        }
        return made(.token(keyFile: key, keyID: keyID, teamID: teamID))
    }

    private func refuse(_ keys: [String], in section: Section, beside others: String) {
        for key in keys {
            guard let node = section[key] else { continue }
            problems.add(node.mark, "\(section.name(key)) has no effect with \(others)")
        }
    }

    private func endpoints(_ app: Section, _ endpoints: inout Configuration.Endpoints) {
        let caFile = app.string("ca_file")
        endpoints.production.caFile = caFile
        endpoints.sandbox.caFile = caFile
        defer {
            let proxy = proxy(app)
            endpoints.production.proxy = proxy
            endpoints.sandbox.proxy = proxy
        }
        guard let node = app["endpoint"] else { return }
        func read(_ text: String, _ mark: YAMLNode.Mark) -> APNsEndpoint? {
            do {
                return try APNsEndpoint(url: text, caFile: caFile)
            } catch {
                problems.add(mark, "\(app.name("endpoint")): \(error.description)")
                return nil
            }
        }
        guard case .mapping = node.value else {
            if let text = app.string("endpoint"), let endpoint = read(text, node.mark) {
                endpoints.production = endpoint
                endpoints.sandbox = endpoint
            }
            return
        }
        let section = app.optionalSection("endpoint", keys: ["production", "sandbox"])
        for key in ["production", "sandbox"] {
            guard let text = section.string(key), let place = section[key]?.mark, let endpoint = read(text, place)
            else { continue }
            if key == "production" { endpoints.production = endpoint } else { endpoints.sandbox = endpoint }
        }
    }

    /// `http://host:port`, with user and password in a separate file.
    private func proxy(_ app: Section) -> HTTPProxy? {
        guard let text = app.string("proxy"), let node = app["proxy"] else {
            if let node = app["proxy_password_file"] {
                problems.add(node.mark, "\(app.name("proxy_password_file")) has no effect without proxy")
            }
            return nil
        }
        guard text.hasPrefix("http://"),
            let place = try? APNsEndpoint(url: "https://" + text.dropFirst("http://".count)),
            text.dropFirst("http://".count).contains(":")
        else {
            problems.add(node.mark, "\(app.name("proxy")) must be http://host:port")
            return nil
        }
        var proxy = HTTPProxy(host: place.host, port: place.port)
        if let path = app.string("proxy_password_file") {
            let login = secret(path, app["proxy_password_file"]?.mark ?? node.mark)
            if let login { proxy = HTTPProxy(host: place.host, port: place.port, login: login) }
        }
        return proxy
    }

    private func limits(_ app: Section, _ limits: inout Configuration.Limits) {
        let section = app.optionalSection(
            "limits",
            keys: [
                "rate", "background_per_hour", "in_flight", "connections", "answer_s", "unknown_tries", "share",
                "removals", "suspects",
            ])
        if let rate = section.int("rate", in: 0...10_000_000) { limits.rate = rate }
        if let count = section.int("background_per_hour", in: 0...10_000) { limits.backgroundPerHour = count }
        if let count = section.int("in_flight", in: 1...1_000_000) { limits.inFlight = count }
        if let count = section.int("connections", in: 1...256) { limits.connections = count }
        if let seconds = section.seconds("answer_s", in: 0.1...300) { limits.answerSeconds = seconds }
        if let tries = section.int("unknown_tries", in: 0...10) { limits.unknownTries = tries }
        if let share = section.number("share", in: 0...1) { limits.share = max(0.01, share) }
        removals(section, &limits.removals)
        suspects(section, &limits.suspects)
    }

    private func suspects(_ limits: Section, _ rule: inout SuspectRule) {
        let section = limits.optionalSection("suspects", keys: ["silent_d", "unconfirmed_s"])
        if let days = section.int("silent_d", in: 0...3650) { rule.silentMs = Int64(days) * 86_400_000 }
        if let seconds = section.int("unconfirmed_s", in: 0...604_800) { rule.unconfirmedMs = Int64(seconds) * 1000 }
    }

    private func removals(_ limits: Section, _ brake: inout RemovalBrake.Limits) {
        let section = limits.optionalSection("removals", keys: ["window_s", "minimum", "share", "cool_down_s"])
        if let seconds = section.seconds("window_s", in: 1...86_400) { brake.windowMs = Int64(seconds * 1000) }
        if let count = section.int("minimum", in: 1...1_000_000) { brake.minimum = count }
        if let share = section.number("share", in: 0...1) { brake.share = share }
        if let seconds = section.seconds("cool_down_s", in: 1...604_800) { brake.coolDownMs = Int64(seconds * 1000) }
    }

    // MARK: Stores

    func kafka(_ root: Section) -> Configuration.KafkaSection {
        guard
            let section = root.section(
                "kafka", keys: ["brokers", "group", "topics", "traceparent", "options", "secret_files"])
        else {
            problems.add(root.mark, "kafka is missing; it needs brokers at least")
            return Configuration.KafkaSection(brokers: "")
        }
        var kafka = Configuration.KafkaSection(brokers: section.requiredString("brokers") ?? "")
        if let group = section.string("group") { kafka.group = group }
        if let reads = section.bool("traceparent") { kafka.readsTraceparents = reads }
        topics(section, &kafka.topics)
        var marks = ["brokers": section["brokers"]?.mark, "group": section["group"]?.mark]
        options(section, &kafka.options, &marks)
        func mark(_ problem: KafkaConfigurationProblem) -> YAMLNode.Mark {
            (marks[problem.key] ?? nil) ?? section.mark
        }
        func name(_ problem: KafkaConfigurationProblem) -> String {
            "kafka.\(kafka.options[problem.key] == nil ? "" : "options.")\(problem.key): "
        }
        guard !kafka.brokers.isEmpty else { return kafka }
        let signIn = KafkaSignIn(options: kafka.options, library: .loaded)
        var told: Set<String> = []
        let client = kafka.client(id: "carillon")
        for problem in signIn.problems + client.problems(for: .consumer) + client.problems(for: .producer)
        where told.insert(problem.key).inserted {
            // A library without OIDC refuses each of its options, for one reason.
            if signIn.lacksOIDC, signIn.isOfOIDC(problem.key), !told.insert("OIDC").inserted { continue }
            problems.add(mark(problem), name(problem) + problem.why)
        }
        for warning in signIn.warnings { problems.warn(mark(warning), name(warning) + warning.why) }
        return kafka
    }

    private func topics(_ kafka: Section, _ topics: inout Configuration.Topics) {
        let section = kafka.optionalSection("topics", keys: topics.all.map(\.key))
        func take(_ key: String, _ name: inout String) {
            guard let text = section.string(key), let node = section[key] else { return }
            // Kafka's rule for topic names.
            let isName =
                text.utf8.count <= 249 && text.utf8.allSatisfy(Self.isTopicByte) && text != "." && text != ".."
            if isName {
                name = text
            } else {
                problems.add(node.mark, "\(section.name(key)) must be letters, digits, dots, _ and -, at most 249")
            }
        }
        take("events", &topics.events)
        take("user_state", &topics.userState)
        take("chunks", &topics.chunks)
        take("parked", &topics.parked)
        take("deliveries", &topics.deliveries)
        take("results", &topics.results)
        take("feedback", &topics.feedback)
        take("sms", &topics.sms)
        take("dead_letter", &topics.deadLetter)
        take("state_results", &topics.stateResults)
        var keyOf: [String: String] = [:]
        for (key, name) in topics.all {
            if let other = keyOf.updateValue(key, forKey: name) {
                let mark = section[key]?.mark ?? section[other]?.mark ?? section.mark
                problems.add(mark, "kafka.topics.\(other) and \(key) name the same topic, \(name)")
            }
        }
    }

    private static func isTopicByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    private func options(
        _ kafka: Section, _ options: inout [String: String], _ marks: inout [String: YAMLNode.Mark?]
    ) {
        let section = kafka.optionalSection("options", keys: nil)
        for entry in section.all {
            guard case .scalar(let value, _) = entry.value.value else {
                problems.add(entry.value.mark, "\(section.name(entry.key)) must be a text or a number")
                continue
            }
            // More people read a file than a process's environment.
            if Self.isSecret(entry.key), entry.value.mark.line > 0 {
                problems.add(
                    entry.keyMark,
                    "kafka.options.\(entry.key) is a secret: name a file that holds it in kafka.secret_files")
                continue
            }
            options[entry.key] = value
            marks[entry.key] = entry.keyMark
            if ["ssl.key.location", "ssl.keystore.location"].contains(entry.key) {
                secrets.add(value, entry.value.mark)
            }
        }
        let secretFiles = kafka.optionalSection("secret_files", keys: nil)
        for entry in secretFiles.all {
            guard let path = secretFiles.string(entry.key) else { continue }
            if options[entry.key] != nil {
                problems.add(entry.keyMark, "\(entry.key) is in kafka.options too")
                continue
            }
            guard let value = secret(path, entry.value.mark) else { continue }
            // librdkafka keeps its own copy as long as its clients live.
            options[entry.key] = value.text
            marks[entry.key] = entry.keyMark
        }
    }

    static func isSecret(_ key: String) -> Bool {
        ["password", "secret", "ssl.key.pem", "sasl.oauthbearer.config"].contains { key.contains($0) }
    }

    private static let redisKeys = [
        "url", "user", "password_file", "certificate_file", "key_file", "sentinel", "timeout_ms",
    ]

    /// The parts that URLs omit, so that they need no secret.
    private struct Login {
        var user: String?
        var password: Secret?
        /// Where the password was read.
        var file: String?
        var identity: RedisIdentity?
    }

    func redis(_ root: Section) -> Configuration.RedisSection {
        let nowhere = Configuration.RedisSection(topology: .cluster([]))
        guard let section = root.section("redis", keys: Self.redisKeys) else {
            problems.add(root.mark, "redis is missing; it needs a url at least")
            return nowhere
        }
        let password = section.string("password_file").flatMap { path in
            secret(path, section["password_file"]?.mark ?? section.mark)
        }
        let login = Login(
            user: section.string("user"), password: password, file: section.string("password_file"),
            identity: identity(section))
        if login.user != nil, section["password_file"] == nil {
            problems.add(section["user"]?.mark ?? section.mark, "redis.user needs redis.password_file")
        }
        var redis = Configuration.RedisSection(topology: topology(section, login) ?? nowhere.topology)
        if login.identity != nil, redis.topology.endpoints.contains(where: { !$0.usesTLS }) {
            problems.add(
                section["certificate_file"]?.mark ?? section.mark,
                "redis.certificate_file has no effect without rediss://")
        }
        if let timeout = section.int("timeout_ms", in: 10...60_000) { redis.timeoutMs = timeout }
        return redis
    }

    /// The client's certificate, read and checked; nil for none.
    private func identity(_ redis: Section) -> RedisIdentity? {
        let files = (redis.string("certificate_file"), redis.string("key_file"))
        guard let mark = (redis["certificate_file"] ?? redis["key_file"])?.mark else { return nil }
        guard let certificate = files.0, let key = files.1 else {
            problems.add(mark, "redis.certificate_file and redis.key_file need each other")
            return nil
        }
        secrets.add(key, redis["key_file"]?.mark ?? mark)
        let identity = RedisIdentity(certificateFile: certificate, keyFile: key)
        do {
            if try identity.read().validUntilSeconds() <= Loop.wallMs() / 1000 {
                problems.add(mark, "redis.certificate_file: \(certificate): the certificate has ended")
            }
        } catch {
            problems.add(mark, "redis.certificate_file: \(error.description)")
        }
        return identity
    }

    private func topology(_ section: Section, _ login: Login) -> RedisTopology? {
        if let sentinel = section.section("sentinel", keys: Self.sentinelKeys) {
            if let url = section["url"] {
                problems.add(url.mark, "redis.url and redis.sentinel: give one of the two")
            }
            return self.sentinel(sentinel, login)
        }
        guard let url = section["url"] else {
            problems.add(section.mark, "redis.url is missing")
            return nil
        }
        let endpoints = section.strings("url").compactMap { endpoint($0.text, $0.mark, login) }
        guard case .sequence = url.value else { return endpoints.first.map { .single($0) } }
        checkNodes(endpoints, url.mark, "redis.url")
        return .cluster(endpoints)
    }

    private static let sentinelKeys = ["master", "nodes", "user", "password_file"]

    /// The Sentinels' login is also the master's if redis.user and redis.password_file name none.
    private func sentinel(_ section: Section, _ login: Login) -> RedisTopology? {
        let password = section.string("password_file").flatMap { path in
            secret(path, section["password_file"]?.mark ?? section.mark)
        }
        let own = Login(
            user: section.string("user"), password: password, file: section.string("password_file"),
            identity: login.identity)
        if own.user != nil, section["password_file"] == nil {
            problems.add(
                section["user"]?.mark ?? section.mark, "redis.sentinel.user needs redis.sentinel.password_file")
        }
        let nodes = section.strings("nodes").compactMap { node -> RedisEndpoint? in
            let text = node.text.contains("://") ? node.text : "redis://\(node.text)"
            return endpoint(text, node.mark, own, "redis.sentinel.nodes")
        }
        checkNodes(nodes, section["nodes"]?.mark ?? section.mark, "redis.sentinel.nodes")
        guard let master = section.requiredString("master"), let first = nodes.first else { return nil }
        var server = first
        server.user = login.password == nil ? own.user : login.user
        server.password = login.password ?? own.password
        server.passwordFile = login.password == nil ? own.file : login.file
        return .sentinel(RedisSentinels(masterName: master, nodes: nodes, master: server))
    }

    /// All nodes use one kind of address, because they report others only by address.
    private func checkNodes(_ nodes: [RedisEndpoint], _ mark: YAMLNode.Mark, _ name: String) {
        guard let first = nodes.first else { return problems.add(mark, "\(name) names no node") }
        for node in nodes {
            if case .unix = node.address {
                problems.add(mark, "\(name): a node is reached by redis:// or rediss://, not by a unix socket")
            } else if node.database != 0 {
                problems.add(mark, "\(name): only database 0 exists here")
            } else if node.usesTLS != first.usesTLS || node.caFile != first.caFile {
                problems.add(mark, "\(name): all nodes are reached by TLS with the same ca_file, or none is")
            } else {
                continue
            }
            return
        }
    }

    private func endpoint(
        _ url: String, _ mark: YAMLNode.Mark, _ login: Login, _ name: String = "redis.url"
    ) -> RedisEndpoint? {
        do {
            var endpoint = try RedisEndpoint(url: url)
            if endpoint.password != nil, mark.line > 0 {
                problems.add(
                    mark, "\(name) holds a password: name a file that holds it as redis.password_file")
            }
            endpoint.identity = login.identity
            if let user = login.user { endpoint.user = user }
            if let password = login.password {
                endpoint.password = password
                endpoint.passwordFile = login.file
            }
            return endpoint
        } catch {
            problems.add(mark, "\(name): \(error.description)")
            return nil
        }
    }
}

extension Configuration.KafkaSection {
    /// The options that are secrets.
    package var secrets: [String: String] { options.filter { ConfigurationReader.isSecret($0.key) } }
}

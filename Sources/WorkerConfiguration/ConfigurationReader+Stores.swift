// SPDX-License-Identifier: Apache-2.0
import Kafka
import Redis
import Telemetry
import YAML

extension ConfigurationReader {
    func kafka(_ root: Section) -> Configuration.KafkaSection {
        guard
            let section = root.section("kafka", keys: ["brokers", "group", "topics", "options", "secret_files"])
        else {
            problems.add(root.mark, "kafka is missing; it needs brokers at least")
            return Configuration.KafkaSection(brokers: "")
        }
        var kafka = Configuration.KafkaSection(brokers: section.requiredString("brokers") ?? "")
        if let group = section.string("group") { kafka.group = group }
        topics(section, &kafka.topics)
        var marks = ["brokers": section["brokers"]?.mark, "group": section["group"]?.mark]
        options(section, &kafka.options, &marks)
        guard !kafka.brokers.isEmpty else { return kafka }
        var told: Set<String> = []
        let client = kafka.client(id: "carillon")
        for problem in client.problems(for: .consumer) + client.problems(for: .producer)
        where told.insert(problem.key).inserted {
            let name = kafka.options[problem.key] == nil ? problem.key : "options.\(problem.key)"
            problems.add((marks[problem.key] ?? nil) ?? section.mark, "kafka.\(name): \(problem.why)")
        }
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

    private static let redisKeys = ["url", "user", "password_file", "sentinel", "timeout_ms"]

    /// The parts that URLs omit, so that they need no secret.
    private struct Login {
        var user: String?
        var password: Secret?
        /// Where the password was read.
        var file: String?
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
        let login = Login(user: section.string("user"), password: password, file: section.string("password_file"))
        if login.user != nil, section["password_file"] == nil {
            problems.add(section["user"]?.mark ?? section.mark, "redis.user needs redis.password_file")
        }
        var redis = Configuration.RedisSection(topology: topology(section, login) ?? nowhere.topology)
        if let timeout = section.int("timeout_ms", in: 10...60_000) { redis.timeoutMs = timeout }
        return redis
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
        let own = Login(user: section.string("user"), password: password, file: section.string("password_file"))
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

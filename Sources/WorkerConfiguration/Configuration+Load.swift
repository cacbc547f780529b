// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import PushCore
import Telemetry
import YAML

extension Configuration {
    /// Reads the file, applies the environment's `CARILLON__…` variables on top, and checks everything.
    ///
    /// Also reads the named template and secret files, except credentials, which ``Credential/load()`` reads. Paths are
    /// relative to the working directory. Blocks on the disk: for start and commands only.
    public static func load(
        path: String, environment: [String: String] = processEnvironment()
    ) -> Result<Configuration, ConfigurationProblems> {
        switch SmallFile.read(path) {
        case .unreadable(let why):
            return .failure(ConfigurationProblems(problems: [Problem(source: path, line: nil, text: why)]))
        case .bytes(let bytes):
            return read(bytes, source: path, environment: environment)
        }
    }

    /// ``load(path:environment:)`` for a given text. `source` names it in problems.
    public static func read(
        _ bytes: [UInt8], source: String, environment: [String: String] = [:]
    ) -> Result<Configuration, ConfigurationProblems> {
        let problems = ProblemList()
        do {
            let document = try YAMLDocument(parsing: bytes, source: source)
            for (key, mark) in document.repeatedKeys { problems.add(mark, "key \"\(key)\" is repeated") }
            let root = EnvironmentOverlay(problems: problems).apply(environment, to: document.root)
            let reader = ConfigurationReader(problems: problems, secrets: SecretFileList())
            if let configuration = reader.read(root), problems.problems.isEmpty { return .success(configuration) }
        } catch {
            problems.add(error.mark, error.text)
        }
        return .failure(ConfigurationProblems(problems: problems.sorted))
    }

    /// The environment of this process at its start.
    public static func processEnvironment() -> [String: String] {
        guard case .bytes(let bytes) = SmallFile.read("/proc/self/environ", limit: 8 << 20) else { return [:] }
        var environment: [String: String] = [:]
        for entry in bytes.split(separator: 0) {
            guard let equals = entry.firstIndex(of: UInt8(ascii: "=")) else { continue }
            let name = String(decoding: entry[..<equals], as: UTF8.self)
            environment[name] = String(decoding: entry[entry.index(after: equals)...], as: UTF8.self)
        }
        return environment
    }
}

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
        let section = root.optionalSection("http", keys: ["listen", "hosts", "token_file"])
        listen(section, &http)
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
}

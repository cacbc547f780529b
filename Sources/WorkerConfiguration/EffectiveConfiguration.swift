// SPDX-License-Identifier: Apache-2.0
import Crypto
import Digits
import JSON
import Telemetry
import YAML

extension Configuration {
    /// The effective values: the file, overridden by environment variables, completed by defaults. Contains no secret.
    ///
    /// Reports the problems of ``load(path:environment:)``.
    public static func effective(
        path: String, environment: [String: String] = processEnvironment()
    ) -> Result<EffectiveConfiguration, ConfigurationProblems> {
        switch SmallFile.read(path) {
        case .unreadable(let why):
            return .failure(ConfigurationProblems(problems: [Problem(source: path, line: nil, text: why)]))
        case .bytes(let bytes):
            return effective(bytes, source: path, environment: environment)
        }
    }

    /// ``effective(path:environment:)`` for a given text.
    public static func effective(
        _ bytes: [UInt8], source: String, environment: [String: String] = [:]
    ) -> Result<EffectiveConfiguration, ConfigurationProblems> {
        if case .failure(let problems) = read(bytes, source: source, environment: environment) {
            return .failure(problems)
        }
        let problems = ProblemList()
        do {
            let root = try YAMLDocument(parsing: bytes, source: source).root
            return .success(
                try EffectiveConfiguration(EnvironmentOverlay(problems: problems).apply(environment, to: root)))
        } catch {
            problems.add(error.mark, error.text)
            return .failure(ConfigurationProblems(problems: problems.sorted))
        }
    }
}

/// Every key of a configuration with its value and the value's source.
public struct EffectiveConfiguration: Sendable {
    private let root: YAMLNode
    private static let fallback = "default"
    private static let hidden = "(secret)"

    /// - Parameter root: the checked file with the environment applied.
    init(_ root: YAMLNode) throws(YAMLFault) {
        let fallback = try Self.tree(Self.defaults)
        let app = try Self.tree(Self.appDefaults)
        var root = Self.complete(root, with: fallback)
        for (section, keys) in Section.removed {
            root = Self.changing(root, at: [section]) { Self.without(keys.keys, $0) }
        }
        root = Self.changing(root, at: ["apps"]) { apps in
            guard case .sequence(let items) = apps.value else { return apps }
            return YAMLNode(.sequence(items.map { Self.complete($0, with: app) }), mark: apps.mark)
        }
        root = Self.changing(root, at: ["kafka", "options"], Self.withoutSecrets)
        root = Self.changing(root, at: ["redis", "url"], Self.withoutPassword)
        root = Self.changing(root, at: ["redis", "sentinel", "nodes"], Self.withoutPassword)
        self.root = root
    }

    // MARK: - Defaults

    /// Keys with a default, and those of `Configuration.App` below. Tests compare them with the types' own defaults.
    private static let defaults = """
        kafka:
          group: carillon
          topics:
            events: im.events
            user_state: im.user-state
            chunks: carillon.chunks
            parked: carillon.parked
            deliveries: im.deliveries
            results: push.results
            feedback: push.feedback
            sms: push.sms
            dead_letter: push.dead-letter
            state_results: push.state-results
          traceparent: false
          options: {}
          secret_files: {}
        redis: { timeout_ms: 2000 }
        results: all
        state_results: false
        token_loss: stop
        planner: { direct_max: 2000 }
        lanes: { urgent: 10, direct: 45, group: 25, bulk: 15, silent: 5 }
        trace: { sample: 1, ttl_h: 72 }
        stats: { days: 31 }
        http: { listen: "127.0.0.1:9464", hosts: [] }
        waivers: []
        shards: 0
        log: { level: info }
        window: { records: 20000, bytes: 67108864 }
        drain_s: 25
        """
    private static let appDefaults = """
        environment: production
        endpoint: { production: "https://api.push.apple.com:443", sandbox: "https://api.sandbox.push.apple.com:443" }
        profile: nim
        strategy: 1
        default_levels: {}
        dnd_mode: independent
        force_overrides_dnd: false
        dnd_digest: false
        clear_on_read: false
        title: none
        prefix: "{nick}: "
        badge_cap: 0
        badge: server
        communication: false
        default_language: zh-Hans
        default_tz: Asia/Shanghai
        coalesce: { window_s: 0 }
        limits:
          rate: 0
          in_flight: 2000
          connections: 16
          answer_s: 5
          unknown_tries: 2
          background_per_hour: 0
          share: 0.5
          removals: { window_s: 300, minimum: 50, share: 0.3, cool_down_s: 600 }
          suspects: { silent_d: 60, unconfirmed_s: 0 }
        """

    private static func tree(_ text: String) throws(YAMLFault) -> YAMLNode {
        try YAMLDocument(parsing: Array(text.utf8), source: fallback).root
    }

    /// The depth of the defaults bounds the recursion.
    private static func complete(_ node: YAMLNode, with defaults: YAMLNode) -> YAMLNode {
        if node.isNull { return defaults }
        guard case .mapping(var entries) = node.value, case .mapping(let known) = defaults.value else { return node }
        for entry in known {
            if let index = entries.firstIndex(where: { $0.key == entry.key }) {
                entries[index].value = complete(entries[index].value, with: entry.value)
            } else {
                entries.append(entry)
            }
        }
        return YAMLNode(.mapping(entries), mark: node.mark)
    }

    // MARK: - Secrets

    private static func changing(
        _ node: YAMLNode, at path: [String], _ change: (YAMLNode) -> YAMLNode
    ) -> YAMLNode {
        guard let key = path.first else { return change(node) }
        guard case .mapping(var entries) = node.value, let index = entries.firstIndex(where: { $0.key == key }) else {
            return node
        }
        entries[index].value = changing(entries[index].value, at: Array(path.dropFirst()), change)
        return YAMLNode(.mapping(entries), mark: node.mark)
    }

    private static func without(_ keys: some Collection<String>, _ node: YAMLNode) -> YAMLNode {
        guard case .mapping(let entries) = node.value else { return node }
        return YAMLNode(.mapping(entries.filter { !keys.contains($0.key) }), mark: node.mark)
    }

    private static func withoutSecrets(_ options: YAMLNode) -> YAMLNode {
        guard case .mapping(var entries) = options.value else { return options }
        for index in entries.indices where ConfigurationReader.isSecret(entries[index].key) {
            entries[index].value.value = .scalar(hidden, quoted: true)
        }
        return YAMLNode(.mapping(entries), mark: options.mark)
    }

    /// The text before the last `@` of a URL's authority is a login.
    private static func withoutPassword(_ node: YAMLNode) -> YAMLNode {
        switch node.value {
        case .mapping: return node
        case .sequence(let items): return YAMLNode(.sequence(items.map(withoutPassword)), mark: node.mark)
        case .scalar(let text, _):
            guard let scheme = text.firstRange(of: "://") else { return node }
            let rest = text[scheme.upperBound...]
            let authority = rest.prefix { $0 != "/" }
            guard let at = authority.lastIndex(of: "@"), let colon = authority[..<at].firstIndex(of: ":") else {
                return node
            }
            let shown = "\(text[..<scheme.upperBound])\(authority[..<colon]):\(hidden)\(rest[at...])"
            return YAMLNode(.scalar(shown, quoted: true), mark: node.mark)
        }
    }

    // MARK: - Text

    /// YAML that can be read as a configuration again, unless a secret was hidden. Each value has its source as a
    /// comment.
    public var text: String {
        var text = "# carillon_config_info{hash=\"\(values.hash)\"}\n"
        Self.write(root, indent: 0, to: &text)
        return text
    }

    private static func write(_ node: YAMLNode, indent: Int, to text: inout String) {
        let margin = String(repeating: "  ", count: indent)
        switch node.value {
        case .scalar: text += margin + scalar(node) + "\n"
        case .sequence(let items):
            for item in items {
                var block = ""
                write(item, indent: indent + 1, to: &block)
                text += "\(margin)- \(block.dropFirst(margin.count + 2))"
            }
        case .mapping(let entries):
            for entry in entries {
                text += "\(margin)\(word(entry.key, isPlain: true)):"
                if let line = inline(entry.value) {
                    text += " \(line)  # \(place(entry.value.mark))\n"
                } else {
                    text += "\n"
                    write(entry.value, indent: indent + 1, to: &text)
                }
            }
        }
    }

    /// A value that fits on the line of its key; nil if it needs its own lines.
    private static func inline(_ node: YAMLNode) -> String? {
        switch node.value {
        case .scalar: return scalar(node)
        case .mapping(let entries): return entries.isEmpty ? "{}" : nil
        case .sequence(let items):
            let words = items.map { item -> String? in
                guard case .scalar = item.value else { return nil }
                return scalar(item)
            }
            return words.contains(nil) ? nil : "[\(words.compactMap { $0 }.joined(separator: ", "))]"
        }
    }

    private static func place(_ mark: YAMLNode.Mark) -> String {
        if mark.source == fallback { return fallback }
        return mark.line > 0 ? "\(mark.source):\(mark.line)" : mark.source
    }

    private static func scalar(_ node: YAMLNode) -> String {
        guard case .scalar(let text, let isQuoted) = node.value else { return "" }
        return word(text, isPlain: !isQuoted)
    }

    /// Plain if YAML cannot read it as anything else; otherwise in JSON quotes, which YAML accepts.
    private static func word(_ text: String, isPlain: Bool) -> String {
        let isSafe = !text.isEmpty && text.utf8.allSatisfy(isPlainByte)
        let isTyped = Double(text) != nil || ["true", "false", "null"].contains(text)
        if isSafe, isTyped ? isPlain : text.utf8.first != UInt8(ascii: "-") { return text }
        var writer = JSONWriter()
        writer.string(text)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private static func isPlainByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"),
            UInt8(ascii: "/"):
            true
        default: false
        }
    }

    // MARK: - Values

    /// One key, of the whole configuration or of an app.
    public struct Key: Hashable, Comparable, Sendable, CustomStringConvertible {
        /// The app's id.
        public var app: String?
        /// For example `limits.rate`.
        public var path: String

        public static func < (one: Key, other: Key) -> Bool {
            (one.app ?? "", one.path) < (other.app ?? "", other.path)
        }

        public var description: String { app.map { "apps[\($0)].\(path)" } ?? path }
    }

    /// Values as texts, by key. A list is one value; secrets are left out.
    public struct Values: Sendable {
        private var texts: [Key: String] = [:]

        package init() {}

        package var keys: Set<Key> { Set(texts.keys) }

        package subscript(key: Key) -> String? {
            get { texts[key] }
            set { texts[key] = newValue }
        }

        /// Twelve hexadecimal digits that show which workers run with equal values.
        public var hash: String {
            let lines = texts.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)\n" }.joined()
            return Hex.string(SHA256.hash(Array(lines.utf8)).prefix(6))
        }
    }

    public var values: Values {
        var values = Values()
        guard case .mapping(let entries) = root.value else { return values }
        for entry in entries {
            guard entry.key == "apps", case .sequence(let apps) = entry.value.value else {
                Self.collect(entry.value, app: nil, path: entry.key, into: &values)
                continue
            }
            for app in apps {
                guard case .scalar(let id, _)? = app["id"]?.value, case .mapping(let own) = app.value else { continue }
                for entry in own { Self.collect(entry.value, app: id, path: entry.key, into: &values) }
            }
        }
        return values
    }

    private static func collect(_ node: YAMLNode, app: String?, path: String, into values: inout Values) {
        if case .mapping(let entries) = node.value, !entries.isEmpty {
            for entry in entries { collect(entry.value, app: app, path: "\(path).\(entry.key)", into: &values) }
        } else {
            values[Key(app: app, path: path)] = inline(node) ?? ""
        }
    }

    // MARK: - JSON

    /// The same as one JSON object, without sources.
    public var json: String {
        var writer = JSONWriter(reservingCapacity: 4096)
        Self.write(root, to: &writer)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    private static func write(_ node: YAMLNode, to writer: inout JSONWriter) {
        switch node.value {
        case .mapping(let entries):
            writer.beginObject()
            for entry in entries {
                writer.key(escaping: entry.key)
                write(entry.value, to: &writer)
            }
            writer.endObject()
        case .sequence(let items):
            writer.beginArray()
            for item in items { write(item, to: &writer) }
            writer.endArray()
        case .scalar(let text, let isQuoted):
            if isQuoted { return writer.string(text) }
            if let number = Int64(text) { return writer.int(number) }
            if let number = Double(text), number.isFinite { return writer.double(number) }
            if text == "true" || text == "false" { return writer.bool(text == "true") }
            if node.isNull { return writer.null() }
            writer.string(text)
        }
    }
}

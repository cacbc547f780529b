// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import EventLoop
import Payload
import PushCore
import Telemetry
import YAML

extension ConfigurationReader {
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
}

// SPDX-License-Identifier: Apache-2.0
public import APNsProtocol
import Digits
import EventLoop
import HTTP2
import JSON
import Telemetry

/// The deviations from ordinary answers: a list of rules, read from a JSON file.
///
/// Rules apply in order, and only to requests that pass Apple's checks. The first match decides; without a match the
/// push is accepted. The seed makes random shares repeatable.
///
/// ```json
/// {
///   "seed": 7,
///   "goaway_after_requests": 10000,
///   "connection": {"rtt_ms": 80, "token_throttle": {"scope": "key"}},
///   "on_connect": [{"match": {"every": 10}, "fault": {"kind": "goaway", "reason": "Shutdown"}}],
///   "settings": [{"after_s": 5, "max_concurrent_streams": 1}, {"after_s": 8, "max_concurrent_streams": 1000}],
///   "rules": [
///     {"match": {"token": "dead"}, "answer": {"status": 410, "reason": "Unregistered", "timestamp": 1700000000000}},
///     {"match": {"share": 0.05, "count": 100}, "answer": {"status": 503, "reason": "ServiceUnavailable"}},
///     {"match": {"push_type": "voip"}, "answer": {"status": 429, "reason": "TooManyRequests", "retry_after": 2}},
///     {"match": {"topic": "com.example.im"}, "answer": {"delay_ms": 40}},
///     {"match": {"after_s": 3, "until_s": 4}, "fault": {"kind": "refuse_stream"}}
///   ]
/// }
/// ```
///
/// `ScenarioManual` lists every key; `Config/simulator.md` explains them.
public struct Scenario: Sendable, Equatable {
    /// A change of SETTINGS at a time.
    public struct SettingsStep: Sendable, Equatable {
        public var afterMs: Int64
        public var maxConcurrentStreams: UInt32

        /// Creates a limit that begins `afterMs` milliseconds after the start.
        public init(afterMs: Int64, maxConcurrentStreams: UInt32) {
            self.afterMs = afterMs
            self.maxConcurrentStreams = maxConcurrentStreams
        }
    }

    /// The request properties that rules examine.
    public struct Subject {
        public var token: ArraySlice<UInt8>
        public var topic: ArraySlice<UInt8>
        public var pushType: PushType
        /// Milliseconds since the simulator's start.
        public var atMs: Int64
        /// The connection's number, from 1.
        public var connection: Int

        /// Creates a subject from all parts.
        public init(
            token: ArraySlice<UInt8>, topic: ArraySlice<UInt8>, pushType: PushType, atMs: Int64, connection: Int = 1
        ) {
            self.token = token
            self.topic = topic
            self.pushType = pushType
            self.atMs = atMs
            self.connection = connection
        }
    }

    public private(set) var rules: [ScenarioRule]
    public private(set) var onConnect: [ScenarioConnectRule]
    public let connection: ScenarioConnection
    public let settings: [SettingsStep]
    public let goAwayAfterRequests: Int?
    public let goAwayEveryMs: Int64?
    private var random: SmallRandom

    /// Creates a scenario from values, for tests.
    public init(
        rules: [ScenarioRule] = [], onConnect: [ScenarioConnectRule] = [],
        connection: ScenarioConnection = ScenarioConnection(), settings: [SettingsStep] = [],
        goAwayAfterRequests: Int? = nil, goAwayEveryMs: Int64? = nil, seed: UInt64 = 1
    ) {
        self.rules = rules
        self.onConnect = onConnect
        self.connection = connection
        self.settings = settings.sorted { $0.afterMs < $1.afterMs }
        self.goAwayAfterRequests = goAwayAfterRequests
        self.goAwayEveryMs = goAwayEveryMs
        random = SmallRandom(seed: seed)
    }

    /// The action for a request that passed all checks; nil accepts it.
    public mutating func action(for subject: Subject) -> ScenarioAction? {
        for index in rules.indices where rules[index].match.holds(subject) {
            if let share = rules[index].match.share, draw() >= share { continue }
            if rules[index].take() { return rules[index].action }
        }
        return nil
    }

    /// The fault of a new connection; nil for normal service.
    public mutating func fault(ofConnection number: Int, atMs: Int64) -> ScenarioConnectRule.Fault? {
        for index in onConnect.indices where onConnect[index].match.holds(connection: number, atMs: atMs) {
            if let share = onConnect[index].match.share, draw() >= share { continue }
            if onConnect[index].match.take(&onConnect[index].seen) { return onConnect[index].fault }
        }
        return nil
    }

    /// The next random number in 0 ..< 1.
    private mutating func draw() -> Double { Double(random.next() >> 11) * 0x1p-53 }

    // MARK: Reading

    /// Reads a scenario. The fault lists every problem of the file, unknown keys included.
    public init(json: [UInt8]) throws(ScenarioFault) {
        let tree: JSONTree
        do {
            tree = try JSONTree(parsing: json, maxBytes: 1 << 20)
        } catch {
            throw ScenarioFault(problems: ["the scenario is not JSON: \(error)"])
        }
        var reader = ScenarioReader()
        let scenario = reader.scenario(tree)
        guard reader.problems.isEmpty else { throw ScenarioFault(problems: reader.report) }
        self = scenario
    }
}

/// Turns a JSON tree into rules and collects the problems.
private struct ScenarioReader {
    private(set) var problems: [String] = []
    /// Number of problems beyond those that are kept.
    private var more = 0

    private static let problemsMax = 100
    /// Maximum of a GOAWAY's reason: it fits into a frame even if each byte is escaped.
    private static let reasonBytesMax = 1024
    /// Longer than any simulator runs; the limit for ``milliseconds(_:_:_:)``.
    private static let msEnd: Int64 = 1_000_000_000_000

    /// The problems, for people.
    var report: [String] { more == 0 ? problems : problems + ["scenario: \(more) more problems"] }

    private mutating func note(_ problem: String) {
        if problems.count < Self.problemsMax { problems.append(problem) } else { more += 1 }
    }

    /// A word of the file for a problem's line: its beginning, with unprintable characters escaped.
    private static func shown(_ word: String) -> String {
        let isLong = word.utf8.count > 64
        let part = isLong ? String(decoding: word.utf8.prefix(64), as: UTF8.self) : word
        return Unprintable.escaped(part) + (isLong ? "…" : "")
    }

    mutating func scenario(_ tree: JSONTree) -> Scenario {
        check(tree, "scenario", "scenario")
        var steps: [Scenario.SettingsStep] = []
        for (index, step) in (array(tree, "settings", "scenario")).enumerated() {
            let place = "settings[\(index)]"
            check(step, place, "settings")
            steps.append(
                Scenario.SettingsStep(
                    afterMs: milliseconds(step, "after_s", place) ?? 0,
                    maxConcurrentStreams: UInt32(clamping: integer(step, "max_concurrent_streams", place) ?? 1000)))
        }
        var rules: [ScenarioRule] = []
        for (index, rule) in (array(tree, "rules", "scenario")).enumerated() {
            rules.append(self.rule(rule, "rules[\(index)]"))
        }
        var onConnect: [ScenarioConnectRule] = []
        for (index, rule) in (array(tree, "on_connect", "scenario")).enumerated() {
            onConnect.append(connectRule(rule, "on_connect[\(index)]"))
        }
        return Scenario(
            rules: rules, onConnect: onConnect,
            connection: tree["connection"].map { connection($0) } ?? ScenarioConnection(), settings: steps,
            goAwayAfterRequests: integer(tree, "goaway_after_requests", "scenario").map { Int(clamping: $0) },
            goAwayEveryMs: milliseconds(tree, "goaway_every_s", "scenario").map { max(1, $0) },
            seed: UInt64(bitPattern: integer(tree, "seed", "scenario") ?? 1))
    }

    private mutating func connection(_ tree: JSONTree) -> ScenarioConnection {
        let place = "connection"
        check(tree, place, "connection")
        var terms = ScenarioConnection()
        terms.roundTripMs = wholeMs(tree, "rtt_ms", place) ?? 0
        if let window = integer(tree, "window", place) {
            // A smaller window cannot be announced (RFC 9113 section 6.9.2).
            if window < 65_535 { note("\(place).window: 65535 or more is required") }
            terms.windowBytes = Int32(clamping: window)
        }
        terms.returnsWindow = flag(tree, "returns_window", place) ?? true
        terms.streams = integer(tree, "streams", place).map { UInt32(clamping: $0) }
        terms.streamsAtStart = integer(tree, "streams_at_start", place).map { UInt32(clamping: $0) }
        terms.shrinksOnRejection = flag(tree, "shrink_on_rejection", place)
        terms.headerTableBytes = integer(tree, "header_table", place).map { UInt32(clamping: $0) } ?? 4096
        terms.tokenThrottle = tree["token_throttle"].map { throttle($0, place + ".token_throttle") }
        return terms
    }

    private mutating func throttle(_ tree: JSONTree, _ place: String) -> ScenarioConnection.TokenThrottle {
        check(tree, place, "token_throttle")
        let scope = ScenarioConnection.TokenThrottle.Scope(rawValue: string(tree, "scope", place) ?? "")
        if scope == nil { note("\(place).scope: connection or key is required") }
        return ScenarioConnection.TokenThrottle(
            scope ?? .key, minMs: milliseconds(tree, "min_s", place) ?? 1_200_000,
            wedges: flag(tree, "wedge", place) ?? false)
    }

    private mutating func rule(_ tree: JSONTree, _ place: String) -> ScenarioRule {
        check(tree, place, "rule")
        let match = tree["match"].map { self.match($0, place + ".match", "match") } ?? ScenarioRule.Match()
        switch (tree["answer"], tree["fault"]) {
        case (let answer?, nil): return ScenarioRule(match, .answer(self.answer(answer, place + ".answer")))
        case (nil, let fault?): return ScenarioRule(match, self.fault(fault, place + ".fault"))
        default:
            note("\(place): one of 'answer' and 'fault' is required")
            return ScenarioRule(match, .close)
        }
    }

    private mutating func connectRule(_ tree: JSONTree, _ place: String) -> ScenarioConnectRule {
        check(tree, place, "on_connect rule")
        let match = tree["match"].map { self.match($0, place + ".match", "on_connect match") } ?? ScenarioRule.Match()
        guard let fault = tree["fault"] else {
            note("\(place): a 'fault' is required")
            return ScenarioConnectRule(match, .close)
        }
        return ScenarioConnectRule(match, connectFault(fault, place + ".fault"))
    }

    private mutating func match(_ tree: JSONTree, _ place: String, _ keys: String) -> ScenarioRule.Match {
        check(tree, place, keys)
        var match = ScenarioRule.Match()
        match.tokenPrefix = Array((string(tree, "token", place) ?? "").utf8)
        match.topic = string(tree, "topic", place).map { Array($0.utf8) }
        if let type = string(tree, "push_type", place) {
            match.pushType = PushType(rawValue: type)
            if match.pushType == nil { note("\(place).push_type: no push type is called '\(Self.shown(type))'") }
        }
        if let share = tree["share"] {
            match.share = share.double
            if !(match.share.map { (0...1).contains($0) } ?? false) {
                note("\(place).share: a number from 0 to 1 is required")
            }
        }
        match.connection = integer(tree, "connection", place).map { Int(clamping: $0) }
        match.every = max(1, Int(clamping: integer(tree, "every", place) ?? 1))
        match.skip = Int(clamping: integer(tree, "skip", place) ?? 0)
        match.count = Int(clamping: integer(tree, "count", place) ?? .max)
        match.afterMs = milliseconds(tree, "after_s", place) ?? 0
        match.untilMs = milliseconds(tree, "until_s", place) ?? .max
        return match
    }

    private mutating func answer(_ tree: JSONTree, _ place: String) -> ScenarioAnswer {
        check(tree, place, "answer")
        var answer = ScenarioAnswer()
        answer.status = Int(clamping: integer(tree, "status", place) ?? 200)
        if !(200...599).contains(answer.status) { note("\(place).status: 200 to 599 is required") }
        answer.reason = string(tree, "reason", place)
        answer.timestampMs = integer(tree, "timestamp", place)
        answer.retryAfterSeconds = integer(tree, "retry_after", place).map { Int(clamping: $0) }
        answer.retryAfterIsDate = flag(tree, "retry_after_date", place) ?? false
        answer.delayMs = wholeMs(tree, "delay_ms", place) ?? 0
        answer.splitBytes = integer(tree, "split_bytes", place).map { max(1, Int(clamping: $0)) }
        if let bytes = integer(tree, "body_bytes", place) {
            // A test client may have to endure large bodies, but the simulator keeps the whole body in memory.
            if bytes > 64 << 20 { note("\(place).body_bytes: at most 64 MiB are sent") }
            answer.body = .padded(Int(clamping: min(bytes, 64 << 20)))
        }
        if let body = string(tree, "body", place) { answer.body = .raw(Array(body.utf8)) }
        return answer
    }

    private mutating func fault(_ tree: JSONTree, _ place: String) -> ScenarioAction {
        guard checkFault(tree, place, "fault") else { return .close }
        switch string(tree, "kind", place) ?? "" {
        case "refuse_stream": return .reset(.refusedStream)
        case "reset": return .reset(code(tree, place) ?? .internalError)
        case "goaway":
            let last = word(tree, "last", place, ["none", "before", "this"], "before")
            return .goAway(
                last: ScenarioAction.GoAwayLast(rawValue: last) ?? .before, code: code(tree, place) ?? .noError,
                reason: reason(tree, place), isTwice: flag(tree, "twice", place) ?? false)
        case "close":
            switch word(tree, "how", place, ["clean", "record", "reset"], "clean") {
            case "record": return .breakOff(.midRecord)
            case "reset": return .breakOff(.reset)
            default: return .close
            }
        case "freeze":
            let scope = word(tree, "scope", place, ["connection", "stream"], "connection")
            return scope == "stream" ? .freezeStream : .freezeConnection
        case "drip":
            return .drip(
                bytes: max(1, Int(clamping: integer(tree, "bytes", place) ?? 1)),
                everyMs: max(1, wholeMs(tree, "every_ms", place) ?? 50))
        case "flood":
            let frame = word(tree, "frame", place, ["settings", "ping"], "ping")
            return .flood(
                ScenarioAction.FloodFrame(rawValue: frame) ?? .ping,
                count: Int(clamping: min(integer(tree, "count", place) ?? 1000, 1_000_000)))
        default: return .bytes(hex(tree, place))
        }
    }

    private mutating func connectFault(_ tree: JSONTree, _ place: String) -> ScenarioConnectRule.Fault {
        guard checkFault(tree, place, "on_connect fault") else { return .close }
        switch string(tree, "kind", place) ?? "" {
        case "close": return .close
        case "break": return .breakOff
        case "mute": return .mute
        case "goaway":
            return .goAway(code: (code(tree, place) ?? .noError).rawValue, reason: reason(tree, place))
        default: return .bytes(hex(tree, place))
        }
    }

    /// Checks kind and keys of a fault against the manual. Returns false for an unknown kind.
    private mutating func checkFault(_ tree: JSONTree, _ place: String, _ title: String) -> Bool {
        let kind = string(tree, "kind", place) ?? ""
        let kinds = ScenarioManual.all.compactMap { section in
            section.title.hasPrefix(title + " ") ? String(section.title.dropFirst(title.count + 1)) : nil
        }
        guard kinds.contains(kind) else {
            note("\(place).kind: one of \(kinds.joined(separator: ", ")) is required")
            return false
        }
        check(tree, place, title + " " + kind)
        return true
    }

    private mutating func code(_ tree: JSONTree, _ place: String) -> HTTP2ErrorCode? {
        guard let value = tree["code"] else { return nil }
        if let number = value.int, let code = UInt32(exactly: number) { return HTTP2ErrorCode(rawValue: code) }
        let known = (0...13).map { HTTP2ErrorCode(rawValue: $0) }
        if let name = value.string, let code = known.first(where: { $0.description == name }) { return code }
        note("\(place).code: an HTTP/2 error code by name (CANCEL) or number is required")
        return nil
    }

    // MARK: Leaves

    private mutating func check(_ tree: JSONTree, _ place: String, _ title: String) {
        guard let members = tree.members else {
            note("\(place): an object is required")
            return
        }
        let known = ScenarioManual.names(title)
        for member in members where !known.contains(member.key) {
            note("\(place).\(Self.shown(member.key)): unknown key; known are \(known.joined(separator: ", "))")
        }
    }

    private mutating func word(
        _ tree: JSONTree, _ key: String, _ place: String, _ words: [String], _ fallback: String
    ) -> String {
        let word = string(tree, key, place) ?? fallback
        if !words.contains(word) {
            note("\(place).\(key): one of \(words.joined(separator: ", ")) is required")
        }
        return word
    }

    private mutating func flag(_ tree: JSONTree, _ key: String, _ place: String) -> Bool? {
        guard let value = tree[key], value != .null else { return nil }
        if case .bool(let flag) = value { return flag }
        note("\(place).\(key): true or false is required")
        return nil
    }

    private mutating func hex(_ tree: JSONTree, _ place: String) -> [UInt8] {
        let digits = (string(tree, "hex", place) ?? "").utf8.filter { $0 != 0x20 }
        guard let bytes = Hex.bytes(digits), !bytes.isEmpty else {
            note("\(place).hex: an even number of hexadecimal digits is required")
            return []
        }
        return bytes
    }

    /// The text of a GOAWAY's debug bytes.
    private mutating func reason(_ tree: JSONTree, _ place: String) -> String? {
        guard let reason = string(tree, "reason", place) else { return nil }
        if reason.utf8.count > Self.reasonBytesMax {
            note("\(place).reason: at most \(Self.reasonBytesMax) bytes fit into a GOAWAY")
        }
        return reason
    }

    private mutating func array(_ tree: JSONTree, _ key: String, _ place: String) -> [JSONTree] {
        guard let value = tree[key] else { return [] }
        if value.array == nil { note("\(place).\(key): a list is required") }
        return value.array ?? []
    }

    private mutating func string(_ tree: JSONTree, _ key: String, _ place: String) -> String? {
        guard let value = tree[key], value != .null else { return nil }
        if value.string == nil { note("\(place).\(key): a string is required") }
        return value.string
    }

    private mutating func integer(_ tree: JSONTree, _ key: String, _ place: String) -> Int64? {
        guard let value = tree[key], value != .null else { return nil }
        guard let number = value.int, number >= 0 else {
            note("\(place).\(key): a whole number from 0 is required")
            return nil
        }
        return number
    }

    private mutating func wholeMs(_ tree: JSONTree, _ key: String, _ place: String) -> Int64? {
        guard let number = integer(tree, key, place) else { return nil }
        if number >= Self.msEnd { note("\(place).\(key): milliseconds below \(Self.msEnd) are required") }
        return number
    }

    private mutating func milliseconds(_ tree: JSONTree, _ key: String, _ place: String) -> Int64? {
        guard let value = tree[key], value != .null else { return nil }
        guard let seconds = value.double, seconds >= 0, seconds < 1e9 else {
            note("\(place).\(key): seconds from 0 are required")
            return nil
        }
        return Int64(seconds * 1000)
    }
}

// SPDX-License-Identifier: Apache-2.0
public import APNsProtocol
import EventLoop
import HTTP2
import JSON

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
}

// SPDX-License-Identifier: Apache-2.0
public import APNs
import Digits
public import EventLoop
public import Kafka
public import Payload
public import PushCore
public import Redis
public import Telemetry
import YAML

/// All of the operator's settings (contract section 8): a plain value, read once at start.
///
/// The file overrides the defaults, and `CARILLON__…` variables override the file. `Config/carillon.yaml` documents
/// every key. Every queue, wait and window has its bound here.
public struct Configuration: Sendable {
    public var kafka: KafkaSection
    public var redis: RedisSection
    public var apps: [App]
    public var results = Results.all
    /// Results of user-state records go to `kafka.topics.state_results`.
    public var stateResults = false
    /// `token_loss`: whether reading stops when Redis seems to have lost its tokens; otherwise this is only reported.
    public var stopsAtTokenLoss = true
    public var trace = Trace()
    /// How many days the statistics keep a number (`stats.days`).
    public var statisticsDays = 31
    public var http = HTTPSection()
    /// Weak links that the operator accepts; see ``WeakLink``.
    public var waivers: Set<WeakLink.Waiver> = []
    /// Files that only the worker's user should read, in the order of the text.
    public var secretFiles: [SecretFile] = []
    /// Keys without the effect that the operator may expect. They do not prevent a start.
    public var warnings: [Problem] = []
    /// Threads, each with an event loop, group membership and connections of its own; 0 for one per core.
    public var shards = 0
    public var logLevel = Log.Level.info
    public var window = Window()
    public var planner = Planner()
    public var lanes = LaneShares()
    /// Seconds from the stop request until remaining work is handed back.
    public var drainSeconds: Double = 25

    public struct KafkaSection: Sendable {
        public var brokers: String
        public var group = "carillon"
        public var topics = Topics()
        /// librdkafka's own properties, with secret files already read.
        public var options: [String: String] = [:]
        /// `traceparent`: whether that header of events records goes into the records about the event.
        public var readsTraceparents = false

        public init(brokers: String) {
            self.brokers = brokers
        }

        /// The client settings of consumers and producers.
        public func client(id: String, log: KafkaLogSink? = nil) -> KafkaConfiguration {
            var client = KafkaConfiguration(brokers: brokers, group: group, clientID: id, options: options, log: log)
            if let reset = options["auto.offset.reset"] {
                client.offsetReset = reset == "error" ? .error : .earliest
            }
            return client
        }
    }

    /// The names of contract section 1.
    public struct Topics: Sendable, Equatable {
        public var events = "im.events"
        public var userState = "im.user-state"
        public var chunks = "carillon.chunks"
        public var parked = "carillon.parked"
        public var deliveries = "im.deliveries"
        public var results = "push.results"
        public var feedback = "push.feedback"
        public var sms = "push.sms"
        public var deadLetter = "push.dead-letter"
        /// Written only with `state_results`.
        public var stateResults = "push.state-results"

        public init() {}

        /// Each key of `kafka.topics` with its topic.
        public var all: [(key: String, name: String)] {
            [
                ("events", events), ("user_state", userState), ("chunks", chunks), ("parked", parked),
                ("deliveries", deliveries), ("results", results), ("feedback", feedback), ("sms", sms),
                ("dead_letter", deadLetter), ("state_results", stateResults),
            ]
        }
    }

    public struct RedisSection: Sendable {
        public var topology: RedisTopology
        /// Wait for a reply. Then the link is closed, because replies could no longer be matched.
        public var timeoutMs = 2_000

        public init(topology: RedisTopology) {
            self.topology = topology
        }

        /// The limits of a client.
        public var limits: RedisLimits {
            var limits = RedisLimits()
            limits.commandTimeoutNanos = UInt64(timeoutMs) * 1_000_000
            return limits
        }

        /// The server, or the first one named.
        public var endpoint: RedisEndpoint? { topology.first }

        /// Its servers as text without login.
        public var place: String { topology.endpoints.map(\.description).joined(separator: ", ") }
    }

    /// The outcomes that go to `push.results`.
    public enum Results: String, Sendable, CaseIterable {
        case all, failures, none
    }

    /// The reaction when Redis seems to have lost its tokens.
    enum TokenLoss: String {
        case stop, alarm
    }

    /// The data kept for `carillon trace`.
    public struct Trace: Sendable, Equatable {
        /// The fraction of users with full traces, 0-1; 0 keeps none.
        public var sample: Double = 1
        public var ttlHours = 72

        public init() {}
    }

    public struct HTTPSection: Sendable, Equatable {
        public var host = "127.0.0.1"
        /// 0 for a free port.
        public var port: UInt16 = 9464
        /// The address of the page for people, where it is not that of `listen` (`http.url`).
        public var url: String?
        /// Names and token that clients must use.
        public var access = HTTPAccess()

        public init() {}

        /// Whether a text can be a link: of its scheme, without spaces and signs of HTML.
        package static func isAddress(_ text: String) -> Bool {
            (text.hasPrefix("http://") || text.hasPrefix("https://")) && text.utf8.count <= 255
                && text.utf8.allSatisfy { (0x21...0x7E).contains($0) && !#"<>"'\`"#.utf8.contains($0) }
        }

        /// Only this machine can reach it.
        public var isLoopback: Bool { WeakLink.isLoopback(host) }
    }

    /// Maximum unsettled work per partition before it is paused.
    public struct Window: Sendable, Equatable {
        public var records = 20_000
        public var bytes = 64 << 20

        public init() {}
    }

    /// How large groups are divided among workers.
    public struct Planner: Sendable, Equatable {
        /// A group with more members goes to `topics.chunks`.
        public var directMax = 2_000

        public init() {}
    }

    /// One app: its rules for decisions, its credentials, and its limits.
    public struct App: Sendable {
        public var policy: AppPolicy
        /// At least one. The first serves tokens without `cert`.
        public var credentials: [Credential]
        public var endpoints = Endpoints()
        public var templates = Templates()
        public var limits = Limits()
        /// `coalesce.window_s`: alerts of the same conversation within this time after an alert are merged into one
        /// push; 0 for off.
        public var coalesceSeconds: Double = 0
        /// `dnd_digest`: alerts held by DND are merged into one push at their end.
        public var sendsDigest = false
        /// `environment`: for tokens without one.
        public var environment = APNsEnvironment.production

        public init(policy: AppPolicy, credentials: [Credential]) {
            self.policy = policy
            self.credentials = credentials
        }

        /// The length of a burst's window; 0 sends every alert at once.
        package var coalesceNanos: UInt64 { UInt64(coalesceSeconds * 1_000_000_000) }

        /// The credential of a token's `cert`; the first if it has none. Nil for an unknown name.
        public func credential(named name: String?) -> Credential? {
            guard let name else { return credentials.first }
            return credentials.first { $0.name.isSame(as: name) }
        }
    }

    public struct Endpoints: Sendable, Equatable {
        public var production = APNsEndpoint.production
        public var sandbox = APNsEndpoint.sandbox

        public init() {}

        public subscript(environment: APNsEnvironment) -> APNsEndpoint {
            switch environment {
            case .production: production
            case .sandbox: sandbox
            }
        }
    }

    public struct Limits: Sendable, Equatable {
        /// Pushes per second over all shards; 0 for no limit.
        public var rate = 0
        /// Background pushes to a device in an hour; 0 for no limit.
        public var backgroundPerHour = 0
        /// Maximum pushes in flight per shard.
        public var inFlight = 2_000
        /// Maximum connections to APNs per shard, environment and credential set; opened as needed.
        public var connections = 16
        /// Wait for APNs' answer to one push.
        public var answerSeconds: Double = 5
        /// Resends of a push with an unknown result.
        public var unknownTries = 2
        /// The fraction of the shard's work, 0-1, that the app may have if there are several apps. Its further events
        /// are parked.
        public var share = 0.5
        /// When a spike of dead tokens stops their removal, per shard.
        public var removals = RemovalBrake.Limits()
        /// Which pushes use separate connections.
        public var suspects = SuspectRule()

        public init() {}

        /// These limits in the client's form.
        public var client: APNsLimits {
            var limits = APNsLimits()
            limits.inFlightMax = inFlight
            limits.pushesMax = max(limits.pushesMax, inFlight)
            limits.connectionsMax = connections
            limits.answerNanos = UInt64(answerSeconds * 1_000_000_000)
            limits.unknownTries = unknownTries
            return limits
        }
    }

    // MARK: Load

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

public import APNs
import Digits
public import EventLoop
public import Kafka
public import Payload
public import PushCore
public import Redis
public import Telemetry

/// All that an operator can set (contract section 8): a plain value, read once at start.
///
/// Defaults are overridden by the file, the file by `CARILLON__…` variables. Every key is described in
/// `Config/carillon.yaml`; every queue, wait and window has its number here.
public struct Configuration: Sendable {
    public var kafka: KafkaSection
    public var redis: RedisSection
    public var apps: [App]
    public var results = Results.all
    /// What became of each record of user state goes to `kafka.topics.state_results`.
    public var stateResults = false
    /// `token_loss`: reading stops where Redis seems to have lost its tokens; else it is only told.
    public var stopsAtTokenLoss = true
    public var trace = Trace()
    public var http = HTTPSection()
    /// What the operator takes upon himself; see ``WeakLink``.
    public var waivers: Set<WeakLink.Waiver> = []
    /// Files that nobody but the worker's user should read, in the order of the text.
    public var secretFiles: [SecretFile] = []
    /// Threads with an event loop, a group membership and connections of their own; 0: one per core.
    public var shards = 0
    public var logLevel = Log.Level.info
    public var window = Window()
    public var planner = Planner()
    public var lanes = LaneShares()
    /// Seconds from the order to stop until what is left is given up.
    public var drainSeconds: Double = 25

    public struct KafkaSection: Sendable {
        public var brokers: String
        public var group = "carillon"
        public var topics = Topics()
        /// librdkafka's own properties, secret files already read in.
        public var options: [String: String] = [:]

        public init(brokers: String) {
            self.brokers = brokers
        }

        /// What the consumers and producers are made from.
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
        /// Wait for a reply; then the link is closed, since replies could no longer be told apart.
        public var timeoutMs = 2_000
        public var groupMarks = GroupMarks.each

        public init(topology: RedisTopology) {
            self.topology = topology
        }

        /// The numbers of a client.
        public var limits: RedisLimits {
            var limits = RedisLimits()
            limits.commandTimeoutNanos = UInt64(timeoutMs) * 1_000_000
            return limits
        }

        /// The server, or the first that is named.
        public var endpoint: RedisEndpoint? { topology.first }

        /// Its servers as a text without login.
        public var place: String { topology.endpoints.map(\.description).joined(separator: ", ") }
    }

    /// Where it stands that a member of a group has been told of a message.
    public enum GroupMarks: String, Sendable, CaseIterable {
        /// In a key of each member's own.
        case each
        /// Of all members in one key of the message. Not for a cluster, where they stay with each.
        case together
    }

    /// What goes to `push.results`.
    public enum Results: String, Sendable, CaseIterable {
        case all, failures, none
    }

    /// What follows where Redis seems to have lost its tokens.
    enum TokenLoss: String {
        case stop, alarm
    }

    /// What is kept for `carillon trace`.
    public struct Trace: Sendable, Equatable {
        /// The share of users of whom all is kept, 0-1; 0: nothing of anybody.
        public var sample: Double = 1
        public var ttlHours = 72

        public init() {}
    }

    public struct HTTPSection: Sendable, Equatable {
        public var host = "127.0.0.1"
        /// 0: any free one.
        public var port: UInt16 = 9464
        /// Names and token that clients must know.
        public var access = HTTPAccess()

        public init() {}

        /// Only this machine reaches it.
        public var isLoopback: Bool { WeakLink.isLoopback(host) }
    }

    /// How much may be unsettled per partition before it is paused.
    public struct Window: Sendable, Equatable {
        public var records = 20_000
        public var bytes = 64 << 20

        public init() {}
    }

    /// How large groups are divided between workers.
    public struct Planner: Sendable, Equatable {
        /// A group with more members goes to `topics.chunks`.
        public var directMax = 2_000

        public init() {}
    }

    /// One app: what its decisions depend on, who may send for it, and how fast.
    public struct App: Sendable {
        public var policy: AppPolicy
        /// At least one; the first serves tokens that name none.
        public var credentials: [Credential]
        public var endpoints = Endpoints()
        public var templates = Templates()
        public var limits = Limits()
        /// `coalesce.window_s`: what follows an alert of the same conversation so soon goes as one push; 0: off.
        public var coalesceSeconds: Double = 0
        /// `dnd_digest`: what quiet hours held back is told in one push at their end.
        public var sendsDigest = false
        /// `environment`: for what does not say which it is.
        public var environment = APNsEnvironment.production

        public init(policy: AppPolicy, credentials: [Credential]) {
            self.policy = policy
            self.credentials = credentials
        }

        /// The credential that a token is pushed with, by the rule that the worker chooses a client by.
        public func credential(for token: TokenRecord) -> Credential? { credentials.choice(for: token) }

        /// A burst's window; 0: every alert goes at once.
        var coalesceNanos: UInt64 { UInt64(coalesceSeconds * 1_000_000_000) }

        /// The credential that a token's `cert` names; the first for none. Nil: there is no such name.
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
        /// Pushes per second over all shards; 0: as fast as it goes.
        public var rate = 0
        /// Pushes in flight per shard.
        public var inFlight = 2_000
        /// Connections to APNs, per shard, environment and credential set; opened as the work asks for them.
        public var connections = 16
        /// Wait for APNs' answer to one push.
        public var answerSeconds: Double = 5
        /// Resends of a push whose fate is unknown.
        public var unknownTries = 2
        /// Of the work in hand, 0-1, that the app may have where there are several; what is over it is parked.
        public var share = 0.5
        /// When a spike of dead tokens stops their removal, per shard.
        public var removals = RemovalBrake.Limits()
        /// Whose pushes travel on a connection of their own.
        public var suspects = SuspectRule()

        public init() {}

        /// These numbers in the client's own terms.
        public var client: APNsLimits {
            var limits = APNsLimits()
            limits.inFlightMax = inFlight
            limits.pushesMax = max(limits.pushesMax, inFlight)
            limits.connectionsMax = connections
            limits.answerNanos = UInt64(answerSeconds * 1_000_000_000)
            limits.unknownTries = unknownTries
            limits.checkAfterNanos = Sender.checkAfterNanos
            limits.holdNanos = Sender.holdNanos
            return limits
        }
    }
}

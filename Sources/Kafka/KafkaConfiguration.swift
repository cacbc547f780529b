/// What a Kafka client is made from: the few things that are ours, and librdkafka's own options passed through.
///
/// Defaults are the worker's starting set: bounded prefetch, checked CRCs, keepalive, no topic creation. `options` wins
/// over the defaults, and the guarantee wins over `options`: what would commit unsettled offsets is refused.
public struct KafkaConfiguration: Sendable {
    /// Where to start where the group has no usable offset.
    public enum OffsetReset: String, Sendable {
        /// The oldest kept record. A new group misses nothing; after a retention gap reading goes on, and replayed
        /// records meet their dedup marks.
        case earliest
        /// Stand still and report `isOffsetLost`, so that an operator decides. Holds for new groups and
        /// for added partitions too: give them offsets by hand.
        case error
    }

    /// How partitions are shared out in a group; one group must agree on one.
    public enum AssignmentStrategy: String, Sendable {
        case range
        case roundRobin = "roundrobin"
        /// Only with librdkafka 2.10.1 or newer: older ones lose the assignment when a commit meets a rebalance.
        case cooperativeSticky = "cooperative-sticky"
    }

    /// `host:port` pairs separated by commas.
    public var brokers: String
    /// The consumer group; producers do not need one.
    public var group: String
    /// Shown in the brokers' logs and quotas.
    public var clientID: String
    /// librdkafka's properties by their own names (TLS, SASL, tuning).
    public var options: [String: String]
    /// `latest` is deliberately missing: after a gap it would jump to the end in silence. Default `earliest`, so
    /// that the first start of a new group works without an operator.
    public var offsetReset: OffsetReset
    public var assignment: AssignmentStrategy
    /// Takes librdkafka's log lines, called from its threads; nil drops them.
    public var log: KafkaLogSink?

    public init(
        brokers: String, group: String = "", clientID: String = "carillon", options: [String: String] = [:],
        offsetReset: OffsetReset = .earliest, assignment: AssignmentStrategy = .range, log: KafkaLogSink? = nil
    ) {
        self.brokers = brokers
        self.group = group
        self.clientID = clientID
        self.options = options
        self.offsetReset = offsetReset
        self.assignment = assignment
        self.log = log
    }

    /// A partition of which the group has committed nothing is read from its oldest record.
    var startsAtOldest: Bool {
        (options["auto.offset.reset"] ?? offsetReset.rawValue) != OffsetReset.error.rawValue
    }

    /// The same for one of several members: a `group.instance.id` of the options gets `-suffix`.
    ///
    /// Two members with one id fence each other, so each consumer of a process needs a suffix of its own that is the
    /// same after a restart.
    public func member(_ suffix: String) -> KafkaConfiguration {
        guard let id = options["group.instance.id"], !id.isEmpty else { return self }
        var own = self
        own.options["group.instance.id"] = id + "-" + suffix
        return own
    }
}

/// Which side of Kafka a client is on; some defaults and rules differ.
public enum KafkaRole: Sendable {
    case consumer, producer
}

/// A line from librdkafka: syslog level (3 error … 7 debug), facility such as `FAIL`, and text.
public struct KafkaLogLine: Sendable {
    public let level: Int32
    public let facility: String
    public let text: String
}

/// Called on librdkafka's own threads: must be quick, must not block, must not call into the client.
public typealias KafkaLogSink = @Sendable (KafkaLogLine) -> Void

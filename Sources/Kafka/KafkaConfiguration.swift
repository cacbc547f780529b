// SPDX-License-Identifier: Apache-2.0
/// The settings of a Kafka client: a few of our own, and librdkafka's options passed through.
///
/// The defaults are the worker's: bounded prefetch, checked CRCs, keepalive, no topic creation. `options` overrides the
/// defaults, and the guarantee overrides `options`: an option that would commit unsettled offsets is refused.
public struct KafkaConfiguration: Sendable {
    /// The start position if the group has no usable offset.
    public enum OffsetReset: String, Sendable {
        /// The oldest kept record. A new group misses nothing. After a retention gap reading continues, and replayed
        /// records meet their dedup marks.
        case earliest
        /// Stop and report `isOffsetLost`, so that an operator decides. Also applies to new groups and added
        /// partitions, which then need offsets by hand.
        case error
    }

    /// How a group assigns partitions. All members must use the same strategy.
    public enum AssignmentStrategy: String, Sendable {
        case range
        case roundRobin = "roundrobin"
        /// Only with librdkafka 2.10.1 or newer: older versions lose the assignment when a commit meets a rebalance.
        case cooperativeSticky = "cooperative-sticky"
    }

    /// `host:port` pairs separated by commas.
    public var brokers: String
    /// The consumer group. Producers do not need one.
    public var group: String
    /// Appears in the brokers' logs and quotas.
    public var clientID: String
    /// librdkafka's properties by their own names (TLS, SASL, tuning).
    public var options: [String: String]
    /// There is no `latest`: after a gap it would jump to the end silently. The default `earliest` lets a new group
    /// start without an operator.
    public var offsetReset: OffsetReset
    public var assignment: AssignmentStrategy
    /// Receives librdkafka's log lines on its threads; nil drops them.
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

    /// A partition without a committed offset is read from its oldest record.
    var startsAtOldest: Bool {
        (options["auto.offset.reset"] ?? offsetReset.rawValue) != OffsetReset.error.rawValue
    }

    /// The settings of one of several members: a `group.instance.id` in the options gets `-suffix`.
    ///
    /// Two members with one id fence each other, so each consumer of a process needs its own suffix, equal after a
    /// restart.
    public func member(_ suffix: String) -> KafkaConfiguration {
        guard let id = options["group.instance.id"], !id.isEmpty else { return self }
        var own = self
        own.options["group.instance.id"] = id + "-" + suffix
        return own
    }
}

/// The role of a client. Some defaults and rules differ.
public enum KafkaRole: Sendable {
    case consumer, producer
}

/// A line from librdkafka: syslog level (3 error … 7 debug), facility such as `FAIL`, and text.
public struct KafkaLogLine: Sendable {
    public let level: Int32
    public let facility: String
    public let text: String
}

/// Called on librdkafka's threads: must be quick, must not block, must not call the client.
public typealias KafkaLogSink = @Sendable (KafkaLogLine) -> Void

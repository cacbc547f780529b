// SPDX-License-Identifier: Apache-2.0
import CRdkafka

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

    // MARK: Rules

    /// All faults of these settings for `role`; empty if a client can be created.
    ///
    /// Contacts no broker. The library checks relations between values when it creates the client.
    public func problems(for role: KafkaRole) -> [KafkaConfigurationProblem] {
        var problems: [KafkaConfigurationProblem] = []
        if let conf = fill(for: role, problems: &problems) { rd_kafka_conf_destroy(conf) }
        return problems
    }

    /// A filled configuration, which `rd_kafka_new` consumes or the caller destroys.
    func native(for role: KafkaRole) throws(KafkaFault) -> OpaquePointer {
        var problems: [KafkaConfigurationProblem] = []
        let conf = fill(for: role, problems: &problems)
        guard problems.isEmpty, let conf else {
            if let conf { rd_kafka_conf_destroy(conf) }
            throw .configuration(problems)
        }
        return conf
    }

    private func fill(for role: KafkaRole, problems: inout [KafkaConfigurationProblem]) -> OpaquePointer? {
        guard let conf = rd_kafka_conf_new() else { return nil }
        for (key, value) in defaults(for: role) { Self.set(conf, key, value, &problems) }
        for (key, value) in options.sorted(by: { $0.key < $1.key }) {
            if let why = Self.refusal(of: key, value: value, role: role) {
                problems.append(KafkaConfigurationProblem(key: key, why: why))
            } else {
                Self.set(conf, key, value, &problems)
            }
        }
        if brokers.isEmpty || brokers.contains("\0") {
            problems.append(KafkaConfigurationProblem(key: "brokers", why: "needs at least one host:port"))
        } else {
            Self.set(conf, "bootstrap.servers", brokers, &problems)
        }
        if role == .consumer {
            // Only `KafkaConsumer` commits, whatever the options say.
            Self.set(conf, "enable.auto.commit", "false", &problems)
            if group.isEmpty || group.contains("\0") {
                problems.append(KafkaConfigurationProblem(key: "group", why: "needs a name"))
            } else {
                Self.set(conf, "group.id", group, &problems)
            }
        }
        return conf
    }

    /// KIP-848.
    var usesConsumerProtocol: Bool { options["group.protocol"]?.lowercased() == "consumer" }

    /// After so long without an answer to a heartbeat, a member gives up its partitions, ms.
    public var sessionMs: Int64 { max(0, options["session.timeout.ms"].flatMap { Int64($0) } ?? Self.sessionMs) }

    private static let sessionMs: Int64 = 45_000

    private func defaults(for role: KafkaRole) -> [(String, String)] {
        let common = [
            ("client.id", clientID),
            ("socket.keepalive.enable", "true"),  // off by default
            ("socket.nagle.disable", "true"),
            ("log.connection.close", "false"),
            // A broker that returns is found within two seconds. The library's ten seconds may be most of a session.
            ("reconnect.backoff.max.ms", "2000"),
            ("allow.auto.create.topics", "false"),
            // New partitions are noticed by this question alone. By the library's own interval they stay unread for minutes.
            ("topic.metadata.refresh.interval.ms", "20000"),
        ]
        switch role {
        case .consumer:
            // With the consumer protocol the broker shares out and sets the session's time; the library refuses both.
            // A member learns of a rebalance by the answer to a heartbeat. Until then nobody reads the
            // partitions of one that left.
            let shares = [
                ("partition.assignment.strategy", assignment.rawValue), ("session.timeout.ms", String(Self.sessionMs)),
                ("heartbeat.interval.ms", "1000"),
            ]
            return common + (usesConsumerProtocol ? [] : shares) + [
                ("enable.auto.offset.store", "false"),
                ("auto.offset.reset", offsetReset.rawValue),
                ("max.poll.interval.ms", "300000"),
                // Before 2.2 a full prefetch queue stops fetching for a fixed second. At 8 µs of work per 350-byte
                // record, 1000 messages gave 18 k records/s, 16 MB gave 64 k, and these give 109 k of 114 k.
                ("queued.min.messages", "100000"),
                ("queued.max.messages.kbytes", "32768"),
                ("fetch.max.bytes", "8388608"),
                ("check.crcs", "true"),
                ("statistics.interval.ms", "5000"),
                // Reports that a partition without records is read to its end. Lag and start-up need it.
                ("enable.partition.eof", "true"),
            ]
        case .producer:
            return common + [
                ("enable.idempotence", "true"),
                ("acks", "all"),
                // The Java client's partitioner: every producer maps a key to the same partition.
                ("partitioner", "murmur2_random"),
                ("linger.ms", "5"),
                // The limit of a single record; batches keep to `batch.size`. The broker's own limit decides which
                // topic accepts, so that a large record reaches the dead-letter topic if that topic allows it.
                ("message.max.bytes", "16777216"),
                ("queue.buffering.max.messages", "100000"),
                ("queue.buffering.max.kbytes", "65536"),
            ]
        }
    }

    /// The reason why an option may not be set by hand; nil if it may.
    private static func refusal(of key: String, value: String, role: KafkaRole) -> String? {
        if key.contains("\0") || value.contains("\0") { return "holds a NUL byte" }
        switch key {
        case "bootstrap.servers", "metadata.broker.list": return "set kafka.brokers in its place"
        case "transactional.id":
            return
                "cannot be set: a producer with it sends nothing outside of a transaction, and the worker uses none; "
                + "leave it out, a repeated record has the same pid"
        case "group.id": return "set kafka.group in its place"
        case "enable.auto.commit" where value != "true":
            return "must stay true: settled offsets are committed each second, at revocation and at the end"
        case "auto.commit.interval.ms": return "is fixed: settled offsets are committed each second"
        case "enable.partition.eof" where value != "true":
            return "must stay true: it marks the end of a partition"
        case "enable.auto.offset.store", "auto.commit.enable":
            return "is fixed: an offset is stored only when its record is settled"
        case "auto.offset.reset" where !["earliest", "smallest", "beginning", "error"].contains(value):
            return "must be earliest or error, since after a retention gap \(value) skips records in silence; "
                + "to skip history once, reset the group's offsets on the broker"
        case "partition.assignment.strategy" where value.contains("cooperative"):
            return allowsCooperative
                ? nil : "cooperative-sticky loses assignments before librdkafka 2.10.1, and this is \(libraryVersion)"
        case "group.protocol" where value.lowercased() == "consumer" && !allowsCooperative:
            return "the consumer protocol (KIP-848) needs librdkafka 2.10.1, and this is \(libraryVersion)"
        case "acks" where value != "all" && value != "-1",
            "request.required.acks" where value != "all" && value != "-1":
            return "must be all: a dead-lettered record counts as settled once it is written"
        default: return nil
        }
    }

    /// The version of the loaded librdkafka.
    public static var libraryVersion: String { String(cString: rd_kafka_version_str()) }

    static var allowsCooperative: Bool { rd_kafka_version() >= 0x020a_01ff }

    private static func set(
        _ conf: OpaquePointer, _ key: String, _ value: String, _ problems: inout [KafkaConfigurationProblem]
    ) {
        var code = RD_KAFKA_CONF_OK
        let why = withErrorText { (text: UnsafeMutablePointer<CChar>, capacity: Int) -> Bool in
            code = rd_kafka_conf_set(conf, key, value, text, capacity)
            return code == RD_KAFKA_CONF_OK
        }
        guard let why else { return }
        problems.append(KafkaConfigurationProblem(key: key, why: shown(why, code, of: key)))
    }

    /// librdkafka's reason without a secret: some of its texts repeat the value.
    private static func shown(_ why: String, _ code: rd_kafka_conf_res_t, of key: String) -> String {
        if code == RD_KAFKA_CONF_UNKNOWN { return "librdkafka \(libraryVersion) has no such property" }
        if let reason = why.firstRange(of: "not supported in this build") {
            return "\(why[reason.lowerBound...]) (librdkafka \(libraryVersion))"
        }
        return isSecret(key) ? "value refused by librdkafka \(libraryVersion)" : why
    }

    private static func isSecret(_ key: String) -> Bool {
        ["password", "secret", ".pem", "oauthbearer", "username"].contains { key.contains($0) }
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

/// Runs a call that fills an error text of the library's usual 512 bytes; nil if `body` returns success.
func withErrorText(_ body: (UnsafeMutablePointer<CChar>, Int) -> Bool) -> String? {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
        buffer.initialize(repeating: 0)
        guard let base = buffer.baseAddress, !body(base, buffer.count) else { return nil }
        return String(cString: base)
    }
}

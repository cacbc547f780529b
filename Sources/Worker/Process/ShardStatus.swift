// SPDX-License-Identifier: Apache-2.0
import JSON
public import Kafka
public import Redis
public import Telemetry

/// A shard for an operator's view.
public struct ShardStatus: Sendable {
    public var index: Int
    public var assignedPartitions: Int
    public var pausedPartitions: Int
    /// The brokers' last answers to the shard's consumers.
    public var kafkaReach: KafkaReach
    public var isRedisReady: Bool
    /// The reason why there is no connection to Redis, or to some nodes of a cluster; nil if connected, or before the
    /// first attempt.
    public var redisFault: String?
    /// How Redis refuses writes; nil if it accepts them.
    public var redisRefusal: String?
    /// Recipients with an owed claim.
    public var owedClaims: Int
    /// It has stopped reading because Redis seems to have lost its tokens.
    public var hasLostTokens: Bool
    /// Redis has older data than before: from when it is, as text; nil: it has not.
    public var olderData: String?
    public var pendingRecords: Int
    public var pendingRecipients: Int
    /// Records of `carillon.parked` in memory that wait for their due time.
    public var parkedRecords: Int
    /// Its pushes that wait.
    public var waiting = WaitingPushes()
    /// Apps over their share.
    public var overShare: [String]
    /// Records with all outcomes recorded, since the start.
    public var settledRecords: UInt64
    public var clients: [Client]
    public var apps: [App]
    /// Apps and causes with withheld token removals.
    public var brakes: [Brake]
    /// From Kafka's timestamp to APNs' acceptance in ms, in the order of `PushLane`.
    public var endToEnd: [Histogram]
    /// Its slowest partitions.
    public var partitions: [Partition] = []
    /// The number of its partitions.
    public var readPartitions = 0
    /// Partitions of any topic assigned by the group, including the worker's own topics.
    public var heldPartitions = 0
    /// Topics that the group has never assigned since the start.
    public var awaitedTopics: [String] = []
    /// Topics that the brokers do not let it read, in words.
    public var unreadableTopics: [String] = []
    /// Topics of which a partition began again at a lower offset lately.
    public var restartedTopics: [String] = []
    /// Topics with records of a later version that wait for a worker that knows them.
    public var heldTopics: [String] = []
    /// What an operator is to know of Kafka although records are read, in words.
    public var kafkaNotes: [String] = []
    /// Another consumer group that uses the same Redis, so that nothing is read; nil: there is none.
    public var otherGroup: String?
    /// Why the brokers let this worker write no record; nil if they do.
    public var writeDenial: String?
    /// Topics that refuse records, and why.
    public var refusedTopics: [RefusedTopic] = []
    /// How far the machine's clock is off; nil: it is right.
    public var clock: ClockNote?
    /// Redis' servers, as this shard's connections see them.
    public var redisPlaces: [RedisPlace] = []
    /// The `maxmemory-policy` of a Redis server that may evict state; nil if none may.
    public var evictingPolicy: String?
    /// The notes of all workers, while the operator's page is read; the first shard has them.
    var fleet: [StateStore.FleetEntry] = []
    /// It reads on although Redis has older data (`token_loss: alarm`).
    public var goesOnWithOlderData = false

    /// A topic that cannot be written.
    public struct RefusedTopic: Sendable, Equatable {
        public var topic: String
        /// librdkafka's name of the error.
        public var why: String

        public init(topic: String, why: String) {
            self.topic = topic
            self.why = why
        }
    }

    /// A clock that is off.
    public struct ClockNote: Sendable, Equatable {
        /// The clock that it was compared with.
        public var reference: String
        /// By how much it is ahead, or behind where negative.
        public var skewMs: Int64
        /// Reading has stopped for it.
        public var isStopped: Bool

        public init(reference: String, skewMs: Int64, isStopped: Bool) {
            self.reference = reference
            self.skewMs = skewMs
            self.isStopped = isStopped
        }
    }

    /// A partition that it reads, of any topic except `carillon.parked`.
    public struct Partition: Sendable, Equatable {
        public var topic: String
        public var partition: Int32
        /// Records read and not settled.
        public var unsettled: Int
        /// Age of the oldest of them; nil if there is none.
        public var oldestSeconds: Double?
        /// Offset below which everything is settled; nil while the group's offset is unknown.
        public var settledTo: Int64?
        /// Offset of the next record to read; nil as above.
        public var readTo: Int64?
        /// Records between the first unsettled one and the end of the last fetch; nil if one of them is unknown.
        public var lag: Int64?
        public var isPaused: Bool

        static let shownMax = 50

        public init(
            topic: String, partition: Int32, unsettled: Int, oldestSeconds: Double?, settledTo: Int64? = nil,
            readTo: Int64? = nil, lag: Int64?, isPaused: Bool
        ) {
            self.topic = topic
            self.partition = partition
            self.unsettled = unsettled
            self.oldestSeconds = oldestSeconds
            self.settledTo = settledTo
            self.readTo = readTo
            self.lag = lag
            self.isPaused = isPaused
        }

        /// By the age of the oldest unsettled record, then by lag.
        static func slowest(_ partitions: [Partition]) -> [Partition] {
            Array(
                partitions.sorted { one, other in
                    let (age, otherAge) = (one.oldestSeconds ?? 0, other.oldestSeconds ?? 0)
                    if age != otherAge { return age > otherAge }
                    let (lag, otherLag) = (one.lag ?? 0, other.lag ?? 0)
                    return lag != otherLag
                        ? lag > otherLag : (one.topic, one.partition) < (other.topic, other.partition)
                }.prefix(shownMax))
        }

        func write(to writer: inout JSONWriter) {
            writer.beginObject()
            writer.member("topic", topic)
            writer.member("partition", Int64(partition))
            writer.member("unsettled", Int64(unsettled))
            if let oldestSeconds {
                writer.key("oldest_s")
                writer.double((oldestSeconds * 1000).rounded() / 1000)
            }
            if let settledTo { writer.member("settled_to", settledTo) }
            if let readTo { writer.member("read_to", readTo) }
            if let lag { writer.member("lag", lag) }
            writer.member("paused", isPaused)
            writer.endObject()
        }
    }

    /// One app's pushes since the start.
    public struct App: Sendable {
        public var id: String
        public var accepted: UInt64
        /// First reports of a device that it opened a push.
        public var opened: UInt64

        public init(id: String, accepted: UInt64, opened: UInt64) {
            self.id = id
            self.accepted = accepted
            self.opened = opened
        }

        func write(to writer: inout JSONWriter) {
            writer.beginObject()
            writer.member("app", id)
            writer.member("accepted", Int64(clamping: accepted))
            writer.member("opened", Int64(clamping: opened))
            writer.endObject()
        }
    }

    public struct Client: Sendable {
        public var app: String
        public var environment: String
        /// For the app's own environment.
        public var isDefault: Bool
        public var host: String
        public var isUsable: Bool
        /// The reason why there is no connection; nil if there is one, or before the first attempt.
        public var unusableBecause: String?
        /// Connections can be made and carry no push.
        public var isStalled = false
        /// APNs reports that it is unavailable: only probes are sent.
        public var isBreakerOpen: Bool
        /// The reason why the credential is paused; nil if it is not.
        public var pausedBecause: String?
        /// No credential can be used; `refusedCredential` has the reason.
        public var lacksCredential = false
        /// The reason why a changed credential was refused and the previous one is in use; nil if the newest is.
        public var refusedCredential: String?
        public var connections: Int
        public var inFlight: Int
        public var queued: Int
        /// Devices that APNs wants left alone for now (429).
        public var heldDevices = 0

        /// Another environment to which no connection was needed since the start.
        public var isUntried: Bool {
            !isDefault && !isUsable && !isStalled && unusableBecause == nil && pausedBecause == nil && !lacksCredential
        }
        /// It should have a connection. The other environment needs none while it has no pushes.
        public var isWanted: Bool { isDefault || queued > 0 || inFlight > 0 }
        public var canPush: Bool { isUsable && !isBreakerOpen && pausedBecause == nil }
    }

    public struct Brake: Sendable, Equatable {
        public var app: String
        public var cause: String
    }

    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("shard", Int64(index))
        writer.member("assigned_partitions", Int64(assignedPartitions))
        writer.member("paused_partitions", Int64(pausedPartitions))
        writer.member("redis_ready", isRedisReady)
        writer.member("redis_fault", ifPresent: redisFault)
        writer.member("redis_refuses_writes", ifPresent: redisRefusal)
        writer.key("redis_nodes")
        writer.beginArray()
        for node in redisPlaces {
            writer.beginObject()
            writer.member("place", node.place)
            writer.member("node", ifPresent: node.node)
            writer.member("ready", node.isReady)
            writer.member("waiting", Int64(node.waiting))
            writer.member("fault", ifPresent: node.why)
            writer.endObject()
        }
        writer.endArray()
        writer.member("owed_claims", Int64(owedClaims))
        writer.member("lost_tokens", hasLostTokens)
        writer.member("redis_older_data_of", ifPresent: olderData)
        writer.member("pending_records", Int64(pendingRecords))
        writer.member("pending_recipients", Int64(pendingRecipients))
        writer.member("parked_records", Int64(parkedRecords))
        writer.member("settled_records", Int64(clamping: settledRecords))
        writer.key("partitions")
        writer.beginArray()
        for partition in partitions { partition.write(to: &writer) }
        writer.endArray()
        writer.key("removal_brakes")
        writer.beginArray()
        for brake in brakes {
            writer.beginObject()
            writer.member("app", brake.app)
            writer.member("cause", brake.cause)
            writer.endObject()
        }
        writer.endArray()
        writer.key("apns")
        writer.beginArray()
        for client in clients {
            writer.beginObject()
            writer.member("app", client.app)
            writer.member("environment", client.environment)
            writer.member("host", client.host)
            writer.member("usable", client.isUsable)
            writer.member("breaker_open", client.isBreakerOpen)
            writer.member("paused_because", ifPresent: client.pausedBecause)
            writer.member("refused_credential", ifPresent: client.refusedCredential)
            writer.member("connections", Int64(client.connections))
            writer.member("in_flight", Int64(client.inFlight))
            writer.member("queued", Int64(client.queued))
            writer.member("held_devices_429", Int64(client.heldDevices))
            writer.endObject()
        }
        writer.endArray()
        writer.endObject()
    }
}

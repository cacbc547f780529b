// SPDX-License-Identifier: Apache-2.0
public import JSON

/// One worker's answer at one moment.
public struct WorkerLook: Sendable {
    /// Address of the worker's operator pages, `host:port`.
    public var address: String
    /// Monotonic clock.
    public var atNanos: UInt64
    public var answer: Answer

    public enum Answer: Sendable {
        case facts(MetricsPage, StatusFacts)
        /// The reason for a missing answer.
        case away(String)
    }

    public init(address: String, atNanos: UInt64, answer: Answer) {
        self.address = address
        self.atNanos = atNanos
        self.answer = answer
    }

    public var metrics: MetricsPage? { if case .facts(let page, _) = answer { page } else { nil } }
    public var status: StatusFacts? { if case .facts(_, let status) = answer { status } else { nil } }
}

/// The parts of `/statusz` that `top` shows. Values that a worker does not report are absent.
public struct StatusFacts: Equatable, Sendable {
    public var isReady = false
    public var isDraining = false
    /// Reasons why it is not ready.
    public var missing: [String] = []
    /// Conditions that need attention.
    public var notes: [String] = []
    public var shards = 0
    /// Shards with a connection to Redis.
    public var redisReady = 0
    /// Reasons why a shard has no connection, or why Redis accepts no writes.
    public var redisFaults: [String] = []
    /// Redis' servers as each shard sees them.
    public var redisNodes: [RedisNode] = []
    public var parkedRecords: Int64 = 0
    public var brakes: [String] = []
    /// The slowest partitions.
    public var partitions: [Partition] = []

    public struct Partition: Equatable, Sendable {
        public var topic: String
        public var partition: Int64
        /// Records read and not settled.
        public var unsettled: Int64
        /// Age of the oldest of them; nil if there is none.
        public var oldestSeconds: Double?
        /// Nil if unknown.
        public var lag: Int64?
        public var isPaused: Bool
    }

    public struct RedisNode: Equatable, Sendable {
        public var place: String
        /// The label of a cluster node in metrics.
        public var node: String?
        public var isReady: Bool
        /// Commands that wait for its reply.
        public var waiting: Int64
        public var why: String?
    }

    /// Maximum number of a shard's partitions that are read.
    private static let partitionsMax = 200

    private static let listMax = 100

    public init() {}

    public init(_ tree: JSONTree) {
        isReady = tree["ready"]?.bool ?? false
        isDraining = tree["draining"]?.bool ?? false
        missing = Self.texts(tree["missing"])
        notes = Self.texts(tree["notes"])
        for shard in tree["shards"]?.array ?? [] {
            shards += 1
            if shard["redis_ready"]?.bool == true { redisReady += 1 }
            add(shard["redis_fault"]?.string, to: &redisFaults)
            add(shard["redis_refuses_writes"]?.string.map { "refuses writes: \($0)" }, to: &redisFaults)
            parkedRecords = parkedRecords &+ (shard["parked_records"]?.int ?? 0)
            for brake in shard["removal_brakes"]?.array ?? [] {
                add("\(brake["app"]?.string ?? "?") \(brake["cause"]?.string ?? "?")", to: &brakes)
            }
            for node in (shard["redis_nodes"]?.array ?? []).prefix(Self.listMax) {
                redisNodes.append(
                    RedisNode(
                        place: node["place"]?.string ?? "?", node: node["node"]?.string,
                        isReady: node["ready"]?.bool ?? false, waiting: node["waiting"]?.int ?? 0,
                        why: node["fault"]?.string))
            }
            for partition in (shard["partitions"]?.array ?? []).prefix(Self.partitionsMax) {
                partitions.append(
                    Partition(
                        topic: partition["topic"]?.string ?? "?", partition: partition["partition"]?.int ?? 0,
                        unsettled: partition["unsettled"]?.int ?? 0, oldestSeconds: partition["oldest_s"]?.double,
                        lag: partition["lag"]?.int, isPaused: partition["paused"]?.bool ?? false))
            }
        }
    }

    private static func texts(_ list: JSONTree?) -> [String] {
        Array((list?.array ?? []).compactMap(\.string).prefix(listMax))
    }

    /// Adds each text once.
    private func add(_ text: String?, to list: inout [String]) {
        guard let text, list.count < Self.listMax, !list.contains(text) else { return }
        list.append(text)
    }
}

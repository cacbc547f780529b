// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
public import Kafka
public import Processes
public import Simulator
public import Telemetry
public import Worker

/// All peers of Carillon on this machine: redis-server, a Kafka-protocol broker, the APNs simulator; and workers in the
/// same process.
///
/// All servers listen on free ports of 127.0.0.1 and keep their files in a temporary folder, which is removed at the
/// end. For the demo and end-to-end tests. `close` ends it in order.
public actor LocalCluster {
    public nonisolated let folder: TemporaryFolder
    /// The single server; in a cluster the first node, with commands redirected to the key's node.
    public nonisolated let redis: RedisServer
    /// Nil without a cluster.
    public nonisolated let redisCluster: RedisCluster?
    /// All servers with keys: the single server, a cluster's nodes, or a master with its replica.
    public nonisolated var redisServers: [RedisServer] { redisCluster?.nodes ?? sentinels?.servers ?? [redis] }
    /// Nil without Sentinels.
    public nonisolated let sentinels: SentinelGroup?
    public nonisolated let broker: MockBroker
    public nonisolated let simulator: SimulatorService
    public nonisolated let simulatorPort: UInt16
    private let simulatorLoop: Loop
    public nonisolated let credentials: DemoCredentials
    public nonisolated let settings: Settings
    private var writer: KafkaProducer
    private let simulatorConfiguration: SimulatorConfiguration
    private var workers: [WorkerProcess] = []

    /// The settings of a local cluster.
    public struct Settings: Sendable {
        public var app = "im"
        public var topic = "com.example.im"
        /// Further bundle ids of the app; its configuration then has a list.
        public var moreTopics: [String] = []
        /// Partitions of the input topics.
        public var partitions = 4
        public var brokers = 1
        public var shards = 2
        /// A templates file; nil for the built-in texts.
        public var templates: String?
        /// Names of credential sets with the same key; empty for one set without a name.
        public var credentialNames: [String] = []
        /// YAML lines for the app's entry, each indented by four spaces.
        public var appLines = ""
        /// Further apps in addition to `app`.
        public var tenants: [Tenant] = []
        /// Time without a heartbeat after which the group reassigns a member's partitions. The mock broker also waits
        /// this long for missing members when a group changes. So worlds with changing members need a small value;
        /// other worlds need more than a busy machine may delay a thread.
        public var sessionMs = 15_000
        /// Time for which the mock broker delays the answer to an empty fetch, even if records arrive. Idle clients
        /// poll at this rate.
        public var fetchWaitMs = 10
        /// More of librdkafka's properties for the workers.
        public var kafkaOptions: [String: String] = [:]
        /// YAML lines at the top level.
        public var lines = ""
        public var scenario = Scenario()
        public var ledger = LedgerMode.memory
        public var logLevel = Log.Level.warning
        /// Seconds in which a worker finishes its open work; never below `limits.answer_s`.
        public var drainSeconds = 10
        /// The workers' Redis URL; empty for the world's server.
        public var redisURL = ""
        /// YAML lines for the section `redis`, each indented by two spaces.
        public var redisLines = ""
        /// Additional arguments for redis-server.
        public var redisArguments: [String] = []
        /// The worker connects to Redis by its unix socket instead of TCP.
        public var usesRedisSocket = false
        /// A server with a replica, and three Sentinels, which the worker asks for the master.
        public var usesSentinels = false
        /// Lines for the Sentinels' configuration.
        public var sentinelLines: [String] = []
        /// Further members of `redis.sentinel`, such as `, user: carillon`.
        public var sentinelMembers = ""
        /// Time without an answer after which a node of the Redis Cluster counts as failed.
        public var redisClusterTimeoutMs = 2_000
        /// Each master of the Redis Cluster has a replica.
        public var redisClusterHasReplicas = true
        /// A Redis Cluster instead of a single server. The environment variable `CARILLON_TEST_REDIS=cluster` makes
        /// this the default.
        public var usesRedisCluster = getenv("CARILLON_TEST_REDIS").map { String(cString: $0) } == "cluster"
        /// Name of the simulator's thread, which separates its CPU time from that of other threads of this process; at
        /// most 15 bytes.
        public var simulatorThread = "simulator"

        public init() {}
    }

    /// Another app of the world.
    public struct Tenant: Sendable {
        public var id: String
        public var topic: String
        /// YAML lines for its entry, each indented by four spaces.
        public var lines = ""
        /// Its own provider key, which the simulator does not know; nil for the world's key.
        public var keyPEM: [UInt8]?
        /// Replaces the simulator's endpoint.
        public var endpoint: String?

        public init(id: String, topic: String) {
            self.id = id
            self.topic = topic
        }
    }

    /// Starts the three servers. They contain no data yet, and no worker runs.
    public init(_ settings: Settings = Settings()) async throws {
        self.settings = settings
        folder = try TemporaryFolder()
        let redisCluster =
            settings.usesRedisCluster
            ? try await RedisCluster(
                arguments: settings.redisArguments, nodeTimeoutMs: settings.redisClusterTimeoutMs,
                hasReplicas: settings.redisClusterHasReplicas) : nil
        self.redisCluster = redisCluster
        let sentinels =
            settings.usesSentinels
            ? try await SentinelGroup(arguments: settings.redisArguments, sentinelLines: settings.sentinelLines) : nil
        self.sentinels = sentinels
        redis =
            try redisCluster?.nodes.first ?? sentinels?.servers.first ?? RedisServer(arguments: settings.redisArguments)
        broker = try MockBroker(brokers: settings.brokers)
        for topic in Configuration.Topics().all {
            let isRead = topic.key == "events" || topic.key == "user_state"
            try broker.createTopic(
                topic.name, partitions: isRead ? settings.partitions : Self.ownPartitions(settings))
        }
        credentials = try DemoCredentials(folder: folder.file("secrets"))
        for tenant in settings.tenants {
            if let pem = tenant.keyPEM { try folder.write(pem, to: "key-\(tenant.id).p8") }
        }
        simulatorLoop = try Loop(name: settings.simulatorThread)
        simulatorLoop.start()
        simulator = SimulatorService(loop: simulatorLoop)
        var configuration = SimulatorConfiguration()
        configuration.certificate = credentials.certificate
        configuration.keys = [credentials.providerKey]
        configuration.topics = [settings.topic] + settings.moreTopics + settings.tenants.map(\.topic)
        configuration.scenario = settings.scenario
        configuration.ledger = settings.ledger
        simulatorPort = try await simulator.start(configuration)
        configuration.port = simulatorPort
        simulatorConfiguration = configuration
        writer = try KafkaProducer(Self.client(broker))
    }

    /// Client settings for this world's broker.
    public nonisolated var kafka: KafkaConfiguration { Self.client(broker) }

    private static func client(_ broker: MockBroker) -> KafkaConfiguration {
        KafkaConfiguration(brokers: broker.bootstrap, group: "local", clientID: "local")
    }

    /// A configuration file for a worker in this world.
    public nonisolated var configurationText: String {
        var places = Settings.Places(
            brokers: broker.bootstrap, redis: redisPlace, endpoint: "https://localhost:\(simulatorPort)",
            caFile: credentials.authorityFile, keyFile: credentials.keyFile)
        for tenant in settings.tenants where tenant.keyPEM != nil {
            places.tenantKeyFiles[tenant.id] = folder.file("key-\(tenant.id).p8")
        }
        return settings.configurationText(places)
    }

    private nonisolated var redisPlace: String {
        if let sentinels {
            let members = "master: \(SentinelGroup.masterName), nodes: \(sentinels.nodes)\(settings.sentinelMembers)"
            return "sentinel: { \(members) }"
        }
        if !settings.redisURL.isEmpty { return "url: \(settings.redisURL)" }
        return "url: \(redisCluster?.urls ?? (settings.usesRedisSocket ? redis.socketURL : redis.url))"
    }

    /// Writes the configuration to a file of the folder and returns its path.
    public nonisolated func writeConfiguration() throws -> String {
        try folder.write(Array(configurationText.utf8), to: "carillon.yaml")
    }

    // MARK: - Workers

    /// Starts another worker in this process.
    @discardableResult
    ///
    /// - Parameter group: a consumer group other than the world's.
    public func startWorker(
        log: Log? = nil, group: String? = nil, wallClock: WallClock = WallClock()
    ) async throws -> WorkerProcess {
        let text = configurationText
        switch Configuration.read(Array(text.utf8), source: "carillon.yaml") {
        case .failure(let problems):
            throw SetupFault("the world's configuration has problems:\n\(problems)")
        case .success(var configuration):
            if let group { configuration.kafka.group = group }
            let worker = try WorkerProcess(
                configuration: configuration, log: log ?? Log(level: settings.logLevel), wallClock: wallClock)
            workers.append(worker)
            try await worker.start()
            return worker
        }
    }

    /// Waits until every shard of these workers has its share of all partitions, and Redis and APNs answer.
    ///
    /// A worker is ready with its first partition. The group may still be rebalancing then, and records read during a
    /// rebalance are read twice. So the worker's own topics count too.
    public func awaitGroup(of workers: [WorkerProcess]) async throws {
        let held = 2 * settings.partitions + 2 * Self.ownPartitions(settings)
        var missing = "nothing was looked at"
        let hasFormed = try await whileGroupForms {
            for _ in 0..<1800 {
                var shards: [ShardStatus] = []
                missing = ""
                for worker in workers {
                    let status = await worker.status()
                    shards += status.shards
                    missing += status.missing.joined(separator: "; ")
                }
                let isShared = shards.allSatisfy { $0.assignedPartitions > 0 && $0.awaitedTopics.isEmpty }
                if missing.isEmpty, isShared, shards.reduce(0, { $0 + $1.heldPartitions }) == held { return true }
                try await Task.sleep(for: .milliseconds(50), tolerance: .zero)
            }
            return false
        }
        guard hasFormed else { throw SetupFault("the group did not form within a minute and a half; \(missing)") }
    }

    /// Delays the brokers' answers while a closure waits for the group.
    ///
    /// The mock broker refuses a member that synchronizes after the leader, and the whole group then begins again, which
    /// takes nearly `sessionMs`. The leader asks for metadata first: the delay makes it the last.
    public nonisolated func whileGroupForms<Result>(_ body: () async throws -> Result) async throws -> Result {
        try delayAnswers(milliseconds: 200)
        let result: Result
        do {
            result = try await body()
        } catch {
            try delayAnswers(milliseconds: 0)
            throw error
        }
        try delayAnswers(milliseconds: 0)
        return result
    }

    private nonisolated func delayAnswers(milliseconds: Int) throws {
        for id in 1...broker.count { try broker.setRTT(broker: id, milliseconds: milliseconds) }
    }

    /// Partitions of each topic that only workers write. They stay unread for long, and the broker keeps 5 MiB of each.
    private static func ownPartitions(_ settings: Settings) -> Int { min(settings.partitions, 16) }

    /// The input topics of workers: events and user state.
    public static let readTopics = [Configuration.Topics().events, Configuration.Topics().userState]

    /// The workers' progress in events and user state, in records of all partitions together. Exact even while
    /// partitions move, because it uses offsets. Partitions without an owner are missing.
    ///
    /// - Parameters:
    ///   - isSettled: true counts settled records, false counts read records.
    ///   - topics: the topics that count; by default both.
    public func progress(of workers: [WorkerProcess], isSettled: Bool, topics: [String] = readTopics) async -> Int {
        var offsets: [String: Int64] = [:]
        for worker in workers {
            for partition in await worker.status().shards.flatMap(\.partitions)
            where topics.contains(partition.topic) {
                let offset = (isSettled ? partition.settledTo : partition.readTo) ?? 0
                offsets["\(partition.topic) \(partition.partition)", default: 0].rise(to: offset)
            }
        }
        return Int(offsets.values.reduce(0, +))
    }

    /// Drains every worker. Returns true if nothing was left.
    @discardableResult
    public func stopWorkers() async -> Bool {
        var isDrained = true
        for worker in workers {
            if await !worker.stop() { isDrained = false }
        }
        workers = []
        return isDrained
    }

    /// The deinitialiser runs without `close` after a throw. Objects on the simulator's loop must not be released while
    /// it runs.
    deinit { simulatorLoop.stop() }

    /// Ends everything: workers first, then the servers.
    public func close() async {
        await stopWorkers()
        await simulator.stop()
        simulatorLoop.stop()
        redis.stop()
        redisCluster?.stop()
        sentinels?.stop()
    }

    // MARK: - Simulator away

    /// The simulator refuses every connection until `bringSimulatorUp`. Returns its ledger so far, which ends here.
    public func takeSimulatorDown() async -> [LedgerEntry] {
        let entries = await simulator.takeEntries()
        await simulator.stop()
        return entries
    }

    /// Listens again on the same port, with the first scenario and an empty ledger.
    public func bringSimulatorUp() async throws {
        try await simulator.start(simulatorConfiguration)
    }

    // MARK: - Topics

    /// Writes records and waits until the broker has confirmed them.
    public func produce(_ records: [Record], to topic: String) throws {
        guard let handle = writer.topic(topic) else { throw SetupFault("no topic \(topic)") }
        for record in records {
            var outcome: ProduceOutcome
            repeat {
                outcome = writer.produce(
                    to: handle, keyBytes: record.key, valueBytes: record.value, timestampMs: record.timestampMs)
                if outcome == .queueFull { _ = writer.flush(timeoutMs: 100) { _ in } }
            } while outcome == .queueFull
            if case .refused(let error) = outcome { throw SetupFault("\(topic): \(error)") }
        }
        guard writer.flush(timeoutMs: 30_000, { _ in }) else { throw SetupFault("the broker took too long") }
    }

    /// Reads a topic from its oldest record.
    public nonisolated func reader(of topic: String) throws -> KafkaTopicReader {
        var client = kafka
        // The library's default would add half a second at the end of each partition.
        client.options["fetch.wait.max.ms"] = "10"
        return try KafkaTopicReader(client, topic: topic, from: .earliest)
    }

    /// All records of a topic, partition by partition.
    public nonisolated func records(of topic: String) throws -> [Record] {
        var records: [Record] = []
        let reader = try reader(of: topic)
        _ = try reader.read { record in
            records.append(Record(record))
            return .goOn
        }
        return records
    }

    /// A record of a topic.
    public struct Record: Sendable {
        public var key: [UInt8]?
        public var value: [UInt8]?
        public var headers: [String: String]
        /// The Kafka time to write, Unix ms; nil for now.
        public var timestampMs: Int64?

        public init(key: [UInt8]?, value: [UInt8]?, headers: [String: String] = [:], timestampMs: Int64? = nil) {
            self.key = key
            self.value = value
            self.headers = headers
            self.timestampMs = timestampMs
        }

        /// A copy of a reader's record.
        public init(_ record: borrowing KafkaRecord) {
            var headers: [String: String] = [:]
            record.forEachHeader { name, value in
                headers[name] = value.map { String(decoding: $0, as: UTF8.self) }
            }
            self.init(
                key: record.key.map { Array($0) }, value: record.value.map { Array($0) }, headers: headers)
        }
    }
}

extension Int64 {
    fileprivate mutating func rise(to other: Int64) { self = Swift.max(self, other) }
}

extension LocalCluster.Settings {
    /// Where a worker finds the servers and files of its world.
    public struct Places: Sendable {
        public var brokers: String
        /// A line of the section `redis`, such as `url: redis://localhost`.
        public var redis: String
        public var endpoint: String
        public var caFile: String
        public var keyFile: String
        public var keyID = DemoCredentials.keyID
        public var teamID = DemoCredentials.teamID
        /// By tenant; the others use `keyFile`.
        public var tenantKeyFiles: [String: String] = [:]

        public init(brokers: String, redis: String, endpoint: String, caFile: String, keyFile: String) {
            self.brokers = brokers
            self.redis = redis
            self.endpoint = endpoint
            self.caFile = caFile
            self.keyFile = keyFile
        }
    }

    /// A configuration file for a worker.
    public func configurationText(_ places: Places) -> String {
        let options = kafkaOptions.sorted { $0.key < $1.key }.map { "    \($0.key): \($0.value)\n" }.joined()
        return """
            kafka:
              brokers: \(places.brokers)
              group: carillon
              options:
                session.timeout.ms: \(sessionMs)
                heartbeat.interval.ms: 1000
                fetch.wait.max.ms: \(fetchWaitMs)
            \(options)redis:
              \(places.redis)
            \(redisLines)apps:
              - id: \(app)
                topic: \(topicText)
                environment: production
                endpoint: \(places.endpoint)
                ca_file: \(places.caFile)
                credentials:
            \(credentialLines(places))\(templates.map { "    templates: \($0)\n" } ?? "")\(appLines)\(tenantLines(places))http:
              listen: 127.0.0.1:0
            shards: \(shards)
            log:
              level: \(logLevel.name)
            drain_s: \(drainSeconds)
            \(lines)
            """
    }

    private var topicText: String {
        moreTopics.isEmpty ? topic : "[" + ([topic] + moreTopics).joined(separator: ", ") + "]"
    }

    private func tenantLines(_ places: Places) -> String {
        tenants.map { tenant in
            """
              - id: \(tenant.id)
                topic: \(tenant.topic)
                environment: production
                endpoint: \(tenant.endpoint ?? places.endpoint)
                ca_file: \(places.caFile)
                credentials:
                  key_file: \(places.tenantKeyFiles[tenant.id] ?? places.keyFile)
                  key_id: \(places.keyID)
                  team_id: \(places.teamID)
            \(tenant.lines)
            """
        }.joined(separator: "\n") + (tenants.isEmpty ? "" : "\n")
    }

    /// One set without a name, or several of the same key.
    private func credentialLines(_ places: Places) -> String {
        let indent = credentialNames.isEmpty ? "      " : "        "
        let lines = ["key_file: \(places.keyFile)", "key_id: \(places.keyID)", "team_id: \(places.teamID)"]
            .map { indent + $0 + "\n" }.joined()
        return credentialNames.isEmpty ? lines : credentialNames.map { "      \($0):\n" + lines }.joined()
    }
}

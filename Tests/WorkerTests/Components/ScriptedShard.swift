// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import Kafka
import KafkaModel
import Processes
import PushCore
import Redis
import SimulatedFleet
import SimulatedSystem
import Simulator
import Telemetry

@testable import Worker

/// A shard without a pipeline, in virtual time: a test builds one component on it, answers the commands that the component
/// sends, and looks at what it leaves: commands, pushes, records, trays.
final class ScriptedShard {
    let system = SimulatedSystem(seed: 1)
    let redis: ScriptedRedis
    let apns: APNsSeat
    let parts: PipelineParts
    let shard: ShardContext
    let work: WorkTable
    let apps: AppTable
    /// Gets the answers of Redis.
    weak var component: (any Answered)?
    /// Tags of records that the broker has, in this order.
    private(set) var settled: [Tag] = []
    /// Tags of commands that Redis refused, in this order.
    private(set) var refused: [Tag] = []
    private let kafka: KafkaModel
    private let folder: TemporaryFolder
    private let process: SimulatedProcess
    private let loop: Loop

    private init() throws {
        let (system, folder) = (self.system, try TemporaryFolder())
        self.folder = folder
        redis = ScriptedRedis(system)
        let key = try SimulatedKey(folder: folder.path)
        apns = try APNsSeat(system, topics: ["com.example.im"], key: key.key)
        var model = KafkaModelSettings()
        model.wallOriginMs = system.originMs
        kafka = KafkaModel(model, nowNanos: { system.nowNanos }, random: { system.random.next() })
        for topic in Configuration.Topics().all { kafka.createTopic(topic.name, partitions: 1) }
        system.part = ({ [kafka] in kafka.nextNanos }, { [unowned kafka] _ in kafka.runNext() })
        let process = system.makeProcess("worker", host: "127.0.1.1")
        self.process = process
        loop = try process.makeLoop("worker")
        let host = ModelHost(process, kafka, system: system)
        let source = ShardParts(
            index: 0, loop: loop, configuration: try Self.configuration(key), registry: MetricsRegistry(), log: .off,
            shared: ProcessShared(shardCount: 1, seed: 1), kafka: ModelClients(host))
        var made: Result<(PipelineParts, ShardContext, WorkTable), any Error>?
        process.run(on: loop) {
            made = Result {
                let parts = try source.make()
                let work = WorkTable(
                    capacity: 1000, updates: 1000, isShared: false, ofProcess: parts.shared.conversations)
                return (parts, ShardContext(parts), work)
            }
        }
        guard let made else { throw SetupFault("the loop did not run") }
        (parts, shard, work) = try made.get()
        apps = AppTable(parts.apps)
    }

    private static func configuration(_ key: SimulatedKey) throws -> Configuration {
        let text = """
            kafka: {brokers: "127.0.0.6:9092", group: nobody}
            redis: {url: "redis://\(ScriptedRedis.address)"}
            apps:
              - id: im
                topic: com.example.im
                environment: production
                endpoint: "\(APNsSeat.endpoint)"
                ca_file: \(key.authorityPath)
                credentials: {key_file: \(key.path), key_id: \(SimulatedKey.keyID), team_id: \(SimulatedKey.teamID)}
            """
        switch Configuration.read(Array(text.utf8), source: "scripted") {
        case .success(let configuration): return configuration
        case .failure(let problems): throw SetupFault("\(problems)")
        }
    }

    /// Runs a closure with a shard that is connected to its script, and ends the shard.
    static func with(_ body: (ScriptedShard) throws -> Void) throws {
        let world = try ScriptedShard()
        defer { world.end() }
        try world.turn {
            world.shard.store.client.delegate = world
            world.shard.store.client.start()
            try world.parts.outbox.start(didSettle: { world.settled.append(Tag($0) ?? Tag(.none, .note)) })
        }
        guard world.system.run(nanos: 1_000_000_000, until: { world.shard.store.client.isReady }) else {
            throw SetupFault("the link is not ready")
        }
        try body(world)
    }

    private func end() {
        process.run(on: loop) {
            shard.store.client.delegate = nil
            shard.store.client.close()
            parts.outbox.cancel()
            shard.timers.cancel()
            for client in parts.apps.flatMap(\.clients) {
                client.apns.delegate = nil
                client.apns.close()
            }
        }
        process.die()
        apns.end()
        system.end()
    }

    // MARK: What a test does

    /// Runs a closure in a turn of the loop, and lets its output arrive.
    func turn(_ body: () throws -> Void) throws {
        var result = Result<Void, any Error>.success(())
        process.run(on: loop) { result = Result { try body() } }
        pass()
        try result.get()
    }

    /// Lets time pass: answers arrive, timers fire.
    func pass(_ duration: Duration = .milliseconds(5)) { system.run(nanos: UInt64(duration / .nanoseconds(1))) }

    /// Answers the oldest commands, and lets the answers arrive.
    func answer(_ answers: ScriptedRedis.Answer...) {
        for answer in answers { redis.answer(answer) }
        pass()
    }

    /// A message in work.
    ///
    /// - Parameter uids: nil: it is for the group's members.
    func message(_ id: String = "m", to uids: [String]? = ["u"], isExpired: Bool = false) throws -> EventJob {
        let list = uids.map { ",\"to\":{\"uids\":[\($0.map { "\"\($0)\"" }.joined(separator: ","))]}" } ?? ""
        let text = """
            {"v":1,"kind":"message","app":"im","event_id":"e\(id)","sent_ms":\(shard.nowMs),"msg_id":"\(id)",\
            \(isExpired ? "\"expire_at_ms\":\(shard.nowMs)," : "")"conv":{"id":"c","type":"\(uids == nil ? "group" : "p2p")"},"from":{"uid":"sender"}\(list),\
            "type_name":"RC:TxtMsg","push":{"content":"x"}}
            """
        let event = try shard.reader.read(Array(text.utf8), of: .events)
        guard case .message(let message) = event.body, let app = apps["im"] else { throw SetupFault("no message") }
        var origin = try PipelineWorld.origin(0)
        origin.source.kafkaMs = shard.nowMs
        return EventJob(message, of: event, app: app, raw: Array(text.utf8), origin: origin)
    }

    /// A recipient of a message in work, at its first read.
    func recipient(_ uid: String = "u", of event: EventJob? = nil) throws -> RecipientJob {
        let event = try event ?? message(to: [uid])
        if event.ref == .none { work.insert(event) }
        let job = RecipientJob(event: event, uid: uid, candidate: Candidate(uid: uid, order: 0))
        work.insert(job)
        event.undecided += 1
        event.useContent()
        return job
    }

    /// Its user has these devices, and it is decided to push to all of them.
    func decide(_ job: RecipientJob, pushingTo devices: String...) {
        guard let candidate = job.candidate else { return }
        candidate.recipient.tokens = devices.enumerated().map { Self.token($1, $0) }
        candidate.tokenVersion = 1
        candidate.claimsPlainly = true
        candidate.decision = Decision(
            alert: .allow(forced: false), counted: true,
            routes: devices.indices.map { Route(device: devices[$0], way: .apns(token: $0, copyTo: nil)) })
        job.isCounted = true
        job.readNanos = shard.nowNanos
    }

    static func token(_ device: String, _ number: Int = 0) -> BoundToken {
        let record = TokenRecord(
            hex: String(repeating: "a\(number)", count: 32), environment: .production, topic: "com.example.im",
            type: .alert, boundMs: 0)
        return BoundToken(device: device, record: record, version: Int64(number + 1))
    }

    /// The owner's record of such a token.
    static func owner(_ uid: String = "u", _ number: Int = 0) -> ScriptedRedis.Answer {
        .string("1 \(StateKeys.version(Int64(number + 1))) b \(uid.utf8.count) \(uid)")
    }

    // MARK: What a test sees

    /// The records of a topic at the broker.
    func records(_ topic: (Configuration.Topics) -> String) -> [String] {
        pass(.milliseconds(300))
        return kafka.records(topic(Configuration.Topics()), 0).map { String(decoding: $0.value ?? [], as: UTF8.self) }
    }

    /// Device and result of each record in `push.results`.
    var results: [String] {
        records(\.results).map { text in
            ["device", "verdict", "reason"].map { Self.member($0, of: text) }.joined(separator: " ")
        }
    }

    static func member(_ name: String, of text: String) -> String {
        guard let start = text.firstRange(of: "\"\(name)\":\"")?.upperBound else { return "-" }
        return String(text[start...].prefix { $0 != "\"" })
    }
}

/// A component that asks Redis.
protocol Answered: AnyObject {
    func didReply(_ tag: Tag, _ reply: borrowing RedisReply)
    func didFail(_ tag: Tag, _ fault: RedisFault)
}

extension Lookup: Answered {}
extension FanOut: Answered {}
extension Claims: Answered {}
extension Dispatcher: Answered {}
extension Sender: Answered {}
extension Recorder: Answered {
    func didReply(_ tag: Tag, _ reply: borrowing RedisReply) { didReply(tag) }
}

extension ScriptedShard: RedisClientDelegate {
    func redis(_ client: RedisClient, didReply bits: UInt64, reply: borrowing RedisReply) {
        if let tag = Tag(bits) { component?.didReply(tag, reply) }
    }

    func redis(_ client: RedisClient, didFail bits: UInt64, fault: RedisFault) {
        guard let tag = Tag(bits) else { return }
        refused.append(tag)
        component?.didFail(tag, fault)
    }
}

extension Tray {
    /// What the component left in it.
    func taken() -> [Item] {
        var items: [Item] = []
        takeAll { items.append($0) }
        return items
    }
}

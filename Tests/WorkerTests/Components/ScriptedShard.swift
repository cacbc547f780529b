// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
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

/// A shard in virtual time. Either a test builds one component on it, answers the commands that the component sends, and looks
/// at what it leaves: commands, pushes, records, trays. Or it has a pipeline whose servers are all away: what comes in is laid
/// into its trays by hand.
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
    private let pipeline: Pipeline?
    private let kafka: KafkaModel
    private let folder: TemporaryFolder
    private let process: SimulatedProcess
    private let loop: Loop

    private init(log: Log = .off, hasPipeline: Bool = false) throws {
        let (system, folder) = (self.system, try TemporaryFolder())
        self.folder = folder
        redis = ScriptedRedis(system)
        let key = try SimulatedKey(folder: folder.path)
        apns = try APNsSeat(system, topics: ["com.example.im"], key: key.key)
        kafka = KafkaModel(system, partitions: 1)
        process = system.makeProcess("worker", host: "127.0.1.1")
        loop = try process.makeLoop("worker")
        let source = ShardParts(
            index: 0, loop: loop, configuration: try key.configuration(apps: key.app("im")),
            registry: MetricsRegistry(), log: log, shared: ProcessShared(shardCount: 1, seed: 1),
            kafka: ModelClients(ModelHost(process, kafka, system: system)))
        (parts, pipeline, shard, work) = try process.result(on: loop) {
            let parts = try source.make()
            let pipeline = hasPipeline ? Pipeline(parts) : nil
            let shard = pipeline?.shard ?? ShardContext(parts)
            let work = WorkTable(
                capacity: 1000, updates: 1000, isShared: false, ofProcess: parts.shared.conversations)
            return (parts, pipeline, shard, pipeline?.work ?? work)
        }
        apps = AppTable(parts.apps)
    }

    /// Runs a closure with a shard that is connected to its script, and ends the shard.
    static func with(_ body: (ScriptedShard) throws -> Void) throws {
        let world = try ScriptedShard()
        defer { world.end() }
        try world.turn {
            world.shard.store.client.delegate = world
            world.shard.store.client.start()
            try world.parts.outbox.start(
                world.parts.topics, didSettle: { world.settled.append(Tag($0) ?? Tag(.none, .note)) })
        }
        guard world.system.run(nanos: 1_000_000_000, until: { world.shard.store.client.isReady }) else {
            throw SetupFault("the link is not ready")
        }
        try body(world)
    }

    /// Runs a closure in a turn of a shard with a pipeline that has not begun, and ends the shard.
    static func withPipeline<Value>(
        log: Log = .off, _ body: (ScriptedShard, Pipeline) throws -> Value
    ) throws -> Value {
        let world = try ScriptedShard(log: log, hasPipeline: true)
        defer { world.end() }
        guard let pipeline = world.pipeline else { throw SetupFault("no pipeline") }
        return try world.process.result(on: world.loop) {
            defer { pipeline.shut() }
            return try body(world, pipeline)
        }
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
        defer { pass() }
        try process.result(on: loop, body)
    }

    /// Lets time pass: answers arrive, timers fire.
    func pass(_ duration: Duration = .milliseconds(5)) { system.run(nanos: UInt64(duration / .nanoseconds(1))) }

    /// Answers the oldest commands, and lets the answers arrive.
    func answer(_ answers: ScriptedRedis.Answer...) {
        for answer in answers { redis.answer(answer) }
        pass()
    }

    /// A message as it was read.
    ///
    /// - Parameters:
    ///   - uids: nil: it is for the group's members.
    ///   - members: of the chunk that it is for; nil: it is for its own receivers.
    ///   - origin: nil: its record was written now.
    ///   - parked: it returned with this record.
    func message(
        _ id: String = "m", to uids: [String]? = ["u"], conversation: String = "c",
        members: [MemberPage.Member]? = nil, isExpired: Bool = false, origin: EventJob.Origin? = nil,
        content: String = "x", isSilent: Bool = false, revoking target: String? = nil, parked: ParkedWork? = nil
    ) throws -> EventJob {
        let list = uids.map { ",\"to\":{\"uids\":[\($0.map { "\"\($0)\"" }.joined(separator: ","))]}" } ?? ""
        let text = """
            {"v":1,"kind":"\(target == nil ? "message" : "revoke")","app":"im","event_id":"e\(id)",\
            "sent_ms":\(shard.nowMs),"msg_id":"\(id)",\
            \(target.map { "\"revoke\":{\"target_msg_id\":\"\($0)\"}," } ?? "")\
            \(isExpired ? "\"expire_at_ms\":\(shard.nowMs)," : "")\
            "conv":{"id":"\(conversation)","type":"\(uids == nil ? "group" : "p2p")"},"from":{"uid":"sender"}\(list),\
            "type_name":"RC:TxtMsg","push":{"content":"\(content)"\(isSilent ? ",\"silent\":true" : "")}}
            """
        let raw = Array(text.utf8)
        let event = try shard.reader.read(raw, of: .events)
        guard case .message(let message) = event.body, let app = apps["im"] else { throw SetupFault("no message") }
        let chunk = members.map {
            ChunkRecord(app: "im", conversation: conversation, part: 0, members: $0, source: EventSource(), raw: raw)
        }
        return EventJob(
            message, of: event, app: app, raw: raw, origin: origin ?? .alone(kafkaMs: shard.nowMs), parked: parked,
            chunk: chunk)
    }

    /// Its record.
    func record(of job: EventJob) throws -> ReceivedRecord {
        let event = try shard.reader.read(job.raw, of: .events)
        return ReceivedRecord(content: .event(event, raw: job.raw), origin: job.origin ?? .alone())
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
        candidate.plainPast = 0
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

    /// Their keys.
    func keys(_ topic: (Configuration.Topics) -> String) -> [String] {
        kafka.records(topic(Configuration.Topics()), 0).map { String(decoding: $0.key ?? [], as: UTF8.self) }
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
    func didFail(_ tag: Tag, _ fault: RedisFault, isAbsent: Bool)
}

extension Lookup: Answered {}
extension FanOut: Answered {}
extension Claims: Answered {}
extension Dispatcher: Answered {}
extension Sender: Answered {}
extension Recorder: Answered {
    func didFail(_ tag: Tag, _ fault: RedisFault, isAbsent: Bool) { didFail(tag, fault) }
}

extension ScriptedShard: RedisClientDelegate {
    func redis(_ client: RedisClient, didReply bits: UInt64, reply: borrowing RedisReply) {
        if let tag = Tag(bits) { component?.didReply(tag, reply) }
    }

    func redis(_ client: RedisClient, didFail bits: UInt64, fault: RedisFault) {
        guard let tag = Tag(bits) else { return }
        refused.append(tag)
        let isAbsent = fault.isLasting && tag.question.row.absentKey != nil
        component?.didFail(tag, fault, isAbsent: isAbsent)
    }
}

extension EventJob.Origin {
    /// Of a record that no ledger of the shard has.
    static func alone(
        _ partition: Int32 = 0, topic: Int = 0, _ inputClass: InputClass = .events, kafkaMs: Int64 = 0
    ) -> Self {
        var ledger = OffsetLedger()
        var source = EventSource()
        let place = TopicPartition(topic: topic, partition: partition)
        ledger.assign(place)
        guard case .tracked(let slot) = ledger.receive(place, offset: 0, bytes: 1, nowNanos: 0) else {
            preconditionFailure("a ledger that takes no record")
        }
        source.kafkaMs = kafkaMs
        return Self(partition: place, place: RecordPlace(slot, inputClass), source: source)
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

extension RecipientJob {
    /// The record with which it leaves, or has left, for the topic.
    var leftWith: ParkedRecord? { machine.leaving ?? event.parting.first { $0.uid?.isSame(as: uid) ?? false } }
}

extension ParkedRecord {
    init(app: String, uid: String?, raw: [UInt8], cause: ParkCause, dueMs: Int64, writtenMs: Int64, id: String) {
        self.init(
            ParkedEvent(app: app, id: id, raw: raw, source: EventSource(), conversation: ""), uid: uid, cause: cause,
            dueMs: dueMs, writtenMs: writtenMs)
    }

    /// Sets the source of its event.
    mutating func come(from source: EventSource) {
        event = ParkedEvent(
            app: app, id: id, raw: raw, source: source, conversation: conversation, part: part,
            chunkName: event.chunkName, expiresAtMs: event.expiresAtMs)
    }
}

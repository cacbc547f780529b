// SPDX-License-Identifier: Apache-2.0
import Crypto
import EventLoop
import Kafka
import Processes
import PushCore
import Support
import Telemetry

@testable import Worker

/// A pipeline on a loop of its own whose servers are all away: what comes in is laid into its trays by hand, and what it has in
/// hand is looked at.
enum PipelineWorld {
    /// Runs a closure with a pipeline on its loop, in one turn of it.
    ///
    /// - Parameter logFD: where its log goes; nil: nowhere.
    static func with<Value: Sendable>(
        logFD: Int32? = nil, _ body: @Sendable (Pipeline) throws -> Value
    ) async throws -> Value {
        let folder = try TemporaryFolder()
        let key = try folder.write(try PrivateKey.generate().pem(), to: "key.p8")
        let configuration = try configuration(key: key)
        let loop = try TestLoop("pipeline")
        let value = try await loop.run { test in
            let parts = ShardParts(
                index: 0, loop: test.loop, configuration: configuration, registry: MetricsRegistry(),
                log: logFD.map { Log(level: .warning, fd: $0) } ?? .off, shared: ProcessShared(shardCount: 1))
            let pipeline = Pipeline(try parts.make())
            test.keep(pipeline)
            defer { pipeline.shut() }
            return try body(pipeline)
        }
        await loop.end()
        return value
    }

    private static func configuration(key: String) throws -> Configuration {
        let text = """
            kafka: {brokers: "127.0.0.1:1", group: nobody}
            redis: {url: "redis://127.0.0.1:1"}
            apps:
              - id: im
                topic: com.example.im
                environment: production
                endpoint: "https://127.0.0.1:1"
                credentials: {key_file: \(key), key_id: ABC123DEFG, team_id: DEF123GHIJ}
            """
        switch Configuration.read(Array(text.utf8), source: "world.yaml") {
        case .success(let configuration): return configuration
        case .failure(let problems): throw SetupFault("\(problems)")
        }
    }

    /// Where no ledger has a record.
    static func origin(_ partition: Int32, topic: Int = 0, _ inputClass: InputClass = .events) throws -> EventJob.Origin
    {
        var ledger = OffsetLedger()
        let place = TopicPartition(topic: topic, partition: partition)
        ledger.assign(place)
        guard case .tracked(let slot) = ledger.receive(place, offset: 0, bytes: 1, nowNanos: 0) else {
            throw SetupFault("a ledger that takes no record")
        }
        return EventJob.Origin(partition: place, place: RecordPlace(slot, inputClass), source: EventSource())
    }
}

extension Pipeline {
    /// A message as it was read.
    ///
    /// - Parameter members: of the chunk of a large group that the job is for; nil: it is for the message's own receivers.
    func read(
        _ id: String, to uids: [String]?, conversation: String = "c", members: [MemberPage.Member]? = nil,
        _ origin: EventJob.Origin
    ) throws -> (record: ReceivedRecord, job: EventJob) {
        let list = uids.map { ",\"to\":{\"uids\":[\($0.map { "\"\($0)\"" }.joined(separator: ","))]}" } ?? ""
        let text = """
            {"v":1,"kind":"message","app":"im","event_id":"\(id)","sent_ms":\(shard.nowMs),"msg_id":"\(id)",\
            "conv":{"id":"\(conversation)","type":"group"},"from":{"uid":"sender"}\(list),"type_name":"RC:TxtMsg",\
            "push":{"content":"x"}}
            """
        let event = try shard.reader.read(Array(text.utf8), of: .events)
        guard case .message(let message) = event.body, let app = apps["im"] else {
            throw SetupFault("the message is none")
        }
        let raw = Array(text.utf8)
        let chunk = members.map {
            ChunkRecord(app: "im", conversation: conversation, part: 0, members: $0, source: EventSource(), raw: raw)
        }
        return (
            ReceivedRecord(content: .event(event, raw: raw), origin: origin),
            EventJob(message, of: event, app: app, raw: raw, origin: origin, chunk: chunk)
        )
    }
}

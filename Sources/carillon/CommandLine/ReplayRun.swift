import Console
import JSON
import Kafka
import Worker

/// A line that cannot be replayed, or a topic that is not there.
struct ReplayFault: Error {
    var message: String
}

/// A first look at the file: how much there is, and its newest time.
struct ReplaySurvey {
    private(set) var count = 0
    private(set) var newestMs: Int64?

    init(path: String, stop: StopFlag) throws(LineReader.Fault) {
        let reader = try LineReader(path: path)
        let parser = JSONParser(maxBytes: RecordLine.bytesMax)
        while !stop.isSet, let line = reader.next() {
            count += 1
            let value = RecordLine(line, parser).map { $0.value ?? [] } ?? line
            let parsed = parser.parse(value) { (root) throws(Never) in root["sent_ms"]?.int }
            if case .read(let sentMs?) = parsed { newestMs = max(newestMs ?? .min, sentMs) }
        }
    }
}

/// Reads lines as records and writes each to its topic.
final class ReplayRun {
    /// A record with its place in time.
    struct Record {
        var topic: String
        var key: [UInt8]?
        var value: [UInt8]?
        /// When it was recorded or sent; nil: unknown.
        var atMs: Int64?
    }

    private let client: KafkaConfiguration
    private let known: Set<String>
    private let topics: Configuration.Topics
    private let topic: String?
    private let shift: TimeShift?
    private let parser = JSONParser(maxBytes: RecordLine.bytesMax)
    private var writers: [String: KafkaTopicWriter] = [:]
    private var refused: [String: Int] = [:]

    /// Asks the cluster which topics there are, so that a wrong name is told before anything is written.
    init(_ configuration: Configuration, topic: String?, shift: TimeShift?) throws {
        client = configuration.kafka.client(id: "carillon-replay")
        known = Set(try ClusterMetadata.fetch(client, timeoutMs: 10_000).topics.map(\.name))
        topics = configuration.kafka.topics
        self.topic = topic
        self.shift = shift
        if let topic { _ = try writer(topic) }
    }

    func read(_ line: [UInt8]) -> Record {
        let recorded = RecordLine(line, parser)
        let value = recorded == nil ? line : recorded?.value
        var record = Record(topic: "", key: recorded?.key, value: value, atMs: recorded?.timestampMs)
        var home = topics.events
        let facts = parser.parse(value ?? []) { (root) throws(Never) in
            (
                kind: root["kind"]?.string, uid: root["uid"]?.string, conversation: root["conv"]?["id"]?.string,
                sentMs: root["sent_ms"]?.int
            )
        }
        if case .read(let facts) = facts {
            if let kind = facts.kind, !["message", "revoke", "live_activity"].contains(kind) {
                home = topics.userState
            }
            if recorded == nil { record.key = (facts.conversation ?? facts.uid).map { Array($0.utf8) } }
            record.atMs = record.atMs ?? facts.sentMs
        }
        record.topic = topic ?? recorded?.topic ?? home
        if let shift, let value { record.value = shift.apply(to: value) }
        return record
    }

    func write(_ record: Record, line: Int) throws {
        let writer: KafkaTopicWriter
        do {
            writer = try self.writer(record.topic)
        } catch let fault as ReplayFault {
            throw ReplayFault(message: "line \(line): \(fault.message)")
        }
        let error = Self.with(record.key) { key in
            Self.with(record.value) { value in writer.write(key: key, value: value) }
        }
        if let error { refused[error.name, default: 0] += 1 }
    }

    /// Waits for the brokers' word on everything.
    func finish() -> Bool {
        var isDone = true
        for writer in writers.values where !writer.finish() { isDone = false }
        return isDone
    }

    var written: UInt64 { writers.values.reduce(0) { $0 + $1.written } }

    var failures: [String: Int] {
        var failures = refused
        for (code, count) in writers.values.flatMap(\.failures) {
            failures[KafkaError.name(of: code), default: 0] += Int(clamping: count)
        }
        return failures
    }

    private func writer(_ topic: String) throws -> KafkaTopicWriter {
        if let writer = writers[topic] { return writer }
        guard known.contains(topic) else {
            throw ReplayFault(message: "topic \(topic) does not exist: create it, or choose another with --topic")
        }
        let writer = try KafkaTopicWriter(client, topic: topic)
        writers[topic] = writer
        return writer
    }

    private static func with<Result>(_ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) -> Result) -> Result {
        guard let bytes else { return body(nil) }
        return bytes.withUnsafeBytes { body($0) }
    }
}

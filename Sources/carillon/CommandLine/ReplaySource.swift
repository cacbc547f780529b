// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import Kafka
import Recording
import Worker

/// Reads a file's lines as records for topics.
final class ReplaySource {
    /// A record with its time.
    struct Record {
        var topic = ""
        var key: [UInt8]?
        var value: [UInt8]?
        var headers: [KafkaHeader] = []
        /// Time of recording or sending, Unix ms; nil if unknown.
        var atMs: Int64?
        var sentMs: Int64?
        /// `server_seq` and `up_to_seq`, if present.
        var seqs: [Int64] = []
        /// The line looks like a recording's line but cannot be read as one.
        var isBroken = false
        /// A worker refused it, and it was recorded from the dead-letter topic.
        var isDeadLetter = false
    }

    private struct Facts {
        var isEvent: Bool
        var uid: String?
        var conversation: String?
        var sentMs: Int64?
        var seqs: [Int64]
    }

    private let topics: Configuration.Topics
    private let topic: String?
    private let parser = JSONParser(maxBytes: RecordLine.bytesMax)

    /// - Parameter topic: the topic for all records; nil for each record's own topic, or the topic of its kind.
    init(_ topics: Configuration.Topics, topic: String?) {
        self.topics = topics
        self.topic = topic
    }

    var hasChosenTopic: Bool { topic != nil }

    func read(_ line: [UInt8]) -> Record {
        let recorded = RecordLine(line, parser)
        let value = recorded == nil ? line : recorded?.value
        var record = Record(key: recorded?.key, value: value, atMs: recorded?.timestampMs)
        record.isBroken = recorded == nil && RecordLine.isBroken(line, parser)
        var home = topics.events
        let facts = parser.parse(value ?? []) { (root) throws(Never) in Self.facts(root) }
        if case .read(let facts) = facts {
            if !facts.isEvent { home = topics.userState }
            if recorded == nil { record.key = (facts.conversation ?? facts.uid).map { Array($0.utf8) } }
            record.sentMs = facts.sentMs
            record.atMs = record.atMs ?? facts.sentMs
            record.seqs = facts.seqs
        }
        record.topic = topic ?? recorded?.topic ?? home
        if let headers = recorded?.headers, !headers.isEmpty { take(headers, &record) }
        if topics.deadLetter.isSame(as: recorded?.topic) { record.isDeadLetter = true }
        return record
    }

    /// Drops the worker's dead-letter headers, which have no use when the record is written again.
    private func take(_ headers: [RecordLine.Header], _ record: inout Record) {
        record.isDeadLetter = DeadLetterNote.markNames.allSatisfy { name in
            headers.contains { $0.name.isSame(as: name) }
        }
        let kept = record.topic.isSame(as: topics.deadLetter) ? headers : DeadLetterNote.others(headers)
        record.headers = kept.map { KafkaHeader(name: $0.name, value: $0.value) }
    }

    private static func facts(_ root: JSONCursor) -> Facts {
        let kind = root["kind"]
        // A record without a kind goes to the events topic, where the worker reports bad events.
        let isEvent = ["message", "revoke", "live_activity"].contains { word in
            kind?.utf8.map { $0.elementsEqual(word.utf8) } ?? true
        }
        return Facts(
            isEvent: isEvent, uid: root["uid"]?.string, conversation: root["conv"]?["id"]?.string,
            sentMs: root["sent_ms"]?.int, seqs: [root["server_seq"]?.int, root["up_to_seq"]?.int].compactMap { $0 })
    }
}

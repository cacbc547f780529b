// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Kafka
import PushCore
import Worker

/// What `check` says about recent records: a key that is neither the conversation's id nor a user's loses the order of
/// records, and a field that no reader knows has no effect.
struct KeyCheck {
    let configuration: Configuration
    /// Per topic.
    private static let recordsMax = 500
    private static let span: Int64 = 3_600_000

    init(configuration: Configuration) { self.configuration = configuration }

    private struct Look {
        var all = 0
        var unusual = 0
        /// Records with unknown fields, and these fields, as many as a line has room for.
        var unknown = 0
        var fields: [UnknownField] = []
    }

    private static let fieldsMax = 5

    func findings() -> [Finding] {
        let topics = configuration.kafka.topics
        return [(topics.events, RecordClass.events), (topics.userState, .userState)].flatMap { topic, kind in
            guard let look = readLastHour(topic, kind), look.all > 0 else { return [Finding]() }
            return [Self.keys(look, topic, kind)] + Self.fields(look, topic)
        }
    }

    private static func keys(_ look: Look, _ topic: String, _ kind: RecordClass) -> Finding {
        let wanted = kind == .events ? "conv.id" : "uid"
        guard look.unusual > 0 else {
            return Finding(
                .ok, "keys", topic, "the last \(counted(look.all, "record")): as the contract wants (\(wanted))")
        }
        return Finding(
            .warn, "keys", topic,
            "\(look.unusual) of the last \(counted(look.all, "record")) have an unusual key: produce with \(wanted) as the key, "
                + "since Kafka orders the records of one key only")
    }

    /// A warning where a field is probably misspelt: other fields may be the sender's own.
    private static func fields(_ look: Look, _ topic: String) -> [Finding] {
        guard look.unknown > 0 else { return [] }
        let words = look.fields.map(\.words).joined(separator: "; ")
        return [
            Finding(
                look.fields.contains { $0.near != nil } ? .warn : .ok, "fields", topic,
                "\(look.unknown) of the last \(counted(look.all, "record")) have fields without an effect: \(words)")
        ]
    }

    /// Looks at records of the last hour; nil if the topic cannot be read.
    private func readLastHour(_ topic: String, _ kind: RecordClass) -> Look? {
        let reader = EventReader(apps: configuration.apps.map(\.policy.id))
        let client = configuration.kafka.client(id: "carillon-check")
        let start = KafkaTopicReader.Start.timeMs(Loop.wallMs() - Self.span)
        guard let records = try? KafkaMergedReader(client, topics: [topic], from: start) else { return nil }
        var look = Look()
        let deadlineMs = Loop.wallMs() + 5_000
        _ = try? records.read(silenceMs: 2_000, isStopped: { Loop.wallMs() > deadlineMs }) { _, record in
            // A bad record has no key that could be right.
            if let value = record.value, let event = try? reader.read(value, of: kind) {
                look.all += 1
                if event.hasUnusualKey(record.key) { look.unusual += 1 }
                let fields = reader.unknownFields(Array(value))
                if !fields.isEmpty { look.unknown += 1 }
                // Fields with a probable meaning come first.
                let new = fields.filter { !look.fields.contains($0) }
                look.fields = Array(
                    (look.fields + new).sorted { $0.near != nil && $1.near == nil }.prefix(Self.fieldsMax))
            }
            return look.all < Self.recordsMax ? .goOn : .stop
        }
        return look
    }
}

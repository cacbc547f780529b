// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import Kafka
import PushCore
import Worker

/// What `check` says about the keys of recent records: a key that is neither the conversation's id nor a user's loses the
/// order of records.
struct KeyCheck {
    let configuration: Configuration
    /// Per topic.
    private static let recordsMax = 500
    private static let span: Int64 = 3_600_000

    init(configuration: Configuration) { self.configuration = configuration }

    func findings() -> [Finding] {
        let topics = configuration.kafka.topics
        return [(topics.events, RecordClass.events), (topics.userState, .userState)].compactMap { topic, kind in
            guard let (unusual, all) = count(topic, kind), all > 0 else { return nil }
            let wanted = kind == .events ? "conv.id" : "uid"
            guard unusual > 0 else {
                return Finding(
                    .ok, "keys", topic, "the last \(counted(all, "record")): as the contract wants (\(wanted))")
            }
            return Finding(
                .warn, "keys", topic,
                "\(unusual) of the last \(counted(all, "record")) have an unusual key: produce with \(wanted) as the key, "
                    + "since Kafka orders the records of one key only")
        }
    }

    /// Looks at records of the last hour; nil if the topic cannot be read.
    private func count(_ topic: String, _ kind: RecordClass) -> (unusual: Int, all: Int)? {
        let reader = EventReader(apps: configuration.apps.map(\.policy.id))
        let client = configuration.kafka.client(id: "carillon-check")
        let start = KafkaTopicReader.Start.timeMs(Loop.wallMs() - Self.span)
        guard let records = try? KafkaMergedReader(client, topics: [topic], from: start) else { return nil }
        var (unusual, all) = (0, 0)
        let deadlineMs = Loop.wallMs() + 5_000
        _ = try? records.read(silenceMs: 2_000, isStopped: { Loop.wallMs() > deadlineMs }) { _, record in
            // A bad record has no key that could be right.
            if let value = record.value, let event = try? reader.read(value, of: kind) {
                all += 1
                if event.hasUnusualKey(record.key) { unusual += 1 }
            }
            return all < Self.recordsMax ? .goOn : .stop
        }
        return (unusual, all)
    }
}

// SPDX-License-Identifier: Apache-2.0
import Kafka
import Support
import Testing

@Suite("Reading and writing topics by commands", .timeLimit(.minutes(10)))
struct TopicReaderTests {
    @Test func aTopicIsReadFromAPointToItsEndWithoutAGroup() async throws {
        struct Outcome {
            var written: UInt64, all: Int, ended: KafkaTopicReader.Outcome
            var late: [String], offset: [Int64], beyond: Int, stopped: KafkaTopicReader.Outcome
        }
        let outcome = try await offPool { () throws -> Outcome in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 3)
            let settings = KafkaConfiguration(brokers: broker.bootstrap, options: ["fetch.wait.max.ms": "10"])
            let writer = try KafkaTopicWriter(settings, topic: "events")
            for index in 0..<30 {
                let refused = Array("v\(index)".utf8).withUnsafeBytes {
                    writer.write(
                        key: nil, value: $0, partition: Int32(index % 3), timestampMs: 1_700_000_001_000 + Int64(index))
                }
                if let refused { throw refused }
            }
            _ = writer.finish()
            var all = 0
            let ended = try KafkaTopicReader(settings, topic: "events").read { _ in
                all += 1
                return .goOn
            }
            var late: [String] = []
            _ = try KafkaTopicReader(settings, topic: "events", from: .timeMs(1_700_000_001_027)).read { record in
                late.append(record.value.map { String(decoding: $0, as: UTF8.self) } ?? "null")
                return .goOn
            }
            var offsets: [Int64] = []
            let reader = try KafkaTopicReader(settings, topic: "events", from: .offset(9))
            _ = try reader.read { record in
                offsets.append(record.offset)
                return .goOn
            }
            var beyond = 0
            _ = try KafkaTopicReader(settings, topic: "events", from: .offset(1000)).read { _ in
                beyond += 1
                return .goOn
            }
            let stopped = try KafkaTopicReader(settings, topic: "events").read { _ in .stop }
            return Outcome(
                written: writer.written, all: all, ended: ended, late: late.sorted(), offset: offsets,
                beyond: beyond, stopped: stopped)
        }
        #expect(outcome.written == 30)
        #expect(outcome.all == 30)
        #expect(outcome.ended == .reachedEnd)
        #expect(outcome.late == ["v27", "v28", "v29"])
        #expect(outcome.offset == [9, 9, 9])
        #expect(outcome.beyond == 0)
        #expect(outcome.stopped == .stopped)
    }

    @Test func anUnknownTopicIsAFaultThatNamesIt() async throws {
        let text = try await offPool { () throws -> String in
            let broker = try MockBroker()
            do {
                _ = try KafkaTopicReader(KafkaConfiguration(brokers: broker.bootstrap), topic: "nowhere")
                return "made"
            } catch { return "\(error)" }
        }
        #expect(text.contains("nowhere"))
        #expect(text.contains("UNKNOWN_TOPIC_OR_PART"))
    }
}

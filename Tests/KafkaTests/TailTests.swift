// SPDX-License-Identifier: Apache-2.0
import Kafka
import Support
import Testing

/// A topic that is watched, or read in several goes, and a group that is asked about.
@Suite(.timeLimit(.minutes(10))) struct TailTests {
    @Test func aTailReadsWhatIsWrittenAfterItBegan() async throws {
        let (values, reached, before) = try await offPool { () throws -> ([String], Bool, Bool) in
            let broker = try MockBroker()
            try broker.createTopic("results", partitions: 3)
            let settings = KafkaConfiguration(brokers: broker.bootstrap)
            let writer = try KafkaTopicWriter(settings, topic: "results")
            func write(_ texts: [String]) {
                for (index, text) in texts.enumerated() {
                    _ = Array(text.utf8).withUnsafeBytes {
                        writer.write(key: nil, value: $0, partition: Int32(index % 3))
                    }
                }
                _ = writer.finish()
            }
            write(["old 1", "old 2", "old 3", "old 4"])
            let tail = try KafkaTail(settings, topic: "results")
            write(["new 1", "new 2"])
            let ends = try tail.ends()
            let before = tail.hasReached(ends)
            var values: [String] = []
            while !tail.hasReached(ends) {
                tail.take(max: 10) { record in
                    values.append(record.value.map { String(decoding: $0, as: UTF8.self) } ?? "null")
                }
            }
            return (values, tail.hasReached(ends), before)
        }
        #expect(values.sorted() == ["new 1", "new 2"] && reached && !before)
    }

    @Test(arguments: [KafkaTopicReader.Start.earliest, .offset(1), .timeMs(1)])
    func aReaderThatResumesGoesOnWhereItEnded(start: KafkaTopicReader.Start) async throws {
        let reads = try await offPool { () throws -> [[String]] in
            let broker = try MockBroker()
            try broker.createTopic("results", partitions: 3)
            let settings = KafkaConfiguration(brokers: broker.bootstrap)
            let writer = try KafkaTopicWriter(settings, topic: "results")
            func write(_ texts: [String], partition: Int32) {
                for text in texts {
                    _ = Array(text.utf8).withUnsafeBytes { writer.write(key: nil, value: $0, partition: partition) }
                }
                _ = writer.finish()
            }
            func read(_ reader: KafkaTopicReader) throws -> [String] {
                var values: [String] = []
                let outcome = try reader.read { record in
                    values.append(record.value.map { String(decoding: $0, as: UTF8.self) } ?? "null")
                    return .goOn
                }
                #expect(outcome == .reachedEnd)
                try reader.pause()
                return values.sorted()
            }
            // One partition stays empty until the first read is over.
            write(["a0", "a1"], partition: 0)
            write(["b0", "b1"], partition: 1)
            let reader = try KafkaTopicReader(settings, topic: "results", from: start)
            var reads = [try read(reader)]
            try reader.resume()
            reads.append(try read(reader))
            write(["a2"], partition: 0)
            write(["c0", "c1"], partition: 2)
            try reader.resume()
            reads.append(try read(reader))
            return reads
        }
        let isFirstSkipped = start == .offset(1)
        #expect(reads[0] == (isFirstSkipped ? ["a1", "b1"] : ["a0", "a1", "b0", "b1"]))
        #expect(reads[1] == [])
        #expect(reads[2] == (isFirstSkipped ? ["a2", "c1"] : ["a2", "c0", "c1"]))
    }

    @Test func aGroupThatNeverCommittedHasAllToSettle() async throws {
        let partitions = try await offPool { () throws -> [KafkaGroupLag.Partition] in
            let broker = try MockBroker()
            try broker.createTopic("events", partitions: 2)
            let settings = KafkaConfiguration(brokers: broker.bootstrap, group: "nobody")
            let writer = try KafkaTopicWriter(settings, topic: "events")
            for _ in 0..<3 { _ = [UInt8(1)].withUnsafeBytes { writer.write(key: nil, value: $0, partition: 1) } }
            _ = writer.finish()
            return try KafkaGroupLag(settings, topics: ["events", "nowhere"]).measure()
        }
        #expect(partitions.map(\.partition) == [0, 1] && partitions.map(\.committed) == [nil, nil])
        #expect(partitions.map(\.records) == [0, 3])
    }

    @Test(arguments: [(nil, 10, 2, 8), (4, 10, 2, 6), (10, 10, 0, 0), (1, 10, 4, 6), (12, 10, 0, 0)])
    func lagCountsRecordsBehindTheCommittedOffset(committed: Int64?, end: Int64, start: Int64, records: Int64) {
        let partition = KafkaGroupLag.Partition(
            topic: "t", partition: 0, committed: committed, end: end, start: start)
        #expect(partition.records == records)
    }
}

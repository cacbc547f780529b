// SPDX-License-Identifier: Apache-2.0
import Kafka
import Support
import Testing

/// Topics read side by side.
@Suite(.timeLimit(.minutes(10))) struct MergedReaderTests {
    /// What was read of one record.
    private struct Seen: Sendable {
        var topic: String
        var partition: Int32
        var offset: Int64
        var timeMs: Int64
    }

    private static let topics = ["a", "b", "c"]

    private static func fill(_ settings: KafkaConfiguration, seed: UInt64, jitterMs: Int64) throws {
        var random = SeededGenerator(seed: seed)
        let writers = try topics.map { try KafkaTopicWriter(settings, topic: $0) }
        for index in 0..<3000 {
            let timeMs =
                1_700_001_000_000 + Int64(index) * 10
                + (jitterMs == 0 ? 0 : Int64.random(in: 0...jitterMs, using: &random))
            let partition = Int32.random(in: 0..<4, using: &random)
            let writer = writers[Int.random(in: 0..<3, using: &random)]
            let refused = [UInt8(1)].withUnsafeBytes {
                writer.write(key: nil, value: $0, partition: partition, timestampMs: timeMs)
            }
            if let refused { throw refused }
        }
        for writer in writers { _ = writer.finish() }
    }

    private static func read(
        _ settings: KafkaConfiguration, from start: KafkaTopicReader.Start = .earliest,
        until end: KafkaMergedReader.End = .present
    ) throws -> (seen: [Seen], outcome: KafkaTopicReader.Outcome) {
        var seen: [Seen] = []
        let reader = try KafkaMergedReader(settings, topics: topics, from: start, until: end)
        let outcome = try reader.read { topic, record in
            seen.append(
                Seen(
                    topic: topic, partition: record.partition.partition, offset: record.offset,
                    timeMs: record.timestampMs ?? -1))
            return .goOn
        }
        return (seen, outcome)
    }

    /// - Parameter jitterMs: how far the times of one partition go back and forth.
    @Test(arguments: [0, 5000] as [Int64])
    func recordsOfAllPartitionsComeInTheOrderOfTheirTimes(jitterMs: Int64) async throws {
        let seed = UInt64.random(in: 0 ... .max)
        let (all, part) = try await offPool {
            let broker = try MockBroker()
            for topic in Self.topics { try broker.createTopic(topic, partitions: 4) }
            let settings = KafkaConfiguration(brokers: broker.bootstrap, options: ["fetch.wait.max.ms": "10"])
            try Self.fill(settings, seed: seed, jitterMs: jitterMs)
            let part = try Self.read(settings, from: .timeMs(1_700_001_010_000), until: .timeMs(1_700_001_020_000))
            return (try Self.read(settings), part)
        }
        #expect(all.outcome == .reachedEnd && all.seen.count == 3000, "seed \(seed)")
        var next: [String: Int64] = [:]
        for record in all.seen {
            let lane = "\(record.topic) \(record.partition)"
            #expect(record.offset == next[lane] ?? 0, "seed \(seed)")
            next[lane] = record.offset + 1
        }
        let steps = zip(all.seen, all.seen.dropFirst())
        if jitterMs == 0 {
            #expect(steps.allSatisfy { $0.timeMs <= $1.timeMs }, "seed \(seed)")
            #expect(part.seen.map(\.timeMs) == (1000..<2000).map { 1_700_001_000_000 + $0 * 10 }, "seed \(seed)")
        } else {
            // A partition's own order counts more; who is behind waits no longer than that costs.
            #expect(steps.allSatisfy { $0.timeMs - $1.timeMs <= jitterMs }, "seed \(seed)")
            #expect(
                part.seen.allSatisfy { (1_700_001_010_000..<1_700_001_020_000).contains($0.timeMs) }, "seed \(seed)")
        }
    }

    /// A broker that is away holds up its own partitions, and is told of.
    @Test func aPartitionThatCannotBeReadHoldsUpNoOther() async throws {
        let (seen, outcome) = try await offPool { () throws -> ([Int32], KafkaTopicReader.Outcome) in
            let broker = try MockBroker(brokers: 2)
            try broker.createTopic("a", partitions: 2)
            for partition in 0..<2 { try broker.setLeader(topic: "a", partition: partition, broker: partition + 1) }
            let settings = KafkaConfiguration(brokers: broker.bootstrap, options: ["fetch.wait.max.ms": "10"])
            let writer = try KafkaTopicWriter(settings, topic: "a")
            for index in 0..<10 as Range<Int32> {
                _ = [UInt8(1)].withUnsafeBytes { writer.write(key: nil, value: $0, partition: index % 2) }
            }
            _ = writer.finish()
            try broker.setDown(broker: 2)
            var seen: [Int32] = []
            let outcome = try KafkaMergedReader(settings, topics: ["a"]).read(silenceMs: 1500) { _, record in
                seen.append(record.partition.partition)
                return .goOn
            }
            return (seen, outcome)
        }
        #expect(seen == [0, 0, 0, 0, 0] && outcome == .timedOut)
    }

    @Test func aReaderStopsAtTheRequestedOffset() async throws {
        let (count, idle) = try await offPool { () throws -> (Int, KafkaTopicReader.Outcome) in
            let broker = try MockBroker()
            for topic in Self.topics { try broker.createTopic(topic, partitions: 1) }
            let settings = KafkaConfiguration(brokers: broker.bootstrap, options: ["fetch.wait.max.ms": "10"])
            let writer = try KafkaTopicWriter(settings, topic: "b")
            for _ in 0..<5 { _ = [UInt8(1)].withUnsafeBytes { writer.write(key: nil, value: $0) } }
            _ = writer.finish()
            var count = 0
            _ = try KafkaMergedReader(settings, topics: Self.topics, until: .never).read { _, _ in
                count += 1
                return count == 5 ? .stop : .goOn
            }
            // Nothing more comes, and nobody knows when something will.
            let reader = try KafkaMergedReader(settings, topics: Self.topics, from: .offset(9), until: .never)
            var looks = 0
            let idle = try reader.read(isStopped: {
                looks += 1
                return looks > 5
            }) { _, _ in .goOn }
            return (count, idle)
        }
        #expect(count == 5 && idle == .stopped)
    }
}

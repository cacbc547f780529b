// SPDX-License-Identifier: Apache-2.0
package import EventLoop
import Glibc
package import Kafka
import Synchronization
import Telemetry

/// Reads a part of the user-state topic once more, and hands it to its loop in batches. The next batch is read once the loop
/// has called `goOn`, so that memory is bounded.
package protocol StateReplay: AnyObject {
    /// Begins to read from these places to the end that each partition has then.
    func start(from starts: [Int32: KafkaTopicReader.Start])
    /// The last batch is applied.
    func goOn()
    /// Ends the replay: no further step follows.
    func cancel()
}

/// Makes the replays of a shard.
package protocol StateReplaySource {
    /// - Parameter handler: called on the loop.
    func makeReplay(_ loop: Loop, _ handler: @escaping @Sendable (StateReplayStep) -> Void) -> any StateReplay
}

/// A step of a replay, for the loop.
package enum StateReplayStep: Sendable {
    /// In their order within a partition.
    case records([StateReplayRecord])
    /// Every record was delivered. `partitionCount` is the topic's number of partitions.
    case ended(partitionCount: Int)
    case failed(String)
}

package struct StateReplayRecord: Sendable {
    let value: [UInt8]
    /// Kafka's timestamp, Unix ms; 0 if there is none.
    let kafkaMs: Int64

    package init(value: [UInt8], kafkaMs: Int64) {
        self.value = value
        self.kafkaMs = kafkaMs
    }
}

/// Reads the topic from a cluster.
struct TopicReplaySource: StateReplaySource {
    var client: KafkaConfiguration
    var topic: String

    func makeReplay(_ loop: Loop, _ handler: @escaping @Sendable (StateReplayStep) -> Void) -> any StateReplay {
        TopicReplay(self, loop, handler)
    }
}

/// A replay on a thread of its own, without the group.
final class TopicReplay: StateReplay, Sendable {
    private static let recordsMax = 256
    private static let bytesMax = 1 << 20
    private static let silenceMs = 20_000

    private let client: KafkaConfiguration
    private let topic: String
    private let loop: Loop
    private let isCancelled = Atomic<Bool>(false)
    /// Whether the loop has room for a batch.
    private let hasRoom = Atomic<Bool>(true)
    private let handler: @Sendable (StateReplayStep) -> Void

    init(_ source: TopicReplaySource, _ loop: Loop, _ handler: @escaping @Sendable (StateReplayStep) -> Void) {
        client = source.client
        topic = source.topic
        self.loop = loop
        self.handler = handler
    }

    func start(from starts: [Int32: KafkaTopicReader.Start]) {
        let isBegun = runDetached { [self] in
            do {
                hand(.ended(partitionCount: try read(starts)))
            } catch {
                hand(.failed("\(error)"))
            }
        }
        if !isBegun { hand(.failed("no thread can be made")) }
    }

    func goOn() { hasRoom.store(true, ordering: .releasing) }

    func cancel() { isCancelled.store(true, ordering: .releasing) }

    private var isOver: Bool { isCancelled.load(ordering: .acquiring) }

    private func read(_ starts: [Int32: KafkaTopicReader.Start]) throws -> Int {
        let reader = try KafkaTopicReader(client, topic: topic, only: starts)
        var batch: [StateReplayRecord] = []
        var bytes = 0
        let outcome = try reader.read(silenceMs: Self.silenceMs, isStopped: { isOver }) { record in
            guard let value = record.value else { return .goOn }
            batch.append(StateReplayRecord(value: Array(value), kafkaMs: record.timestampMs ?? 0))
            bytes += value.count
            guard batch.count >= Self.recordsMax || bytes >= Self.bytesMax else { return .goOn }
            handBatch(&batch)
            bytes = 0
            return .goOn
        }
        if outcome == .timedOut { throw SilentTopic(topic: topic) }
        if !batch.isEmpty { handBatch(&batch) }
        awaitRoom()
        return reader.partitionCount
    }

    private func handBatch(_ batch: inout [StateReplayRecord]) {
        awaitRoom()
        hasRoom.store(false, ordering: .releasing)
        hand(.records(batch))
        batch = []
    }

    /// The thread is the reader's own and has nothing else to do.
    private func awaitRoom() {
        while !isOver, !hasRoom.load(ordering: .acquiring) { usleep(2_000) }
    }

    private func hand(_ step: StateReplayStep) {
        if isOver { return }
        loop.post { [self] in if !isOver { handler(step) } }
    }

    private struct SilentTopic: Error, CustomStringConvertible {
        let topic: String

        var description: String { "no broker gave the records of \(topic) in time" }
    }
}

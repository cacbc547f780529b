// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Kafka
import KafkaModel
import Worker

/// Reads user state once more from the model, without a thread.
struct ModelReplays: StateReplaySource {
    let host: ModelHost
    let topic: String

    func makeReplay(_ loop: Loop, _ handler: @escaping @Sendable (StateReplayStep) -> Void) -> any StateReplay {
        ModelReplay(host, topic) { step in loop.post { handler(step) } }
    }
}

/// A replay by a `ModelReader`.
private final class ModelReplay: StateReplay {
    private var reader: ModelReader?
    private var isCancelled = false

    init(_ host: ModelHost, _ topic: String, _ handler: @escaping (StateReplayStep) -> Void) {
        reader = ModelReader(host, topic: topic) { [weak self] step in
            guard self?.isCancelled == false else { return }
            switch step {
            case .records(let records):
                handler(
                    .records(
                        records.compactMap { record in
                            record.value.map { StateReplayRecord(value: $0, kafkaMs: Self.usable(record)) }
                        }))
            case .ended(let partitionCount): handler(.ended(partitionCount: partitionCount))
            case .failed: handler(.failed("no broker gave the records of \(topic) in time"))
            }
        }
    }

    /// As a consumer gives it: a time that is not in milliseconds counts as absent.
    private static func usable(_ record: ModelRecord) -> Int64 {
        let given = KafkaRecord(
            partition: TopicPartition(topic: 0, partition: 0), offset: record.offset,
            timestamp: (record.timestampMs, record.isAppendTime), key: nil, value: nil)
        return given.timestampMs ?? 0
    }

    func start(from starts: [Int32: KafkaTopicReader.Start]) { reader?.start(from: starts) }

    func goOn() { reader?.goOn() }

    func cancel() {
        isCancelled = true
        reader?.cancel()
    }
}

// SPDX-License-Identifier: Apache-2.0
package import Kafka

/// The Kafka clients of a process in a world.
package struct ModelClients: KafkaClients {
    package let host: ModelHost

    package init(_ host: ModelHost) { self.host = host }

    package func group(
        _ configuration: KafkaConfiguration, topics: [String], reportsEnds: Bool
    ) throws(KafkaFault) -> any GroupClient {
        ModelGroupClient(configuration, topics: topics, reportsEnds: reportsEnds, host)
    }

    package func producer(_ configuration: KafkaConfiguration) throws(KafkaFault) -> any ProducerClient {
        ModelProducer(configuration, host)
    }
}

/// Reads partitions of a topic from given places to the ends that they have then, in batches: the model's counterpart of
/// `KafkaTopicReader`, without a thread.
package final class ModelReader {
    package enum Step {
        case records([ModelRecord])
        case ended(partitionCount: Int)
        case failed
    }

    private let host: ModelHost
    private let topic: String
    private let connection: ModelConnection
    private var places: [(partition: Int32, start: KafkaTopicReader.Start)] = []
    private var next: Int64?
    private var end: Int64 = 0
    private var isCancelled = false
    /// For `goOn`.
    private var isWaiting = false
    private var model: KafkaModel { host.model }
    private let handler: (Step) -> Void

    package init(_ host: ModelHost, topic: String, _ handler: @escaping (Step) -> Void) {
        self.host = host
        self.topic = topic
        self.handler = handler
        connection = ModelConnection(host)
    }

    package func start(from starts: [Int32: KafkaTopicReader.Start]) {
        places = starts.sorted { $0.key < $1.key }.map { (partition: $0.key, start: $0.value) }
        step(attempts: 20)
    }

    /// The last batch is applied.
    package func goOn() {
        guard isWaiting else { return }
        isWaiting = false
        step(attempts: 20)
    }

    package func cancel() { isCancelled = true }

    private func step(attempts: Int) {
        if isCancelled { return }
        guard let place = places.first else { return handler(.ended(partitionCount: model.partitionCount(of: topic))) }
        let (topic, model) = (topic, model)
        connection.ask(
            broker: { model.canServe(topic, place.partition) ? model.leader(topic, place.partition) : nil }
        ) { [self] reply in
            reply(read(place.partition, place.start))
        } _: { [weak self] (batch: [ModelRecord]?) in
            guard let self, !isCancelled else { return }
            guard let batch else {
                if attempts == 0 { return handler(.failed) }
                return host.after(1_000_000_000) { [weak self] in self?.step(attempts: attempts - 1) }
            }
            if next.map({ $0 >= end }) ?? true {
                places.removeFirst()
                next = nil
            }
            if batch.isEmpty { return step(attempts: attempts) }
            isWaiting = true
            handler(.records(batch))
        }
    }

    /// At the broker.
    private func read(_ partition: Int32, _ start: KafkaTopicReader.Start) -> [ModelRecord] {
        guard let log = model.log(topic, partition) else { return [] }
        if next == nil {
            end = log.end
            next =
                switch start {
                case .earliest: log.start
                case .offset(let offset): max(offset, log.start)
                case .timeMs(let ms): log.records.first { $0.timestampMs >= ms }?.offset ?? log.end
                }
        }
        let from = max(next ?? log.start, log.start)
        let batch = (log.read(from: from, max: model.pick(1...256)) ?? []).filter { $0.offset < end }
        next = batch.last.map { $0.offset + 1 } ?? end
        return batch
    }
}

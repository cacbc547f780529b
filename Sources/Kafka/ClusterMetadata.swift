// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import Telemetry

/// A cluster's report on its brokers and topics. Control plane, for example for `check`.
public struct ClusterMetadata: Equatable, Sendable {
    public struct Broker: Equatable, Sendable {
        public let id: Int32
        public let host: String
        public let port: Int32
    }

    public struct Topic: Equatable, Sendable {
        public let name: String
        /// The partition numbers, rising.
        public let partitions: [Int32]
        /// Partitions without a leader: they can be neither read nor written.
        public let leaderless: [Int32]
        /// Set if the cluster refused the information, for example for lack of rights.
        public let error: KafkaError?
    }

    public let brokers: [Broker]
    public let topics: [Topic]

    /// The topic of that name; nil if the cluster has none, or none visible to us.
    public func topic(_ name: String) -> Topic? { topics.first { $0.name == name } }

    /// Asks any reachable broker. Blocks up to `timeoutMs` plus the connect: never call it on a loop.
    ///
    /// Lists all topics instead of asking by name, because a query by name creates the topic on some clusters.
    public static func fetch(
        _ configuration: KafkaConfiguration, timeoutMs: Int
    ) throws(KafkaFault) -> ClusterMetadata {
        let handle = try ClientHandle(configuration, role: .producer) { _ in }
        return try fetch(handle, timeoutMs: timeoutMs)
    }

    static func fetch(_ handle: ClientHandle, timeoutMs: Int) throws(KafkaFault) -> ClusterMetadata {
        var found: UnsafePointer<rd_kafka_metadata>?
        let code = rd_kafka_metadata(handle.raw, 1, nil, &found, Int32(clamping: timeoutMs))
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let found else {
            throw .call(doing: "listing topics", KafkaError(code))
        }
        defer { rd_kafka_metadata_destroy(found) }
        let metadata = found.pointee
        let brokers = UnsafeBufferPointer(start: metadata.brokers, count: Int(max(0, metadata.broker_cnt)))
        let topics = UnsafeBufferPointer(start: metadata.topics, count: Int(max(0, metadata.topic_cnt)))
        return ClusterMetadata(
            brokers: brokers.map {
                Broker(id: $0.id, host: $0.host.map { String(cString: $0) } ?? "", port: $0.port)
            },
            topics: topics.map(Topic.init))
    }
}

extension ClusterMetadata.Topic {
    fileprivate init(_ raw: rd_kafka_metadata_topic) {
        name = raw.topic.map { String(cString: $0) } ?? ""
        let all = UnsafeBufferPointer(start: raw.partitions, count: Int(max(0, raw.partition_cnt)))
        partitions = all.map(\.id).sorted()
        leaderless = all.filter { $0.leader < 0 }.map(\.id).sorted()
        error = raw.err == RD_KAFKA_RESP_ERR_NO_ERROR ? nil : KafkaError(raw.err)
    }
}

extension KafkaConsumer {
    /// Asks the broker for the total number of the topics' partitions, without blocking.
    ///
    /// Ask after an assignment: the topics exist then, so the query by name creates none.
    ///
    /// - Parameter done: called on another thread with nil if no broker answered within `timeoutMs`, or if there is no
    ///   thread.
    public func countPartitions(
        of topics: [String], timeoutMs: Int = 5_000, _ done: @escaping @Sendable (Int?) -> Void
    ) {
        client.countPartitions(of: topics, timeoutMs: timeoutMs, done)
    }
}

extension ClientHandle {
    /// On a separate thread, which ends with the answer, because librdkafka has no call for its own knowledge.
    func countPartitions(of topics: [String], timeoutMs: Int, _ done: @escaping @Sendable (Int?) -> Void) {
        let isBegun = runDetached { [self] in
            var sum = 0
            for name in topics {
                guard let count = countPartitions(of: name, timeoutMs: timeoutMs) else { return done(nil) }
                sum += count
            }
            done(sum)
        }
        if !isBegun { done(nil) }
    }

    /// - Returns: nil if no broker answered.
    fileprivate func countPartitions(of name: String, timeoutMs: Int) -> Int? {
        guard let topic = topic(name, timeoutMs: timeoutMs), topic.error == nil else { return nil }
        return topic.partitions.count
    }

    /// Asks for one topic by name; nil if no broker answered. Blocks up to `timeoutMs`.
    ///
    /// The list of all topics omits those that the user may not see; a query by name gives the reason. A broker older
    /// than 0.11 may create the topic.
    func topic(_ name: String, timeoutMs: Int) -> ClusterMetadata.Topic? {
        guard let topic = rd_kafka_topic_new(raw, name, nil) else { return nil }
        defer { rd_kafka_topic_destroy(topic) }
        var found: UnsafePointer<rd_kafka_metadata>?
        let code = rd_kafka_metadata(raw, 0, topic, &found, Int32(clamping: timeoutMs))
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR, let found else { return nil }
        defer { rd_kafka_metadata_destroy(found) }
        let topics = UnsafeBufferPointer(start: found.pointee.topics, count: Int(max(0, found.pointee.topic_cnt)))
        return topics.lazy.map(ClusterMetadata.Topic.init).first { $0.name == name }
    }
}

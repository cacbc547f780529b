// SPDX-License-Identifier: Apache-2.0
import Kafka

/// Topics that the brokers do not let the group read: they do not exist, or a right is missing. Each until one of its
/// partitions is assigned.
struct TopicRefusals {
    private var errors: [Int: KafkaError] = [:]

    /// - Parameters:
    ///   - partition: the only one that it concerns, if known.
    ///   - topics: of the consumer. librdkafka's text names the topic.
    mutating func note(_ error: KafkaError, _ partition: TopicPartition?, topics: [String]) {
        if !error.isUnknownTopic && !error.isDenied { return }
        if let partition { return errors[partition.topic] = error }
        for (index, topic) in topics.enumerated() where error.text.contains(" \(topic):") { errors[index] = error }
    }

    mutating func assigned(_ partitions: [TopicPartition]) {
        if errors.isEmpty { return }
        for partition in partitions { errors[partition.topic] = nil }
    }

    /// By topic, in words.
    func texts(_ topics: [String]) -> [String] {
        errors.sorted { $0.key < $1.key }.compactMap { index, error in
            guard topics.indices.contains(index) else { return nil }
            return error.isUnknownTopic
                ? "the topic \(topics[index]) does not exist" : "may not read \(topics[index]): \(error.name)"
        }
    }
}

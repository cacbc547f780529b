// SPDX-License-Identifier: Apache-2.0
import Kafka

/// The group's lag in a shard's partitions of each input topic.
///
/// Between two assignments the last value remains and its age grows. A topic without partitions here has no value: a 0 would
/// tell a scaler that there is no lag, although perhaps nobody reads.
struct TopicLags {
    /// The last known ones, by topic.
    private var lags: [Int: GroupLag] = [:]

    mutating func measure(
        _ consumer: KafkaConsumer, _ classes: [InputClass], _ metrics: PipelineMetrics, nowMs: Int64
    ) {
        for (index, topic) in consumer.topics.enumerated() where classes[index] != .parked {
            let metrics = metrics.lag(ofTopic: topic)
            if let lag = consumer.lag(ofTopic: index) {
                lags[index] = consumer.assignment.contains { $0.topic == index } ? lag : nil
            }
            if let lag = lags[index] { metrics.set(lag, nowMs: nowMs) } else { metrics.setUnknown() }
        }
    }
}

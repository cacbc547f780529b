// SPDX-License-Identifier: Apache-2.0
import Kafka

/// The headers of a dead letter, which keeps the bad record's key and value (contract section 0).
enum DeadLetter {
    /// Why the record is bad, and its position.
    static func headers(_ why: BadRecord, topic: String, partition: Int32, offset: Int64) -> [KafkaHeader] {
        [
            KafkaHeader(name: "carillon-error", text: why.header),
            KafkaHeader(name: "carillon-topic", text: topic),
            KafkaHeader(name: "carillon-partition", text: String(partition)),
            KafkaHeader(name: "carillon-offset", text: String(offset)),
        ]
    }

    /// A record of the worker's own that its topic refuses for its size.
    static func headers(tooLargeFor topic: String) -> [KafkaHeader] {
        [
            KafkaHeader(name: "carillon-error", text: "too_large: exceeds max.message.bytes of \(topic)"),
            KafkaHeader(name: "carillon-topic", text: topic),
        ]
    }
}

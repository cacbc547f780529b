import Kafka

/// What a dead letter carries beside the bad record's own key and value (contract section 0).
enum DeadLetter {
    /// Why the record is bad, and where it lies.
    static func headers(_ why: BadRecord, topic: String, partition: Int32, offset: Int64) -> [KafkaHeader] {
        [
            KafkaHeader(name: "carillon-error", text: why.header),
            KafkaHeader(name: "carillon-topic", text: topic),
            KafkaHeader(name: "carillon-partition", text: String(partition)),
            KafkaHeader(name: "carillon-offset", text: String(offset)),
        ]
    }
}

// SPDX-License-Identifier: Apache-2.0
import JSON
import Kafka
import KafkaModel
import LocalServers
import Processes
import StageWords
import Worker

/// What came out on each topic, read on from the last look.
struct StageOutput {
    private(set) var seen = Seen()
    private let partitions: Int
    private var places: [String: Int64] = [:]
    /// Records so far.
    private(set) var count = 0

    init(partitions: Int) { self.partitions = partitions }

    mutating func read(_ kafka: KafkaModel) throws {
        let topics = Configuration.Topics()
        for topic in [topics.results, topics.deliveries, topics.feedback, topics.sms, topics.deadLetter] {
            for partition in 0..<partitions {
                let place = places["\(topic) \(partition)"] ?? 0
                for record in kafka.records(topic, partition) where record.offset >= place {
                    places["\(topic) \(partition)"] = record.offset + 1
                    try take(record, of: topic, topics)
                }
            }
        }
    }

    private mutating func take(_ record: ModelRecord, of topic: String, _ topics: Configuration.Topics) throws {
        count += 1
        if topic == topics.deadLetter { return seen.letters.append(LocalCluster.Record(record)) }
        guard let value = record.value else { throw SetupFault("a record of \(topic) is null") }
        let json = try JSONTree(parsing: value)
        switch topic {
        case topics.results:
            if json["verdict"]?.string == "parked" { seen.parked.append(json) } else { seen.add(json) }
        case topics.deliveries: seen.deliveries.append(json)
        case topics.feedback: seen.feedback.append(json)
        default: seen.sms.append(json)
        }
    }
}

extension LocalCluster.Record {
    init(_ record: ModelRecord) {
        var headers: [String: String] = [:]
        for header in record.headers { headers[header.name] = header.value.map { String(decoding: $0, as: UTF8.self) } }
        self.init(key: record.key, value: record.value, headers: headers)
    }
}

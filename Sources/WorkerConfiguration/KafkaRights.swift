// SPDX-License-Identifier: Apache-2.0
/// The minimum Kafka rights of a worker's user.
public enum KafkaRights {
    /// The commands that grant them.
    public static func lines(_ configuration: Configuration) -> [String] {
        let kafka = configuration.kafka
        func line(_ operation: String, _ topics: [String]) -> String {
            grant("--operation \(operation) --operation Describe" + topics.map { " --topic \($0)" }.joined(), kafka)
        }
        return [
            line("Read", read(kafka.topics)), line("Write", written(configuration)),
            grant("--operation Read --group \(quoted(kafka.group))", kafka),
        ]
    }

    /// For brokers older than Kafka 2.8. Newer ones allow any producer to be idempotent (KIP-679).
    public static func lineBefore28(_ configuration: Configuration) -> String {
        grant("--operation IdempotentWrite --cluster", configuration.kafka)
    }

    private static func grant(_ what: String, _ kafka: Configuration.KafkaSection) -> String {
        let user = quoted("User:" + (kafka.options["sasl.username"] ?? "carillon"))
        return "kafka-acls --bootstrap-server \(quoted(kafka.brokers)) --add --allow-principal \(user) \(what)"
    }

    /// Topics that a worker reads.
    public static func read(_ topics: Configuration.Topics) -> [String] {
        [topics.events, topics.userState, topics.chunks, topics.parked]
    }

    /// Topics that a worker writes.
    static func written(_ configuration: Configuration) -> [String] {
        configuration.kafka.topics.all.filter { key, _ in
            switch key {
            case "events", "user_state": false
            case "state_results": configuration.stateResults
            default: true
            }
        }.map(\.name)
    }

    /// Quotes for a shell: topics are plain words, but a group or user may have any name.
    private static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: ".,:_-".utf8.contains(byte)
            }
        }
        return isPlain ? word : "'" + word.replacing("'", with: #"'\''"#) + "'"
    }
}

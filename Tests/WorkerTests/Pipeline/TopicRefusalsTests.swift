// SPDX-License-Identifier: Apache-2.0
import Kafka
import Testing

@testable import Worker

@Suite struct TopicRefusalsTests {
    private static let topics = ["im.events", "im.events.old"]

    @Test func aMissingTopicAndAMissingRightAreNamedUntilThePartitionIsAssigned() {
        var refusals = TopicRefusals()
        refusals.note(KafkaError(code: -195), nil, topics: Self.topics)
        #expect(refusals.texts(Self.topics).isEmpty, "a broker that is away refuses no topic")
        refusals.note(KafkaError(code: 3), TopicPartition(topic: 0, partition: 2), topics: Self.topics)
        refusals.note(KafkaError(code: 29), TopicPartition(topic: 1, partition: 0), topics: Self.topics)
        #expect(
            refusals.texts(Self.topics) == [
                "the topic im.events does not exist", "may not read im.events.old: TOPIC_AUTHORIZATION_FAILED",
            ])
        refusals.assigned([TopicPartition(topic: 0, partition: 0)])
        #expect(refusals.texts(Self.topics).count == 1)
    }

    @Test func aTopicThatOnlyTheTextNamesIsFoundByItsWholeName() {
        var refusals = TopicRefusals()
        let text = "Subscribed topic not available: im.events: Broker: Unknown topic or partition"
        refusals.note(KafkaError(code: 3, text: text), nil, topics: Self.topics)
        #expect(refusals.texts(Self.topics) == ["the topic im.events does not exist"])
    }
}

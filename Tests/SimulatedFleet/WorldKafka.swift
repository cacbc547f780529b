// SPDX-License-Identifier: Apache-2.0
package import KafkaModel
package import SimulatedSystem
import Worker

extension KafkaModel {
    /// The Kafka of a world: in its time, and with all of the worker's topics.
    package convenience init(_ system: SimulatedSystem, partitions: Int, brokers: Int = 1) {
        var settings = KafkaModelSettings()
        settings.wallOriginMs = system.originMs
        settings.brokers = brokers
        self.init(settings, nowNanos: { system.nowNanos }, random: { system.random.next() })
        for topic in Configuration.Topics().all { createTopic(topic.name, partitions: partitions) }
        system.part = ({ [unowned self] in nextNanos }, { [unowned self] _ in runNext() })
    }
}

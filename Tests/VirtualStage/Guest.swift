// SPDX-License-Identifier: Apache-2.0
import Kafka
import KafkaModel
import SimulatedFleet
import SimulatedSystem

/// A member of the workers' group that takes its share of the partitions and does nothing with it: it makes the group
/// share out anew when it comes and when it goes.
package final class Guest {
    private let consumer: KafkaConsumer
    private let system: SimulatedSystem

    package init(_ stage: Stage, topics: [String]) throws {
        system = stage.system
        var configuration = KafkaConfiguration(brokers: "model", group: "carillon", clientID: "guest")
        configuration.options = ["session.timeout.ms": "9000", "heartbeat.interval.ms": "1000"]
        let host = ModelHost(system.makeProcess("guest", host: "127.0.0.3"), stage.kafka, system: system)
        let client = try ModelClients(host).group(configuration, topics: topics, reportsEnds: false)
        consumer = KafkaConsumer(client)
        poll()
    }

    private func poll() {
        consumer.poll(max: 1000)
        if consumer.isClosed { return }
        system.after(nanos: 50_000_000) { [weak self] in self?.poll() }
    }

    /// Leaves; the end of it comes by and by.
    package func leave() { consumer.beginClose() }

    package var hasLeft: Bool { consumer.isClosed }
}

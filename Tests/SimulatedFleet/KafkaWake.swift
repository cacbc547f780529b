// SPDX-License-Identifier: Apache-2.0
package import KafkaModel
package import SimulatedSystem

/// The descriptor of a Kafka client.
package final class KafkaWake: KafkaModelWake {
    package let descriptor: Int32
    private let system: SimulatedSystem

    package init(_ system: SimulatedSystem) {
        self.system = system
        descriptor = system.makeDescriptor()
    }

    package func signal() { system.setReadable(descriptor, true) }
    package func drain() { system.setReadable(descriptor, false) }
}

extension ModelHost {
    /// The Kafka side of a process of the world.
    package convenience init(_ process: SimulatedProcess, _ kafka: KafkaModel, system: SimulatedSystem) {
        self.init(
            process.name, kafka, steadyNanos: { process.nowNanos }, wallMs: { process.wallMs },
            makeWake: { KafkaWake(system) })
    }
}

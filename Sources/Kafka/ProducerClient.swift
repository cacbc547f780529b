// SPDX-License-Identifier: Apache-2.0
/// The calls of a `KafkaProducer` to the Kafka client below it: librdkafka's (`NativeProducerClient`), or one of a model of a
/// cluster in tests. `KafkaProducer` has the rules of each call.
package protocol ProducerClient: AnyObject, Sendable {
    /// A clock that only rises, in ms.
    var steadyMs: Int64 { get }
    /// A new handle of a topic; nil if the client refuses the name.
    func makeTopic(_ name: String) -> KafkaTopic?
    func produce(
        to topic: KafkaTopic, key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, headers: [KafkaHeader],
        partition: Int32?, timestampMs: Int64?, opaque: UInt64
    ) -> ProduceOutcome
    /// Readable whenever `pollReports` has work.
    var wakeFD: Int32 { get }
    func pollReports(max: Int, _ visit: (DeliveryReport) -> Void) -> Int
    var pendingCount: Int { get }
    var fatalError: KafkaError? { get }
    var errorCounts: [Int32: UInt64] { get }
    func purge()
    /// Sends records that wait for a fuller batch.
    func endLinger()
    /// Blocks until there is a report or the time has passed; for shutdown, commands and tests.
    func wait(milliseconds: Int32)
}

/// Where a worker's Kafka clients come from: librdkafka, or a model of a cluster in tests.
package protocol KafkaClients {
    /// Joins the group and subscribes.
    func group(
        _ configuration: KafkaConfiguration, topics: [String], reportsEnds: Bool
    ) throws(KafkaFault) -> any GroupClient
    func producer(_ configuration: KafkaConfiguration) throws(KafkaFault) -> any ProducerClient
}

/// librdkafka's clients.
package struct NativeKafkaClients: KafkaClients {
    package init() {}

    package func group(
        _ configuration: KafkaConfiguration, topics: [String], reportsEnds: Bool
    ) throws(KafkaFault) -> any GroupClient {
        try NativeGroupClient(configuration, topics: topics, reportsEnds: reportsEnds)
    }

    package func producer(_ configuration: KafkaConfiguration) throws(KafkaFault) -> any ProducerClient {
        try NativeProducerClient(configuration)
    }
}

// SPDX-License-Identifier: Apache-2.0
import Kafka

/// Two producers: one for urgent records, one for records that are read later. A failed one is replaced. A third one comes with
/// the first record that a broker finds too large.
///
/// librdkafka sends one request per partition, and its thread examines every partition whenever it wakes. Results come
/// one per push: with the short linger of deliveries, each would be a request of its own. A mark waits for them, so a
/// crash may repeat the pushes of that many milliseconds.
final class OutProducers {
    enum Role: String, CaseIterable {
        /// Urgent: sent within `linger.ms`.
        case prompt
        /// Read later: may wait 100 ms for others.
        case records
        /// One record per batch: a broker refuses a batch above its topic's limit as a whole, whatever the size of each record.
        case alone
    }

    typealias Make = (Role) throws(KafkaFault) -> KafkaProducer

    private struct Route {
        var role: Role
        var producer: KafkaProducer
        var handle: KafkaTopic
    }

    private let make: Make
    private var prompt: KafkaProducer
    private var records: KafkaProducer
    private var alone: KafkaProducer?
    /// By `OutTopic.index`.
    private var routes: [Route] = []

    private static let recordsLingerMs = "100"

    /// - Parameter make: creates a producer, initially and in place of a failed one.
    init(make: @escaping Make) throws(KafkaFault) {
        self.make = make
        prompt = try make(.prompt)
        records = try make(.records)
    }

    /// A `linger.ms` of the configuration applies to both.
    convenience init(
        _ client: KafkaConfiguration, of kafka: any KafkaClients = NativeKafkaClients()
    ) throws(KafkaFault) {
        try self.init { role throws(KafkaFault) in
            KafkaProducer(try kafka.producer(Self.configuration(client, role)))
        }
    }

    private static func configuration(_ client: KafkaConfiguration, _ role: Role) -> KafkaConfiguration {
        var own = client
        switch role {
        case .prompt: return client
        case .records:
            own.clientID += "-records"
            if own.options["linger.ms"] == nil, own.options["queue.buffering.max.ms"] == nil {
                own.options["linger.ms"] = recordsLingerMs
            }
        case .alone:
            own.clientID += "-alone"
            own.options["batch.num.messages"] = "1"
        }
        return own
    }

    /// The present producer of that role; nil while nothing has needed it.
    subscript(role: Role) -> KafkaProducer? {
        switch role {
        case .prompt: prompt
        case .records: records
        case .alone: alone
        }
    }

    /// The topic for records that are sent one by one.
    func alone(_ topic: OutTopic) throws(KafkaFault) -> OutTopic {
        if alone == nil { alone = try make(.alone) }
        guard let found = self.topic(name(of: topic), by: .alone) else {
            throw .creation("no handle for the topic \(name(of: topic))")
        }
        return found
    }

    func isAlone(_ topic: OutTopic) -> Bool { routes[topic.index].role == .alone }

    /// The topic of that name for this role; nil for an invalid name.
    func topic(_ name: String, by role: Role) -> OutTopic? {
        if let known = known(name, by: role) { return known }
        guard let producer = self[role], let handle = producer.topic(name) else { return nil }
        routes.append(Route(role: role, producer: producer, handle: handle))
        return OutTopic(index: routes.count - 1)
    }

    /// A topic that was requested before; nil for any other.
    func known(_ name: String, by role: Role) -> OutTopic? {
        routes.firstIndex { $0.role == role && $0.handle.name == name }.map(OutTopic.init(index:))
    }

    func name(of topic: OutTopic) -> String { routes[topic.index].handle.name }

    func produce(
        to topic: OutTopic, key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, tag: UInt64
    ) -> ProduceOutcome {
        let producer = routes[topic.index].producer
        return producer.produce(to: routes[topic.index].handle, key: key, value: value, opaque: tag)
    }

    func produce(
        to topic: OutTopic, key: [UInt8]?, value: [UInt8]?, headers: [KafkaHeader], tag: UInt64
    ) -> ProduceOutcome {
        let producer = routes[topic.index].producer
        return producer.produce(
            to: routes[topic.index].handle, keyBytes: key, valueBytes: value, headers: headers, opaque: tag)
    }

    /// Replaces the producer of this role for all its topics. The old one's reports must still be taken.
    func replace(_ role: Role) throws(KafkaFault) {
        let fresh = try make(role)
        var replaced = routes
        for index in replaced.indices where replaced[index].role == role {
            guard let handle = fresh.topic(replaced[index].handle.name) else {
                throw .creation("no handle for the topic \(replaced[index].handle.name)")
            }
            replaced[index].producer = fresh
            replaced[index].handle = handle
        }
        routes = replaced
        switch role {
        case .prompt: prompt = fresh
        case .records: records = fresh
        case .alone: alone = fresh
        }
    }
}

/// An output topic, by its index in `OutProducers`, which knows its present producer.
struct OutTopic {
    /// Created only by `OutProducers`.
    fileprivate let index: Int
}

/// The output topics.
struct OutTopics {
    let deliveries: OutTopic
    let results: OutTopic
    let feedback: OutTopic
    let sms: OutTopic
    let deadLetter: OutTopic
    /// Deferred work.
    let parked: OutTopic
    /// Members of large groups.
    let chunks: OutTopic
    /// Results of user-state records.
    let stateResults: OutTopic

    init(_ names: Configuration.Topics, producers: OutProducers) throws(StartFault) {
        func topic(_ name: String, _ role: OutProducers.Role) throws(StartFault) -> OutTopic {
            guard let topic = producers.topic(name, by: role) else {
                throw StartFault("\"\(name)\" is not a topic name")
            }
            return topic
        }
        deliveries = try topic(names.deliveries, .prompt)
        results = try topic(names.results, .records)
        feedback = try topic(names.feedback, .records)
        sms = try topic(names.sms, .prompt)
        deadLetter = try topic(names.deadLetter, .records)
        parked = try topic(names.parked, .records)
        chunks = try topic(names.chunks, .prompt)
        stateResults = try topic(names.stateResults, .records)
    }
}

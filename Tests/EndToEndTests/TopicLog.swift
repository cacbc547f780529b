// SPDX-License-Identifier: Apache-2.0
import JSON
import Kafka
import LocalServers
import Processes
import Support
import Telemetry

/// All records of a topic so far. Each look reads on from where the last one ended, through one client, which asks the broker
/// nothing in between.
final class TopicLog: Sendable {
    private struct State {
        var reader: KafkaTopicReader?
        var records: [LocalCluster.Record] = []
        /// The values of the first so many records.
        var values: [JSONTree] = []
    }

    private let world: LocalCluster
    private let topic: String
    private let state = Guarded(State())

    init(_ world: LocalCluster, topic: String) {
        self.world = world
        self.topic = topic
    }

    /// To the ends of now; blocks its thread.
    func records() throws -> [LocalCluster.Record] {
        try state.withLock { state in
            try readOn(&state)
            return state.records
        }
    }

    /// The values of `records`, which are JSON.
    func values() throws -> [JSONTree] {
        try state.withLock { state in
            try readOn(&state)
            for record in state.records[state.values.count...] {
                guard let value = record.value else { throw SetupFault("a record of \(topic) is null") }
                state.values.append(try JSONTree(parsing: value))
            }
            return state.values
        }
    }

    private func readOn(_ state: inout State) throws {
        let reader: KafkaTopicReader
        if let old = state.reader {
            reader = old
            try reader.resume()
        } else {
            reader = try world.reader(of: topic)
            state.reader = reader
        }
        _ = try reader.read { record in
            state.records.append(LocalCluster.Record(record))
            return .goOn
        }
        try reader.pause()
    }
}

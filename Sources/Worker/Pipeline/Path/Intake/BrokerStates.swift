// SPDX-License-Identifier: Apache-2.0
import JSON

/// The state of the brokers, from librdkafka's statistics.
struct BrokerStates {
    /// Grows with the cluster; created at the first statistics.
    private var parser: JSONParser?
    private static let maxBytes = 16 << 20

    /// By broker id, each broker to which this client has or had a connection: true if it is connected now.
    ///
    /// A broker that is not needed has no connection (state INIT), which shows nothing about it. The addresses of
    /// `kafka.brokers` have no id. The group's coordinator appears twice, with one connection each.
    mutating func read(_ json: UnsafeRawBufferPointer) -> [Int64: Bool] {
        let parser = parser ?? JSONParser(maxBytes: Self.maxBytes)
        self.parser = parser
        var states: [Int64: Bool] = [:]
        _ = parser.parse(json) { root in
            guard var brokers = root["brokers"]?.members else { return }
            while let broker = brokers.next() {
                guard let id = broker.value["nodeid"]?.int, id >= 0, let state = broker.value["state"],
                    !state.isString("INIT")
                else { continue }
                states[id] = states[id] == true || state.isString("UP") || state.isString("UPDATE")
            }
        }
        return states
    }
}

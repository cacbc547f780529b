import JSON

/// Which brokers are up, from librdkafka's statistics.
struct BrokerStates {
    /// Grows with the cluster; made at the first statistics.
    private var parser: JSONParser?
    private static let maxBytes = 16 << 20

    /// Hands over each broker that this client has or had a connection to, by its id in the cluster.
    ///
    /// A broker that nothing is wanted of has no connection (state INIT), which says nothing about it; the addresses of
    /// `kafka.brokers` have no id.
    mutating func read(_ json: UnsafeRawBufferPointer, _ visit: (_ id: Int64, _ isUp: Bool) -> Void) {
        let parser = parser ?? JSONParser(maxBytes: Self.maxBytes)
        self.parser = parser
        _ = parser.parse(json) { root in
            guard var brokers = root["brokers"]?.members else { return }
            while let broker = brokers.next() {
                guard let id = broker.value["nodeid"]?.int, id >= 0, let state = broker.value["state"],
                    !state.isString("INIT")
                else { continue }
                visit(id, state.isString("UP") || state.isString("UPDATE"))
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
/// A cluster node, from the `CLUSTER SLOTS` of some node.
public struct RedisClusterMember: Sendable, Equatable {
    public let endpoint: RedisEndpoint
    /// Number of its slots; nil for a replica.
    public var slots: Int?
    /// Number of a master's replicas.
    public var replicas: Int

    public static let slotCount = KeySlot.count

    /// The query for `all`.
    public static let question = ["CLUSTER", "SLOTS"]

    /// Masters in the order of their slots, each before its replicas; nil if the answer is not a map.
    ///
    /// - Parameters:
    ///   - asked: the node that answered. The others use its login.
    ///   - seeds: the configured nodes; see `RedisTopology.allows`.
    public static func all(
        in answer: RedisAnswer, asked: RedisEndpoint, seeds: [RedisEndpoint]
    ) throws(RedisFault) -> [RedisClusterMember] {
        guard let ranges = answer.list, !ranges.isEmpty, let asker = asked.nodeAddress?.host else {
            throw RedisFault(.protocolViolation, "it gives no valid map of the slots")
        }
        var members: [RedisClusterMember] = []
        for range in ranges {
            guard let parts = range.list, parts.count >= 3, let first = parts[0].number, let last = parts[1].number,
                first <= last, (0..<Int64(KeySlot.count)).contains(first), (0..<Int64(KeySlot.count)).contains(last)
            else { throw RedisFault(.protocolViolation, "it gives an invalid map of the slots") }
            let places = parts.dropFirst(2).compactMap { address($0, asker) }
            guard let master = places.first, places.count == parts.count - 2 else {
                throw RedisFault(.protocolViolation, "it names a node without an address")
            }
            for (index, place) in places.enumerated() {
                guard RedisTopology.allows(place, namedBy: seeds) else {
                    throw RedisFault(
                        .unsupported, "a node is at \(place), and tokens would travel there in clear: use rediss://")
                }
                let endpoint = asked.at(place)
                let slots = place == master ? Int(last - first) + 1 : nil
                if let known = members.firstIndex(where: { $0.endpoint == endpoint }) {
                    if let slots { members[known].slots = (members[known].slots ?? 0) + slots }
                } else {
                    let replicas = index == 0 ? places.count - 1 : 0
                    members.append(RedisClusterMember(endpoint: endpoint, slots: slots, replicas: replicas))
                }
            }
        }
        return members
    }

    private static func address(_ node: RedisAnswer, _ asker: String) -> NodeAddress? {
        guard let parts = node.list, parts.count >= 2 else { return nil }
        var name = parts[0].text ?? ""
        if name == "?" {
            // As in `NodeAddress.init(slotsEntry:asker:)`.
            let facts = parts.count > 3 ? parts[3].list ?? [] : []
            name = zip(facts, facts.dropFirst()).first { $0.0.text == "ip" }?.1.text ?? ""
        }
        let host = Array(name.utf8)
        return host.withUnsafeBytes { NodeAddress(host: $0, port: parts[1].number, asker: asker) }
    }
}

/// A master's address according to Sentinels.
public enum RedisSentinelMaster {
    public static func question(_ sentinels: RedisSentinels) -> [String] {
        ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinels.masterName]
    }

    /// The master with its configured login.
    ///
    /// - Parameter asked: the Sentinel that answered.
    public static func endpoint(
        in answer: RedisAnswer, of sentinels: RedisSentinels, asked: RedisEndpoint
    ) throws(RedisFault) -> RedisEndpoint {
        let parts = answer.list ?? []
        let host = Array((parts.first?.text ?? "").utf8)
        let asker = asked.nodeAddress?.host ?? ""
        let address = host.withUnsafeBytes {
            NodeAddress(host: $0, port: parts.count == 2 ? parts[1].number : nil, asker: asker)
        }
        guard let address else {
            throw RedisFault(.unreachable, "it knows no master named \(sentinels.masterName)")
        }
        guard RedisTopology.allows(address, namedBy: sentinels.nodes) else {
            throw RedisFault(
                .unsupported, "the master is at \(address), and tokens would travel there in clear: use rediss://")
        }
        return sentinels.master.at(address)
    }
}

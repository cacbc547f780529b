// SPDX-License-Identifier: Apache-2.0
/// CLUSTER and what goes with it.
enum ClusterCommands {
    static let all: [Command] = [
        Command(
            "cluster", -2, .none, .always,
            subcommands: [
                "info": 2, "slots": 2, "shards": 2, "nodes": 2, "myid": 2, "keyslot": 3, "countkeysinslot": 3,
                "getkeysinslot": 4,
            ], answer),
        Command("asking", 1) { server, _ throws(RedisError) in
            guard server.isCluster else { throw .noClusterSupport }
            server.client.isAsking = true
            return .ok
        },
        Command("readonly", 1, .none, .always) { server, _ throws(RedisError) in
            guard server.isCluster else { throw .noClusterSupport }
            server.client.readsReplica = true
            return .ok
        },
        Command("readwrite", 1, .none, .always) { server, _ throws(RedisError) in
            guard server.isCluster else { throw .noClusterSupport }
            server.client.readsReplica = false
            return .ok
        },
    ]

    private static func answer(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        guard let node = server.clusterNode else { throw .noClusterSupport }
        switch (words.upper(1), words.count) {
        case ("INFO", 2): return .verbatim(info(server, node))
        case ("SLOTS", 2): return slots(node)
        case ("SHARDS", 2): return shards(server, node)
        case ("NODES", 2): return .verbatim(nodes(node))
        case ("MYID", 2): return .bulk(node.own.id)
        case ("KEYSLOT", 3): return .integer(Slot.of(words[2]))
        case ("COUNTKEYSINSLOT", 3): return .integer(try keys(server, words).count)
        case ("GETKEYSINSLOT", 4):
            let count = try words.int(3)
            if count < 0 { throw RedisError("ERR Invalid number of keys") }
            return .array(try keys(server, words).prefix(count).map { .bulk($0) })
        default: throw .unknownSubcommand(words[1], of: "CLUSTER")
        }
    }

    private static func keys(_ server: Server, _ words: Arguments) throws(RedisError) -> [Bytes] {
        let slot = try words.integer(2)
        guard (0..<Int64(Slot.count)).contains(slot) else { throw RedisError("ERR Invalid slot") }
        return server.databases[0].keys.filter { Slot.of($0) == Int(slot) }
    }

    private static func info(_ server: Server, _ node: ClusterNode) -> String {
        let served = node.map.servedCount
        let lines: [(String, String)] = [
            ("cluster_state", node.map.isDown || served < Slot.count ? "fail" : "ok"),
            ("cluster_slots_assigned", String(served)), ("cluster_slots_ok", String(served)),
            ("cluster_slots_pfail", "0"), ("cluster_slots_fail", "0"),
            ("cluster_known_nodes", String(node.peers.count)), ("cluster_size", String(node.map.size)),
            ("cluster_current_epoch", String(node.map.epoch)), ("cluster_my_epoch", String(node.map.epoch)),
            ("cluster_stats_messages_sent", "0"), ("cluster_stats_messages_received", "0"),
            ("total_cluster_links_buffer_limit_exceeded", "0"),
        ]
        return lines.map { "\($0):\($1)\r\n" }.joined()
    }

    private static func slots(_ node: ClusterNode) -> Reply {
        func place(_ index: Int) -> Reply {
            let peer = node.peers[index]
            return .array([.bulk(peer.host), .integer(Int(peer.port)), .bulk(peer.id), .map([])])
        }
        return .array(
            node.map.ranges().map { range in
                let head: [Reply] = [.integer(range.slots.lowerBound), .integer(range.slots.upperBound)]
                return .array(head + [place(range.owner)] + node.map.replicas(of: range.owner).map { place($0) })
            })
    }

    private static func shards(_ server: Server, _ node: ClusterNode) -> Reply {
        let masters = node.peers.indices.filter { node.map.masters[$0] == nil }
        return .array(
            masters.map { master in
                let slots = node.map.ranges(of: master).flatMap { range -> [Reply] in
                    [.integer(range.slots.lowerBound), .integer(range.slots.upperBound)]
                }
                let members = ([master] + node.map.replicas(of: master)).map { index -> Reply in
                    let peer = node.peers[index]
                    return .map([
                        .bulk("id"), .bulk(peer.id), .bulk("port"), .integer(Int(peer.port)), .bulk("ip"),
                        .bulk(peer.host), .bulk("endpoint"), .bulk(peer.host), .bulk("role"),
                        .bulk(index == master ? "master" : "replica"), .bulk("replication-offset"),
                        .integer(server.stream.byteCount), .bulk("health"), .bulk("online"),
                    ])
                }
                return .map([.bulk("slots"), .array(slots), .bulk("nodes"), .array(members)])
            })
    }

    private static func nodes(_ node: ClusterNode) -> String {
        node.peers.indices.map { index in
            let peer = node.peers[index]
            let master = node.map.masters[index]
            let role = master == nil ? "master" : "slave"
            var words = [
                peer.id, "\(peer.address)@\(Int(peer.port) + 10_000)", index == node.index ? "myself,\(role)" : role,
                master.map { node.peers[$0].id } ?? "-", "0", "0", String(node.map.epoch), "connected",
            ]
            for range in node.map.ranges(of: index) {
                let slots = range.slots
                words.append(slots.count == 1 ? "\(slots.lowerBound)" : "\(slots.lowerBound)-\(slots.upperBound)")
            }
            if index == node.index {
                for slot in node.leaving.keys.sorted() {
                    words.append("[\(slot)->-\(node.peers[node.leaving[slot] ?? 0].id)]")
                }
                for slot in node.arriving.keys.sorted() {
                    words.append("[\(slot)-<-\(node.peers[node.arriving[slot] ?? 0].id)]")
                }
            }
            return words.joined(separator: " ") + "\n"
        }.joined()
    }
}

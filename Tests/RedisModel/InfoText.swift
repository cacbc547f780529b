// SPDX-License-Identifier: Apache-2.0
/// INFO: the properties that clients read, under the names of Redis.
enum InfoText {
    static func text(_ server: Server, _ wanted: [String]) -> String {
        let isAll = wanted.isEmpty || wanted.contains { ["all", "default", "everything"].contains($0) }
        let sections = sections(server).filter { section in
            isAll
                ? section.name != "Commandstats" || wanted.contains("all") || wanted.contains("everything")
                : wanted.contains(section.name.lowercased())
        }
        return sections.map { section in
            "# \(section.name)\r\n" + section.lines.map { "\($0):\($1)\r\n" }.joined()
        }.joined(separator: "\r\n")
    }

    private typealias Section = (name: String, lines: [(String, String)])

    private static func sections(_ server: Server) -> [Section] {
        let uptime = (server.nowMs - (server.startMs ?? server.nowMs)) / 1000
        let head: Section = (
            "Server",
            [
                ("redis_version", server.options.version), ("redis_mode", server.mode), ("os", "Linux"),
                ("arch_bits", "64"), ("process_id", "1"), ("run_id", server.runID),
                ("tcp_port", String(server.options.port)), ("server_time_usec", String(server.nowMs * 1000)),
                ("uptime_in_seconds", String(uptime)),
            ]
        )
        if let view = server.sentinel {
            return [head, ("Sentinel", [("sentinel_masters", String(view.masters.count))])]
        }
        return [
            head, ("Clients", [("connected_clients", String(server.clientCount + 1))]), memory(server),
            (
                "Persistence",
                [
                    ("loading", server.troubles.isLoading ? "1" : "0"),
                    ("rdb_last_bgsave_status", server.troubles.cannotSave ? "err" : "ok"),
                    ("aof_enabled", server.options.keepsLog ? "1" : "0"),
                ]
            ),
            (
                "Stats",
                [
                    ("total_commands_processed", String(server.commandCounts.values.reduce(0, +))),
                    ("evicted_keys", String(server.evictedKeys)),
                ]
            ),
            replication(server), commands(server), ("Cluster", [("cluster_enabled", server.isCluster ? "1" : "0")]),
            ("Keyspace", keyspace(server)),
        ]
    }

    private static func memory(_ server: Server) -> Section {
        let used = server.usedBytes
        return (
            "Memory",
            [
                ("used_memory", String(used)), ("used_memory_rss", String(used)),
                ("maxmemory", String(server.options.maxMemory)), ("maxmemory_policy", server.options.evictionPolicy),
            ]
        )
    }

    private static func replication(_ server: Server) -> Section {
        var lines: [(String, String)] = []
        if let master = server.replication.master {
            lines = [
                ("role", "slave"), ("master_host", master.host), ("master_port", String(master.port)),
                ("master_link_status", server.link.isUp ? "up" : "down"), ("slave_read_only", "1"),
            ]
        } else {
            lines = [("role", "master")]
        }
        lines.append(("connected_slaves", String(server.replication.liveReplicas)))
        for (index, replica) in server.replication.replicas.enumerated() {
            lines.append(
                (
                    "slave\(index)",
                    "ip=\(replica.host),port=\(replica.port),state=online,offset=\(server.stream.byteCount),lag=0"
                ))
        }
        lines += [
            ("master_replid", server.replication.id), ("master_repl_offset", String(server.stream.byteCount)),
        ]
        return ("Replication", lines)
    }

    private static func commands(_ server: Server) -> Section {
        let names = server.commandCounts.keys.sorted()
        return (
            "Commandstats",
            names.map { name in
                (
                    "cmdstat_\(name)",
                    "calls=\(server.commandCounts[name] ?? 0),usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0"
                )
            }
        )
    }

    private static func keyspace(_ server: Server) -> [(String, String)] {
        server.databases.enumerated().filter { $0.element.count > 0 }.map { index, keys in
            ("db\(index)", "keys=\(keys.count),expires=\(keys.expiringCount),avg_ttl=0")
        }
    }
}

extension Server {
    /// `redis_mode`.
    var mode: String { sentinel != nil ? "sentinel" : isCluster ? "cluster" : "standalone" }
}

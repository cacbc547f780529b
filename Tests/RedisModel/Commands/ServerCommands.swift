// SPDX-License-Identifier: Apache-2.0
/// Commands of the server as a whole.
enum ServerCommands {
    static let all: [Command] = [
        Command("time", 1, .none, .always) { server, _ in
            .array([.bulk(String(server.nowMs / 1000)), .bulk(String(server.nowMs % 1000 * 1000))])
        },
        Command("info", -1, .none, .always) { server, words in
            .verbatim(InfoText.text(server, words.from(1).map { utf8($0.lower) }))
        },
        Command("role", 1, .none, [.whileLoading, .whileStale, .notInScripts]) { server, _ in role(server) },
        Command("wait", 3, .none, .notInScripts) { server, words throws(RedisError) in
            _ = try words.integer(1)
            let timeout = try words.integer(2)
            if timeout < 0 { throw RedisError("ERR timeout is negative") }
            if server.isReplica {
                throw RedisError(
                    "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated."
                )
            }
            return .integer(server.stream.entries.isEmpty ? server.replication.liveReplicas : 0)
        },
        Command("lastsave", 1, .none, .always) { server, _ in .integer((server.startMs ?? 0) / 1000) },
        Command("save", 1, .none, .notInScripts) { _, _ in .ok },
        Command("bgsave", -1, .none, .notInScripts) { _, _ in .status("Background saving started") },
        Command(
            "config", -2, .none, [.whileLoading, .whileStale, .notInScripts],
            subcommands: ["get": -3, "set": -4, "resetstat": 2],
            configure),
        Command(
            "acl", -2, .none, [.whileLoading, .whileStale, .notInScripts],
            subcommands: ["setuser": -3, "deluser": -3, "whoami": 2, "log": -2], acl),
        Command("memory", -2, .none, [], subcommands: ["usage": -3]) { server, words throws(RedisError) in
            guard words.upper(1) == "USAGE", words.count >= 3 else { throw .unknownSubcommand(words[1], of: "MEMORY") }
            return server.keys[words[2]].map { .integer($0.byteCount + words[2].count + 56) } ?? .null
        },
        Command(
            "sentinel", -2, .none, .always, subcommands: ["get-master-addr-by-name": 3, "master": 3, "masters": 2],
            sentinel),
    ]

    private static func role(_ server: Server) -> Reply {
        if let view = server.sentinel {
            return .array([.bulk("sentinel"), .array(view.masters.map { .bulk($0.name) })])
        }
        if let master = server.replication.master {
            return .array([
                .bulk("slave"), .bulk(master.host), .integer(Int(master.port)),
                .bulk(server.link.isUp ? "connected" : "connect"),
                .integer(server.link.isUp ? server.stream.byteCount : -1),
            ])
        }
        return .array([
            .bulk("master"), .integer(server.stream.byteCount),
            .array(
                server.replication.replicas.map { place in
                    .array([.bulk(place.host), .bulk(String(place.port)), .bulk(String(server.stream.byteCount))])
                }),
        ])
    }

    private static func configure(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        switch (words.upper(1), words.count) {
        case ("GET", 3...):
            let settings: [(String, String)] = [
                ("appendonly", server.options.keepsLog ? "yes" : "no"), ("maxmemory", String(server.options.maxMemory)),
                ("maxmemory-policy", server.options.evictionPolicy),
                ("min-replicas-to-write", String(server.options.minReplicas)), ("save", ""),
            ]
            let patterns = words.from(2).map(\.lower)
            return .map(
                settings.filter { setting in patterns.contains { Glob.matches($0, Bytes(setting.0)) } }
                    .flatMap { [.bulk($0.0), .bulk($0.1)] })
        case ("SET", 4...):
            for index in stride(from: 2, to: words.count, by: 2) {
                try set(server, utf8(words[index].lower), words[index + 1])
            }
            return .ok
        case ("RESETSTAT", 2):
            server.commandCounts = [:]
            return .ok
        default: throw .unknownSubcommand(words[1], of: "CONFIG")
        }
    }

    private static func set(_ server: Server, _ name: String, _ value: Bytes) throws(RedisError) {
        switch name {
        case "maxmemory": server.setMaxMemory(Int(value.integer ?? 0))
        case "maxmemory-policy": server.options.evictionPolicy = utf8(value)
        case "min-replicas-to-write": server.options.minReplicas = Int(value.integer ?? 0)
        case "appendonly": server.options.keepsLog = value.lower == Bytes("yes")
        case "replica-serve-stale-data": server.options.servesStaleData = value.lower == Bytes("yes")
        case "save", "stop-writes-on-bgsave-error": break
        default:
            throw RedisError("ERR Unknown option or number of arguments for CONFIG SET - '\(name)'")
        }
    }

    private static func acl(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        switch (words.upper(1), words.count) {
        case ("WHOAMI", 2): return .bulk(server.client.user ?? "default")
        case ("SETUSER", 3...):
            let name = utf8(words[2])
            var user = server.users[name] ?? User(name)
            for word in words.from(3) {
                guard user.apply(utf8(word)) else {
                    throw RedisError("ERR Error in ACL SETUSER modifier '\(utf8(word))': Syntax error")
                }
            }
            server.users[name] = user
            return .ok
        case ("DELUSER", 3...):
            return .integer(words.from(2).reduce(0) { server.users.removeValue(forKey: utf8($1)) == nil ? $0 : $0 + 1 })
        case ("LOG", _): return .array([])
        default: throw .unknownSubcommand(words[1], of: "ACL")
        }
    }

    private static func sentinel(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        guard let view = server.sentinel else {
            throw RedisError(
                "ERR unknown command '\(utf8(words[0]))', with args beginning with: "
                    + words.from(1).map { "'\(utf8($0))' " }.joined())
        }
        switch (words.upper(1), words.count) {
        case ("GET-MASTER-ADDR-BY-NAME", 3):
            guard let master = view.masters.first(where: { Bytes($0.name) == words[2] }) else { return .nullArray }
            return .array([.bulk(master.host), .bulk(String(master.port))])
        case ("MASTER", 3):
            guard let master = view.masters.first(where: { Bytes($0.name) == words[2] }) else {
                throw RedisError("ERR No such master with that name")
            }
            return facts(of: master)
        case ("MASTERS", 2): return .array(view.masters.map(facts))
        default: throw .unknownSubcommand(words[1], of: "SENTINEL")
        }
    }

    private static func facts(of master: (name: String, host: String, port: UInt16, epoch: Int64)) -> Reply {
        .map([
            .bulk("name"), .bulk(master.name), .bulk("ip"), .bulk(master.host), .bulk("port"),
            .bulk(String(master.port)), .bulk("config-epoch"), .bulk(String(master.epoch)),
        ])
    }
}

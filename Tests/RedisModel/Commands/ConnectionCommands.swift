// SPDX-License-Identifier: Apache-2.0
/// Commands of one connection.
enum ConnectionCommands {
    static let all: [Command] = [
        Command("ping", -1) { _, words throws(RedisError) in
            if words.count > 2 { throw .argumentCount("ping") }
            return words.count == 2 ? .bulk(words[1]) : .status("PONG")
        },
        Command("echo", 2, .none, .always) { _, words in .bulk(words[1]) },
        Command("quit", -1, .none, [.whileLoading, .whileStale, .beforeLogin, .notInScripts, .whileBusy]) { server, _ in
            server.client.isClosing = true
            return .ok
        },
        Command("reset", 1, .none, [.whileLoading, .whileStale, .beforeLogin, .notInScripts, .whileBusy]) { server, _ in
            let old = server.client
            server.client = Client(id: old.id)
            server.client.reader = old.reader
            if let open = server.users["default"], !open.asksForPassword { server.client.user = "default" }
            return .status("RESET")
        },
        Command("select", 2, .none, .always) { server, words throws(RedisError) in
            guard let number = words[1].integer else { throw .notInteger }
            if server.isCluster, number != 0 { throw RedisError("ERR SELECT is not allowed in cluster mode") }
            guard server.databases.indices.contains(Int(number)) else {
                throw RedisError("ERR DB index is out of range")
            }
            server.client.database = Int(number)
            return .ok
        },
        Command(
            "auth", -2, .none, [.whileLoading, .whileStale, .beforeLogin, .notInScripts, .whileBusy], logIn),
        Command(
            "hello", -1, .none, [.whileLoading, .whileStale, .beforeLogin, .notInScripts, .whileBusy], greet),
        Command(
            "client", -2, .none, [.whileLoading, .whileStale, .notInScripts],
            subcommands: ["id": 2, "setname": 3, "getname": 2, "setinfo": 4, "no-evict": 3], client),
        Command("multi", 1, .none, [.whileLoading, .whileStale, .notInScripts, .whileBusy]) {
            server, _ throws(RedisError) in
            if server.client.queue != nil { throw RedisError("ERR MULTI calls can not be nested") }
            server.client.queue = []
            server.client.isQueueBroken = false
            return .ok
        },
        Command("discard", 1, .none, [.whileLoading, .whileStale, .notInScripts, .whileBusy]) {
            server, _ throws(RedisError) in
            if server.client.queue == nil { throw RedisError("ERR DISCARD without MULTI") }
            server.client.queue = nil
            return .ok
        },
        Command("exec", 1, .none, [.whileLoading, .whileStale, .notInScripts], execute),
    ]

    private static func execute(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        guard let queue = server.client.queue else { throw RedisError("ERR EXEC without MULTI") }
        server.client.queue = nil
        if server.client.isQueueBroken {
            throw RedisError("EXECABORT Transaction discarded because of previous errors.")
        }
        return .array(
            queue.map { words in
                guard let command = CommandTable.command(words.first ?? []) else { return .null }
                return server.perform(command, words)
            })
    }

    private static let wrongPassword = RedisError("WRONGPASS invalid username-password pair or user is disabled.")

    private static func logIn(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        if words.count > 3 { throw .syntax }
        if words.count == 2, let open = server.users["default"], !open.asksForPassword {
            throw RedisError(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your "
                    + "configuration is correct?")
        }
        try logIn(server, words.count == 3 ? utf8(words[1]) : "default", words[words.count - 1])
        return .ok
    }

    private static func logIn(_ server: Server, _ name: String, _ password: Bytes) throws(RedisError) {
        guard let user = server.users[name], user.accepts(password) else { throw wrongPassword }
        server.client.user = name
    }

    private static func greet(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        var version = server.client.version
        if words.count > 1 {
            guard let number = words[1].integer else {
                throw RedisError("ERR Protocol version is not an integer or out of range")
            }
            guard number == 2 || number == 3 else { throw RedisError("NOPROTO unsupported protocol version") }
            version = Int(number)
        }
        var index = 2
        var name: Bytes?
        while index < words.count {
            switch (words.upper(index), words.count - index - 1) {
            case ("AUTH", 2...):
                try logIn(server, utf8(words[index + 1]), words[index + 2])
                index += 3
            case ("SETNAME", 1...):
                name = words[index + 1]
                index += 2
            default: throw RedisError("ERR Syntax error in HELLO option '\(utf8(words[index]))'")
            }
        }
        guard server.client.user != nil else {
            throw RedisError(
                "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> "
                    + "<pass> option can be used to authenticate the client and select the RESP protocol version at the same "
                    + "time")
        }
        server.client.version = version
        if let name { server.client.name = name }
        return .map([
            .bulk("server"), .bulk("redis"), .bulk("version"), .bulk(server.options.version), .bulk("proto"),
            .integer(version), .bulk("id"), .integer(server.client.id.number), .bulk("mode"), .bulk(server.mode),
            .bulk("role"), .bulk(server.isReplica ? "replica" : "master"), .bulk("modules"), .array([]),
        ])
    }

    private static func client(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        switch (words.upper(1), words.count) {
        case ("ID", 2): return .integer(server.client.id.number)
        case ("GETNAME", 2): return server.client.name.isEmpty ? .null : .bulk(server.client.name)
        case ("SETNAME", 3):
            server.client.name = words[2]
            return .ok
        case ("SETINFO", 4) where server.options.hasShortestDigits: return .ok
        case ("NO-EVICT", 3): return .ok
        default: throw .unknownSubcommand(words[1], of: "CLIENT")
        }
    }
}

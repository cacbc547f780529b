// SPDX-License-Identifier: Apache-2.0
/// Commands of keys, whatever they hold.
enum KeyCommands {
    static let all: [Command] = [
        Command("del", -2, .all, .write, delete),
        Command("unlink", -2, .all, .write, delete),
        Command("exists", -2, .all) { server, words in
            .integer(words.from(1).reduce(0) { server.keys.contains($1) ? $0 + 1 : $0 })
        },
        Command("touch", -2, .all) { server, words in
            .integer(words.from(1).reduce(0) { server.keys.contains($1) ? $0 + 1 : $0 })
        },
        Command("type", 2, .first) { server, words in .status(server.keys[words[1]]?.typeName ?? "none") },
        Command("rename", 3, .firstTwo, .write) { server, words throws(RedisError) in
            _ = try rename(server, words, onlyNew: false)
            return .ok
        },
        Command("renamenx", 3, .firstTwo, .write) { server, words throws(RedisError) in
            .integer(try rename(server, words, onlyNew: true) ? 1 : 0)
        },
        Command("randomkey", 1) { server, _ in .bulk(server.keys.key(at: server.random.below(server.keys.count))) },
        Command("keys", 2) { server, words in
            .array(server.keys.keys.filter { Glob.matches(words[1], $0) }.map { .bulk($0) })
        },
        Command("dbsize", 1) { server, _ in .integer(server.keys.count) },
        Command("flushdb", -1, .none, .write) { server, words throws(RedisError) in
            try checkFlush(words)
            server.keys.removeAll()
            server.recountMemory()
            return .ok
        },
        Command("flushall", -1, .none, .write) { server, words throws(RedisError) in
            try checkFlush(words)
            for index in server.databases.indices { server.databases[index].removeAll() }
            server.recountMemory()
            return .ok
        },
    ]

    private static func delete(_ server: Server, _ words: Arguments) -> Reply {
        .integer(words.from(1).reduce(0) { server.keys.remove($1) ? $0 + 1 : $0 })
    }

    private static func rename(_ server: Server, _ words: Arguments, onlyNew: Bool) throws(RedisError) -> Bool {
        guard let value = server.keys[words[1]] else { throw .noKey }
        if words[1] == words[2] { return !onlyNew }
        if onlyNew, server.keys.contains(words[2]) { return false }
        let end = server.keys.expiry(of: words[1])
        server.keys.remove(words[1])
        server.keys.remove(words[2])
        server.keys.store(words[2], value)
        if end >= 0 { server.keys.setExpiry(of: words[2], end) }
        return true
    }

    private static func checkFlush(_ words: Arguments) throws(RedisError) {
        guard words.count == 1 || (words.count == 2 && ["SYNC", "ASYNC"].contains(words.upper(1))) else {
            throw .syntax
        }
    }
}

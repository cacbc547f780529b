// SPDX-License-Identifier: Apache-2.0
/// Commands of sets. Members come in the order in which they were added; Redis promises none.
enum SetCommands {
    static let all: [Command] = [
        Command("sadd", -3, .first, .grow) { server, words throws(RedisError) in
            .integer(
                try server.keys.changeSet(words[1]) { members in
                    words.from(2).reduce(0) { members.set($1, ()) == nil ? $0 + 1 : $0 }
                })
        },
        Command("srem", -3, .first, .write) { server, words throws(RedisError) in
            .integer(
                try server.keys.changeSet(words[1]) { members in
                    words.from(2).reduce(0) { members.remove($1) == nil ? $0 : $0 + 1 }
                })
        },
        Command("sismember", 3, .first) { server, words throws(RedisError) in
            .integer(try server.keys.set(words[1])?.contains(words[2]) ?? false ? 1 : 0)
        },
        Command("smismember", -3, .first) { server, words throws(RedisError) in
            let members = try server.keys.set(words[1])
            return .array(words.from(2).map { .integer(members?.contains($0) ?? false ? 1 : 0) })
        },
        Command("scard", 2, .first) { server, words throws(RedisError) in
            .integer(try server.keys.set(words[1])?.count ?? 0)
        },
        Command("smembers", 2, .first) { server, words throws(RedisError) in
            .set(try server.keys.set(words[1])?.allKeys.map { .bulk($0) } ?? [])
        },
        Command("spop", -2, .first, .write, pop),
        Command("srandmember", -2, .first, [], draw),
        Command("smove", 4, .firstTwo, .write, move),
        Command("sunion", -2, .all) { server, words throws(RedisError) in
            .set(try union(server, words.from(1)).map { .bulk($0) })
        },
        Command("sinter", -2, .all) { server, words throws(RedisError) in
            .set(try intersection(server, words.from(1)).map { .bulk($0) })
        },
        Command("sdiff", -2, .all) { server, words throws(RedisError) in
            .set(try difference(server, words.from(1)).map { .bulk($0) })
        },
        Command("sunionstore", -3, .all, .grow) { server, words throws(RedisError) in
            store(server, words[1], try union(server, words.from(2)))
        },
        Command("sinterstore", -3, .all, .grow) { server, words throws(RedisError) in
            store(server, words[1], try intersection(server, words.from(2)))
        },
        Command("sdiffstore", -3, .all, .grow) { server, words throws(RedisError) in
            store(server, words[1], try difference(server, words.from(2)))
        },
    ]

    private static func pop(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        if words.count > 3 { throw .syntax }
        var count: Int?
        if words.count == 3 {
            guard let number = words[2].integer else { throw .notPositive }
            guard number >= 0 else { throw .notPositive }
            count = Int(number)
        }
        guard let members = try server.keys.set(words[1]) else { return count == nil ? .null : .set([]) }
        let gone = Draw.some(count ?? 1, of: members.allKeys, &server.random)
        try server.keys.changeSet(words[1]) { set in for member in gone { set.remove(member) } }
        server.rewrite = gone.isEmpty ? [] : [[Bytes("SREM"), words[1]] + gone]
        return count == nil ? .bulk(gone.first) : .set(gone.map { .bulk($0) })
    }

    private static func draw(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        if words.count > 3 { throw .syntax }
        let count = words.count == 3 ? try words.integer(2) : nil
        let members = try server.keys.set(words[1])?.allKeys ?? []
        let drawn = Draw.some(Int((count ?? 1).clamped), of: members, &server.random)
        return count == nil ? .bulk(drawn.first) : .array(drawn.map { .bulk($0) })
    }

    private static func move(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        guard let source = try server.keys.set(words[1]) else { return .integer(0) }
        _ = try server.keys.set(words[2])
        guard source.contains(words[3]) else { return .integer(0) }
        if words[1] == words[2] { return .integer(1) }
        _ = try server.keys.changeSet(words[1]) { $0.remove(words[3]) }
        _ = try server.keys.changeSet(words[2]) { $0.set(words[3], ()) }
        return .integer(1)
    }

    private static func sets(_ server: Server, _ keys: ArraySlice<Bytes>) throws(RedisError) -> [OrderedTable<Void>] {
        var sets: [OrderedTable<Void>] = []
        for key in keys { sets.append(try server.keys.set(key) ?? OrderedTable()) }
        return sets
    }

    private static func union(_ server: Server, _ keys: ArraySlice<Bytes>) throws(RedisError) -> [Bytes] {
        var all = OrderedTable<Void>()
        for set in try sets(server, keys) { set.forEach { member, _ in all.set(member, ()) } }
        return all.allKeys
    }

    private static func intersection(_ server: Server, _ keys: ArraySlice<Bytes>) throws(RedisError) -> [Bytes] {
        let sets = try sets(server, keys)
        return (sets.first?.allKeys ?? []).filter { member in sets.allSatisfy { $0.contains(member) } }
    }

    private static func difference(_ server: Server, _ keys: ArraySlice<Bytes>) throws(RedisError) -> [Bytes] {
        let sets = try sets(server, keys)
        return (sets.first?.allKeys ?? []).filter { member in !sets.dropFirst().contains { $0.contains(member) } }
    }

    private static func store(_ server: Server, _ key: Bytes, _ members: [Bytes]) -> Reply {
        var set = OrderedTable<Void>()
        for member in members { set.set(member, ()) }
        if set.isEmpty { server.keys.remove(key) } else { server.keys.store(key, .set(set)) }
        return .integer(set.count)
    }
}

// SPDX-License-Identifier: Apache-2.0
/// Commands of hashes. Fields come in the order in which they were added; Redis promises none.
enum HashCommands {
    static let all: [Command] = [
        Command("hget", 3, .first) { server, words throws(RedisError) in
            .bulk(try server.keys.hash(words[1])?[words[2]])
        },
        Command("hset", -4, .first, .grow) { server, words throws(RedisError) in
            .integer(try setAll(server, words))
        },
        Command("hmset", -4, .first, .grow) { server, words throws(RedisError) in
            _ = try setAll(server, words)
            return .ok
        },
        Command("hsetnx", 4, .first, .grow) { server, words throws(RedisError) in
            .integer(
                try server.keys.changeHash(words[1]) { fields in
                    if fields.contains(words[2]) { return 0 }
                    fields.set(words[2], words[3])
                    return 1
                })
        },
        Command("hmget", -3, .first) { server, words throws(RedisError) in
            let fields = try server.keys.hash(words[1])
            return .array(words.from(2).map { .bulk(fields?[$0]) })
        },
        Command("hgetall", 2, .first) { server, words throws(RedisError) in
            .map(list(try server.keys.hash(words[1])) { [.bulk($0), .bulk($1)] })
        },
        Command("hkeys", 2, .first) { server, words throws(RedisError) in
            .array(list(try server.keys.hash(words[1])) { field, _ in [.bulk(field)] })
        },
        Command("hvals", 2, .first) { server, words throws(RedisError) in
            .array(list(try server.keys.hash(words[1])) { [.bulk($1)] })
        },
        Command("hdel", -3, .first, .write) { server, words throws(RedisError) in
            .integer(
                try server.keys.changeHash(words[1]) { fields in
                    words.from(2).reduce(0) { fields.remove($1) == nil ? $0 : $0 + 1 }
                })
        },
        Command("hexists", 3, .first) { server, words throws(RedisError) in
            .integer(try server.keys.hash(words[1])?.contains(words[2]) ?? false ? 1 : 0)
        },
        Command("hlen", 2, .first) { server, words throws(RedisError) in
            .integer(try server.keys.hash(words[1])?.count ?? 0)
        },
        Command("hstrlen", 3, .first) { server, words throws(RedisError) in
            .integer(try server.keys.hash(words[1])?[words[2]]?.count ?? 0)
        },
        Command("hincrby", 4, .first, .grow, add),
        Command("hrandfield", -2, .first, [], draw),
    ]

    private static func list(_ fields: OrderedTable<Bytes>?, _ body: (Bytes, Bytes) -> [Reply]) -> [Reply] {
        var replies: [Reply] = []
        fields?.forEach { replies += body($0, $1) }
        return replies
    }

    private static func setAll(_ server: Server, _ words: Arguments) throws(RedisError) -> Int {
        guard words.count % 2 == 0 else { throw .argumentCount(utf8(words[0].lower)) }
        return try server.keys.changeHash(words[1]) { fields in
            var added = 0
            for index in stride(from: 2, to: words.count, by: 2)
            where fields.set(words[index], words[index + 1]) == nil {
                added += 1
            }
            return added
        }
    }

    private static func add(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        let step = try words.integer(3)
        let old = try server.keys.hash(words[1])?[words[2]] ?? [48]
        guard let number = old.integer else { throw RedisError("ERR hash value is not an integer") }
        let (sum, isOver) = number.addingReportingOverflow(step)
        if isOver { throw .overflow }
        _ = try server.keys.changeHash(words[1]) { $0.set(words[2], Bytes(sum)) }
        return .integer(sum)
    }

    private static func draw(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        let withValues = words.count == 4 && words.upper(3) == "WITHVALUES"
        let fields: OrderedTable<Bytes>?
        guard words.count > 2 else {
            fields = try server.keys.hash(words[1])
            return .bulk(fields.flatMap { $0.key(at: server.random.below($0.count)) })
        }
        let count = try words.integer(2)
        if words.count > 4 || (words.count == 4 && !withValues) { throw .syntax }
        if withValues, abs(count.clamped) > Int64.max / 2 { throw RedisError("ERR value is out of range") }
        fields = try server.keys.hash(words[1])
        guard let fields else { return .array([]) }
        let isThree = server.client.version == 3 && !server.isInScript
        return .array(
            Draw.some(Int(count.clamped), of: fields.allKeys, &server.random).flatMap { field -> [Reply] in
                guard withValues else { return [.bulk(field)] }
                let pair: [Reply] = [.bulk(field), .bulk(fields[field])]
                return isThree ? [.array(pair)] : pair
            })
    }
}

extension Int64 {
    /// Without the one number that has no opposite.
    var clamped: Int64 { Swift.max(self, -Int64.max) }
}

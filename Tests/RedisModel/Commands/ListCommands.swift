// SPDX-License-Identifier: Apache-2.0
/// Commands of lists, the few that tests use.
enum ListCommands {
    static let all: [Command] = [
        Command("rpush", -3, .first, .grow) { server, words throws(RedisError) in
            .integer(
                try server.keys.changeList(words[1]) {
                    $0 += words.from(2)
                    return $0.count
                })
        },
        Command("lpush", -3, .first, .grow) { server, words throws(RedisError) in
            .integer(
                try server.keys.changeList(words[1]) {
                    $0.insert(contentsOf: words.from(2).reversed(), at: 0)
                    return $0.count
                })
        },
        Command("lpop", -2, .first, .write) { server, words throws(RedisError) in
            try pop(server, words) { $0.isEmpty ? nil : $0.removeFirst() }
        },
        Command("rpop", -2, .first, .write) { server, words throws(RedisError) in
            try pop(server, words) { $0.popLast() }
        },
        Command("llen", 2, .first) { server, words throws(RedisError) in
            .integer(try server.keys.list(words[1])?.count ?? 0)
        },
        Command("lrange", 4, .first) { server, words throws(RedisError) in
            let start = try words.integer(2)
            let end = try words.integer(3)
            let elements = try server.keys.list(words[1]) ?? []
            return .array(elements[Places.of(start, end, in: elements.count)].map { .bulk($0) })
        },
        Command("lindex", 3, .first) { server, words throws(RedisError) in
            guard let elements = try server.keys.list(words[1]) else { return .null }
            let index = try words.int(2)
            let place = index < 0 ? index &+ elements.count : index
            return elements.indices.contains(place) ? .bulk(elements[place]) : .null
        },
    ]

    private static func pop(
        _ server: Server, _ words: Arguments, _ take: (inout [Bytes]) -> Bytes?
    ) throws(RedisError) -> Reply {
        if words.count > 3 { throw .argumentCount(utf8(words[0].lower)) }
        var count: Int64?
        if words.count == 3 {
            guard let number = words[2].integer, number >= 0 else { throw .notPositive }
            count = number
        }
        guard try server.keys.list(words[1]) != nil else { return count == nil ? .null : .nullArray }
        let gone = try server.keys.changeList(words[1]) { elements in
            var gone: [Bytes] = []
            while Int64(gone.count) < count ?? 1, let next = take(&elements) { gone.append(next) }
            return gone
        }
        return count == nil ? .bulk(gone.first) : .array(gone.map { .bulk($0) })
    }
}

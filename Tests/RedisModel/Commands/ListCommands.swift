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
        Command("lpop", 2, .first, .write) { server, words throws(RedisError) in
            .bulk(try server.keys.changeList(words[1]) { $0.isEmpty ? nil : $0.removeFirst() })
        },
        Command("rpop", 2, .first, .write) { server, words throws(RedisError) in
            .bulk(try server.keys.changeList(words[1]) { $0.popLast() })
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
}

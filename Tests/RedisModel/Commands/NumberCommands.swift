// SPDX-License-Identifier: Apache-2.0
/// Commands that count in strings.
enum NumberCommands {
    static let all: [Command] = [
        Command("incr", 2, .first, .grow) { server, words throws(RedisError) in try add(server, words[1], 1) },
        Command("decr", 2, .first, .grow) { server, words throws(RedisError) in try add(server, words[1], -1) },
        Command("incrby", 3, .first, .grow) { server, words throws(RedisError) in
            try add(server, words[1], words.integer(2))
        },
        Command("decrby", 3, .first, .grow) { server, words throws(RedisError) in
            let number = try words.integer(2)
            guard number != .min else { throw RedisError("ERR decrement would overflow") }
            return try add(server, words[1], -number)
        },
    ]

    private static func add(_ server: Server, _ key: Bytes, _ step: Int64) throws(RedisError) -> Reply {
        let old = try server.keys.string(key) ?? [48]
        guard let number = old.integer else { throw .notInteger }
        let (sum, isOver) = number.addingReportingOverflow(step)
        if isOver { throw .overflow }
        server.keys.store(key, .string(Bytes(sum)), keepsExpiry: true)
        return .integer(sum)
    }
}

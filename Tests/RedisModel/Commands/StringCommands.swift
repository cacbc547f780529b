// SPDX-License-Identifier: Apache-2.0
/// Commands of strings.
enum StringCommands {
    static let all: [Command] = [
        Command("get", 2, .first) { server, words throws(RedisError) in .bulk(try server.keys.string(words[1])) },
        Command("set", -3, .first, .grow, set),
        Command("setnx", 3, .first, .grow) { server, words in
            if server.keys.contains(words[1]) { return .integer(0) }
            server.keys.store(words[1], .string(words[2]))
            return .integer(1)
        },
        Command("setex", 4, .first, .grow) { server, words throws(RedisError) in
            try setWithLife(server, words, unit: 1000)
        },
        Command("psetex", 4, .first, .grow) { server, words throws(RedisError) in
            try setWithLife(server, words, unit: 1)
        },
        Command("getset", 3, .first, .grow) { server, words throws(RedisError) in
            let old = try server.keys.string(words[1])
            server.keys.store(words[1], .string(words[2]))
            return .bulk(old)
        },
        Command("getdel", 2, .first, .write) { server, words throws(RedisError) in
            let old = try server.keys.string(words[1])
            server.keys.remove(words[1])
            return .bulk(old)
        },
        Command("mget", -2, .all) { server, words in
            .array(words.from(1).map { if case .string(let bytes) = server.keys[$0] { .bulk(bytes) } else { .null } })
        },
        Command("mset", -3, .pairs, .grow) { server, words throws(RedisError) in
            guard words.count % 2 == 1 else { throw .argumentCount("mset") }
            for index in stride(from: 1, to: words.count, by: 2) {
                server.keys.store(words[index], .string(words[index + 1]))
            }
            return .ok
        },
        Command("append", 3, .first, .grow) { server, words throws(RedisError) in
            let bytes = (try server.keys.string(words[1]) ?? []) + words[2]
            server.keys.store(words[1], .string(bytes), keepsExpiry: true)
            return .integer(bytes.count)
        },
        Command("strlen", 2, .first) { server, words throws(RedisError) in
            .integer(try server.keys.string(words[1])?.count ?? 0)
        },
        Command("setrange", 4, .first, .grow, setRange),
        Command("getrange", 4, .first, [], getRange),
        Command("substr", 4, .first, [], getRange),
    ]

    private struct SetOptions {
        /// `NX` or `XX`.
        var condition: String?
        var gets = false
        var keepsLife = false
        /// `EX`, `PX`, `EXAT` or `PXAT`, and its number.
        var life: (unit: String, number: Bytes)?
    }

    private static func options(_ words: Arguments) throws(RedisError) -> SetOptions {
        var options = SetOptions()
        var index = 3
        while index < words.count {
            switch words.upper(index) {
            case let word where (word == "NX" || word == "XX") && (options.condition ?? word) == word:
                options.condition = word
            case "GET": options.gets = true
            case "KEEPTTL" where options.life == nil: options.keepsLife = true
            case let unit where ["EX", "PX", "EXAT", "PXAT"].contains(unit):
                guard (options.life?.unit ?? unit) == unit, !options.keepsLife, index + 1 < words.count else {
                    throw .syntax
                }
                index += 1
                options.life = (unit, words[index])
            default: throw .syntax
            }
            index += 1
        }
        return options
    }

    private static func set(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        let options = try options(words)
        let key = words[1]
        var end: Int64?
        if let life = options.life { end = try ExpiryCommands.end(life.unit, life.number, server.nowMs, "set") }
        let old = options.gets ? Reply.bulk(try server.keys.string(key)) : nil
        let isThere = server.keys.contains(key)
        if (options.condition == "NX" && isThere) || (options.condition == "XX" && !isThere) { return old ?? .null }
        server.keys.store(key, .string(words[2]), keepsExpiry: options.keepsLife)
        if let end {
            ExpiryCommands.setEnd(server, key, end)
            server.rewrite = [[Bytes("SET"), key, words[2], Bytes("PXAT"), Bytes(end)]]
        }
        return old ?? .ok
    }

    private static func setWithLife(_ server: Server, _ words: Arguments, unit: Int64) throws(RedisError) -> Reply {
        let end = try ExpiryCommands.end(
            unit == 1 ? "PX" : "EX", words[2], server.nowMs, unit == 1 ? "psetex" : "setex")
        server.keys.store(words[1], .string(words[3]))
        ExpiryCommands.setEnd(server, words[1], end)
        server.rewrite = [[Bytes("SET"), words[1], words[3], Bytes("PXAT"), Bytes(end)]]
        return .ok
    }

    private static func setRange(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        let offset = try words.integer(2)
        guard offset >= 0 else { throw RedisError("ERR offset is out of range") }
        let old = try server.keys.string(words[1])
        if words[3].isEmpty { return .integer(old?.count ?? 0) }
        guard offset <= 512 << 20, Int(offset) + words[3].count <= 512 << 20 else {
            throw RedisError("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
        }
        var bytes = old ?? []
        let end = Int(offset) + words[3].count
        if bytes.count < end { bytes += Bytes(repeating: 0, count: end - bytes.count) }
        bytes.replaceSubrange(Int(offset)..<end, with: words[3])
        server.keys.store(words[1], .string(bytes), keepsExpiry: true)
        return .integer(bytes.count)
    }

    private static func getRange(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        let start = try words.integer(2)
        let end = try words.integer(3)
        guard let bytes = try server.keys.string(words[1]) else { return .bulk([]) }
        if start < 0, end < 0, start > end { return .bulk([]) }
        return .bulk(Array(bytes[Places.of(start, end, in: bytes.count, clampsEnd: true)]))
    }
}

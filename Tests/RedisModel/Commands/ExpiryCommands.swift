// SPDX-License-Identifier: Apache-2.0
/// Commands of a key's end of life.
enum ExpiryCommands {
    static let all: [Command] = [
        expire("expire", "EX"), expire("pexpire", "PX"), expire("expireat", "EXAT"), expire("pexpireat", "PXAT"),
        left("ttl") { ($0 - $1 + 500) / 1000 }, left("pttl") { $0 - $1 },
        left("expiretime") { end, _ in (end + 500) / 1000 }, left("pexpiretime") { end, _ in end },
        Command("persist", 2, .first, .write) { server, words in
            guard server.keys.expiry(of: words[1]) >= 0 else { return .integer(0) }
            server.keys.setExpiry(of: words[1], nil)
            return .integer(1)
        },
        Command("getex", -2, .first, .write, getAndExpire),
    ]

    private static func left(_ name: String, _ shown: @escaping @Sendable (_ end: Int64, _ now: Int64) -> Int64)
        -> Command
    {
        Command(name, 2, .first) { server, words in
            let end = server.keys.expiry(of: words[1])
            return .integer(end < 0 ? end : shown(end, server.nowMs))
        }
    }

    /// The end of life in ms that a number in this unit means. It must be positive for commands that also write a value.
    static func end(
        _ unit: String, _ word: Bytes, _ nowMs: Int64, _ command: String, mayBePast: Bool = false
    ) throws(RedisError) -> Int64 {
        guard var number = word.integer else { throw .notInteger }
        if !mayBePast, number <= 0 { throw .expireTime(command) }
        if unit.hasPrefix("EX") {
            let (ms, isOver) = number.multipliedReportingOverflow(by: 1000)
            if isOver { throw .expireTime(command) }
            number = ms
        }
        guard !unit.hasSuffix("AT") else { return number }
        let (sum, isOver) = number.addingReportingOverflow(nowMs)
        if isOver { throw .expireTime(command) }
        return sum
    }

    /// An end in the past removes the key, except on a replica.
    static func setEnd(_ server: Server, _ key: Bytes, _ end: Int64) {
        if end <= server.nowMs, !server.isApplyingStream {
            server.keys.remove(key)
        } else {
            server.keys.setExpiry(of: key, end)
        }
    }

    private static func expire(_ name: String, _ unit: String) -> Command {
        Command(name, -3, .first, .write) { server, words throws(RedisError) in
            let conditions = try conditions(words)
            let end = try end(unit, words[2], server.nowMs, name, mayBePast: true)
            let old = server.keys.expiry(of: words[1])
            if old == -2 { return .integer(0) }
            // No end is later than any.
            if conditions.contains("NX"), old != -1 { return .integer(0) }
            if conditions.contains("XX"), old == -1 { return .integer(0) }
            if conditions.contains("GT"), old == -1 || end <= old { return .integer(0) }
            if conditions.contains("LT"), old != -1, end >= old { return .integer(0) }
            setEnd(server, words[1], end)
            server.rewrite = [
                server.keys.contains(words[1])
                    ? [Bytes("PEXPIREAT"), words[1], Bytes(end)] : [Bytes("DEL"), words[1]]
            ]
            return .integer(1)
        }
    }

    private static func conditions(_ words: Arguments) throws(RedisError) -> [String] {
        var found: [String] = []
        for word in words.from(3) {
            guard ["NX", "XX", "GT", "LT"].contains(word.upper) else {
                throw RedisError("ERR Unsupported option \(utf8(word))")
            }
            found.append(word.upper)
        }
        if found.contains("NX"), found.contains(where: { $0 != "NX" }) {
            throw RedisError("ERR NX and XX, GT or LT options at the same time are not compatible")
        }
        if found.contains("GT"), found.contains("LT") {
            throw RedisError("ERR GT and LT options at the same time are not compatible")
        }
        return found
    }

    private static func getAndExpire(_ server: Server, _ words: Arguments) throws(RedisError) -> Reply {
        let key = words[1]
        var life: (unit: String, number: Bytes)?
        var persists = false
        var index = 2
        while index < words.count {
            let word = words.upper(index)
            switch word {
            case "PERSIST" where life == nil: persists = true
            case "EX", "PX", "EXAT", "PXAT":
                guard !persists, (life?.unit ?? word) == word, index + 1 < words.count else { throw .syntax }
                index += 1
                life = (word, words[index])
            default: throw .syntax
            }
            index += 1
        }
        let value = try server.keys.string(key)
        guard value != nil else { return .null }
        server.rewrite = []
        if let life {
            let end = try end(life.unit, life.number, server.nowMs, "getex")
            setEnd(server, key, end)
            server.rewrite = [
                server.keys.contains(key) ? [Bytes("PEXPIREAT"), key, Bytes(end)] : [Bytes("DEL"), key]
            ]
        } else if persists {
            server.keys.setExpiry(of: key, nil)
            server.rewrite = [[Bytes("PERSIST"), key]]
        }
        return .bulk(value)
    }
}

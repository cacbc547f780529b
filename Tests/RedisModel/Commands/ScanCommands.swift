// SPDX-License-Identifier: Apache-2.0
/// SCAN and its kin. A cursor is the number of the last key: what is there all the time comes exactly once.
enum ScanCommands {
    static let all: [Command] = [
        Command("scan", -2) { server, words throws(RedisError) in
            let request = try Request(words, from: 2, hasType: true, cursor: cursor(words[1]))
            let (keys, next) = server.keys.scan(after: request.cursor, limit: request.count)
            let found = keys.filter { key in
                request.fits(key) && (request.type == nil || server.keys[key]?.typeName == request.type)
            }
            return reply(next, found.map { .bulk($0) })
        },
        Command("hscan", -3, .first) { server, words throws(RedisError) in
            let cursor = try cursor(words[2])
            guard let fields = try server.keys.hash(words[1]) else { return reply(0, []) }
            let request = try Request(words, from: 3, cursor: cursor)
            let (keys, next) = page(fields, request)
            return reply(next, keys.flatMap { [.bulk($0), .bulk(fields[$0])] })
        },
        Command("sscan", -3, .first) { server, words throws(RedisError) in
            let cursor = try cursor(words[2])
            guard let members = try server.keys.set(words[1]) else { return reply(0, []) }
            let request = try Request(words, from: 3, cursor: cursor)
            let (keys, next) = page(members, request)
            return reply(next, keys.map { .bulk($0) })
        },
        Command("zscan", -3, .first) { server, words throws(RedisError) in
            let cursor = try cursor(words[2])
            guard let set = try server.keys.sorted(words[1]) else { return reply(0, []) }
            let request = try Request(words, from: 3, cursor: cursor)
            return reply(
                0,
                set.items.filter { request.fits($0.member) }.flatMap { item in
                    [.bulk(item.member), .bulk(storedDigits(item.score, server.options.hasShortestDigits))]
                })
        },
    ]

    /// A score as small sets store it: integers in full.
    private static func storedDigits(_ score: Double, _ isShortest: Bool) -> String {
        if abs(score) <= 0x1p62, score == score.rounded() { return String(Int64(score)) }
        return digits(of: score, isShortest: isShortest)
    }

    private static func cursor(_ word: Bytes) throws(RedisError) -> UInt64 {
        guard let number = UInt64(utf8(word)) else { throw .cursor }
        return number
    }

    /// Redis gives small hashes and sets whole, whatever COUNT says.
    private static let wholeMax = 128

    private struct Request {
        let cursor: UInt64
        var count = 10
        var pattern: Bytes?
        var type: String?

        init(_ words: Arguments, from start: Int, hasType: Bool = false, cursor: UInt64) throws(RedisError) {
            self.cursor = cursor
            var index = start
            while index < words.count {
                guard index + 1 < words.count else { throw .syntax }
                switch words.upper(index) {
                case "COUNT":
                    let number = try words.integer(index + 1)
                    guard number >= 1 else { throw .syntax }
                    count = Int(number)
                case "MATCH": pattern = words[index + 1]
                case "TYPE" where hasType: type = utf8(words[index + 1].lower)
                default: throw .syntax
                }
                index += 2
            }
        }

        func fits(_ key: Bytes) -> Bool { pattern.map { Glob.matches($0, key) } ?? true }
    }

    private static func page<Value>(
        _ table: OrderedTable<Value>, _ request: Request
    ) -> (keys: [Bytes], next: UInt64) {
        let limit = table.count <= wholeMax ? Int.max : request.count
        let (keys, next) = table.scan(after: request.cursor, limit: limit)
        return (keys.filter { request.fits($0) }, next)
    }

    private static func reply(_ cursor: UInt64, _ elements: [Reply]) -> Reply {
        .array([.bulk(String(cursor)), .array(elements)])
    }
}

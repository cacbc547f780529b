// SPDX-License-Identifier: Apache-2.0
/// Commands of sorted sets that name a range.
enum SortedRangeCommands {
    static let all: [Command] = [
        Command("zrange", -4, .first) { server, words throws(RedisError) in
            try list(server, words, Request(words))
        },
        Command("zrevrange", -4, .first) { server, words throws(RedisError) in
            try list(server, words, Request(words, kind: .rank, isReversed: true))
        },
        Command("zrangebyscore", -4, .first) { server, words throws(RedisError) in
            try list(server, words, Request(words, kind: .score, isReversed: false))
        },
        Command("zrevrangebyscore", -4, .first) { server, words throws(RedisError) in
            try list(server, words, Request(words, kind: .score, isReversed: true))
        },
        Command("zrangebylex", -4, .first) { server, words throws(RedisError) in
            try list(server, words, Request(words, kind: .bytes, isReversed: false))
        },
        Command("zrevrangebylex", -4, .first) { server, words throws(RedisError) in
            try list(server, words, Request(words, kind: .bytes, isReversed: true))
        },
        Command("zcount", 4, .first) { server, words throws(RedisError) in
            try count(server, words[1], .score(words[2], words[3]))
        },
        Command("zlexcount", 4, .first) { server, words throws(RedisError) in
            try count(server, words[1], .bytes(words[2], words[3]))
        },
        Command("zremrangebyrank", 4, .first, .write) { server, words throws(RedisError) in
            try remove(server, words[1], .rank(words.integer(2), words.integer(3)))
        },
        Command("zremrangebyscore", 4, .first, .write) { server, words throws(RedisError) in
            try remove(server, words[1], .score(words[2], words[3]))
        },
        Command("zremrangebylex", 4, .first, .write) { server, words throws(RedisError) in
            try remove(server, words[1], .bytes(words[2], words[3]))
        },
    ]

    private enum Kind { case rank, score, bytes }

    /// The options behind the bounds.
    private struct Request {
        var kind: Kind
        var isReversed: Bool
        var hasScores = false
        var limit: (offset: Int, count: Int)?
        let range: SortedRange

        /// - Parameters:
        ///   - kind: nil for ZRANGE, whose options name it.
        ///   - isReversed: nil where an option names it.
        init(_ words: Arguments, kind: Kind? = nil, isReversed: Bool? = nil) throws(RedisError) {
            var chosenKind = kind
            var chosenReverse = isReversed
            var index = 4
            while index < words.count {
                switch words.upper(index) {
                case "WITHSCORES": hasScores = true
                case "LIMIT" where index + 2 < words.count:
                    limit = (try words.int(index + 1), try words.int(index + 2))
                    index += 2
                case "REV" where chosenReverse == nil: chosenReverse = true
                case "BYLEX" where chosenKind == nil: chosenKind = .bytes
                case "BYSCORE" where chosenKind == nil: chosenKind = .score
                default: throw .syntax
                }
                index += 1
            }
            self.kind = chosenKind ?? .rank
            self.isReversed = chosenReverse ?? false
            if let limit, limit.count != -1, self.kind == .rank {
                throw RedisError(
                    "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
            }
            if hasScores, self.kind == .bytes {
                throw RedisError("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
            }
            let swaps = self.isReversed && self.kind != .rank
            let low = words[swaps ? 3 : 2]
            let high = words[swaps ? 2 : 3]
            switch self.kind {
            case .rank: range = .rank(try words.integer(2), try words.integer(3))
            case .score: range = try .score(low, high)
            case .bytes: range = try .bytes(low, high)
            }
        }
    }

    private static func list(_ server: Server, _ words: Arguments, _ request: Request) throws(RedisError) -> Reply {
        guard let set = try server.keys.sorted(words[1]) else { return .array([]) }
        var items = Array(set.items[request.range.places(in: set, isReversed: request.isReversed)])
        if request.isReversed { items.reverse() }
        if let limit = request.limit, request.kind != .rank {
            if limit.offset < 0 { return .array([]) }
            items = Array(items.dropFirst(limit.offset))
            if limit.count >= 0 { items = Array(items.prefix(limit.count)) }
        }
        guard request.hasScores else { return .array(items.map { .bulk($0.member) }) }
        if server.client.version == 3, !server.isInScript {
            return .array(items.map { .array([.bulk($0.member), .double($0.score)]) })
        }
        return .array(items.flatMap { [.bulk($0.member), .double($0.score)] })
    }

    private static func count(_ server: Server, _ key: Bytes, _ range: SortedRange) throws(RedisError) -> Reply {
        guard let set = try server.keys.sorted(key) else { return .integer(0) }
        return .integer(range.places(in: set).count)
    }

    private static func remove(_ server: Server, _ key: Bytes, _ range: SortedRange) throws(RedisError) -> Reply {
        .integer(
            try server.keys.changeSorted(key) { set in
                let places = range.places(in: set)
                set.remove(places)
                return places.count
            })
    }
}

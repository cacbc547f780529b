// SPDX-License-Identifier: Apache-2.0
/// Commands of sorted sets that name members.
enum SortedSetCommands {
    static let all: [Command] = [
        Command("zadd", -4, .first, .grow) { server, words throws(RedisError) in try add(server, words, adds: false) },
        Command("zincrby", 4, .first, .grow) { server, words throws(RedisError) in try add(server, words, adds: true) },
        Command("zrem", -3, .first, .write) { server, words throws(RedisError) in
            .integer(
                try server.keys.changeSorted(words[1]) { set in
                    words.from(2).reduce(0) { set.remove($1) ? $0 + 1 : $0 }
                })
        },
        Command("zscore", 3, .first) { server, words throws(RedisError) in
            try server.keys.sorted(words[1])?.score(words[2]).map { .double($0) } ?? .null
        },
        Command("zmscore", -3, .first) { server, words throws(RedisError) in
            let set = try server.keys.sorted(words[1])
            return .array(words.from(2).map { member in set?.score(member).map { .double($0) } ?? .null })
        },
        Command("zcard", 2, .first) { server, words throws(RedisError) in
            .integer(try server.keys.sorted(words[1])?.count ?? 0)
        },
        Command("zrank", 3, .first) { server, words throws(RedisError) in
            try server.keys.sorted(words[1])?.rank(words[2]).map { .integer($0) } ?? .null
        },
        Command("zrevrank", 3, .first) { server, words throws(RedisError) in
            guard let set = try server.keys.sorted(words[1]) else { return .null }
            return set.rank(words[2]).map { .integer(set.count - 1 - $0) } ?? .null
        },
        Command("zpopmin", -2, .first, .write) { server, words throws(RedisError) in
            try pop(server, words, lowest: true)
        },
        Command("zpopmax", -2, .first, .write) { server, words throws(RedisError) in
            try pop(server, words, lowest: false)
        },
    ]

    private struct AddOptions {
        var onlyNew = false
        var onlyKnown = false
        var onlyHigher = false
        var onlyLower = false
        var countsChanged = false
        var adds = false
    }

    private struct AddOutcome {
        var added = 0
        var changed = 0
        var touched = 0
        var score: Double?
    }

    private static func add(_ server: Server, _ words: Arguments, adds: Bool) throws(RedisError) -> Reply {
        var options = AddOptions(adds: adds)
        var index = 2
        reading: while !adds, index < words.count {
            switch words.upper(index) {
            case "NX": options.onlyNew = true
            case "XX": options.onlyKnown = true
            case "GT": options.onlyHigher = true
            case "LT": options.onlyLower = true
            case "CH": options.countsChanged = true
            case "INCR": options.adds = true
            default: break reading
            }
            index += 1
        }
        let rest = words.count - index
        guard rest > 0, rest % 2 == 0 else { throw .syntax }
        try check(options, pairs: rest / 2)
        var pairs: [(score: Double, member: Bytes)] = []
        for place in stride(from: index, to: words.count, by: 2) {
            pairs.append((try words.double(place), words[place + 1]))
        }
        return try apply(server, words[1], pairs, options)
    }

    private static func check(_ options: AddOptions, pairs: Int) throws(RedisError) {
        if options.onlyNew, options.onlyKnown {
            throw RedisError("ERR XX and NX options at the same time are not compatible")
        }
        let limits = (options.onlyHigher ? 1 : 0) + (options.onlyLower ? 1 : 0)
        if limits + (options.onlyNew ? 1 : 0) > 1 {
            throw RedisError("ERR GT, LT, and/or NX options at the same time are not compatible")
        }
        if options.adds, pairs > 1 { throw RedisError("ERR INCR option supports a single increment-element pair") }
    }

    private static func apply(
        _ server: Server, _ key: Bytes, _ pairs: [(score: Double, member: Bytes)], _ options: AddOptions
    ) throws(RedisError) -> Reply {
        if options.onlyKnown, try server.keys.sorted(key) == nil { return options.adds ? .null : .integer(0) }
        var isNotNumber = false
        let outcome = try server.keys.changeSorted(key) { set in
            var outcome = AddOutcome()
            for pair in pairs {
                let old = set.score(pair.member)
                if old == nil ? options.onlyKnown : options.onlyNew { continue }
                let score = options.adds ? (old.map { $0 + pair.score } ?? pair.score) : pair.score
                if score.isNaN {
                    isNotNumber = true
                    break
                }
                if let old, (options.onlyHigher && score <= old) || (options.onlyLower && score >= old) { continue }
                set.set(pair.member, score)
                outcome.score = score
                if old == nil { outcome.added += 1 } else if old != score { outcome.changed += 1 }
            }
            return outcome
        }
        if isNotNumber { throw RedisError("ERR resulting score is not a number (NaN)") }
        if options.adds { return outcome.score.map { .double($0) } ?? .null }
        return .integer(options.countsChanged ? outcome.added + outcome.changed : outcome.added)
    }

    private static func pop(_ server: Server, _ words: Arguments, lowest: Bool) throws(RedisError) -> Reply {
        if words.count > 3 { throw .syntax }
        var count = 1
        if words.count == 3 {
            guard let number = words[2].integer, number >= 0 else { throw .notPositive }
            count = Int(number)
        }
        guard let set = try server.keys.sorted(words[1]) else { return .array([]) }
        let gone = lowest ? Array(set.items.prefix(count)) : Array(set.items.suffix(count).reversed())
        try server.keys.changeSorted(words[1]) { set in for item in gone { set.remove(item.member) } }
        server.rewrite = gone.isEmpty ? [] : [[Bytes("ZREM"), words[1]] + gone.map(\.member)]
        let isThree = server.client.version == 3 && !server.isInScript
        if isThree, words.count == 3 { return .array(gone.map { .array([.bulk($0.member), .double($0.score)]) }) }
        return .array(gone.flatMap { [.bulk($0.member), .double($0.score)] })
    }
}

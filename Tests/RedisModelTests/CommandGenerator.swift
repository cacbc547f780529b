// SPDX-License-Identifier: Apache-2.0
import Support

/// Random commands with arguments that are often right and sometimes wrong.
struct CommandGenerator {
    var random: SeededGenerator
    /// Redis 8 reads no hexadecimal, empty or indented scores.
    private let isNew: Bool

    init(seed: UInt64, version: String) {
        random = SeededGenerator(seed: seed)
        isNew = (Int(version.prefix { $0 != "." }) ?? 0) >= 8
    }

    mutating func next() -> [[UInt8]] {
        switch below(20) {
        case 0..<3: strings()
        case 3..<7: hashes()
        case 7..<10: sets()
        case 10..<14: sortedSets()
        case 14: lists()
        case 15..<18: keys()
        case 18: ranges()
        default: broken()
        }
    }

    mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }

    mutating func pick<Element>(_ all: [Element]) -> Element { all[below(all.count)] }

    // MARK: Words

    mutating func key(_ kind: String) -> String {
        let kinds = ["s", "h", "m", "z", "l"]
        return (below(12) == 0 ? pick(kinds) : kind) + String(below(4))
    }

    mutating func member() -> String {
        pick(["a", "b", "c", "dd", "e e", "", "7", "42", "-3", "007", "\u{0}x", "\u{e9}", String(below(40))])
    }

    mutating func value() -> String {
        switch below(10) {
        case 0: return String(repeating: "v", count: below(90))
        case 1: return pick(["9223372036854775807", "-9223372036854775808", " 1", "1 ", "+1", "1.5", "01", "", "-0"])
        case 2...5: return String(below(2000) - 1000)
        default: return member()
        }
    }

    mutating func score() -> String {
        if !isNew, below(8) == 0 { return pick(["", " 1", "0x10"]) }
        return pick([
            String(below(20) - 10), String(below(20)), "1.5", "0.1", "-0", "1e3", "inf", "-inf", "+inf", "1e20", "nan",
            "x",
            "3.0000000000000001", "1700000000123", "1e17", "123456789012345678",
        ])
    }

    mutating func number() -> String {
        pick([
            String(below(8)), String(below(8) - 4), String(below(100)), "-1", "0", "1", "2", "x", "1.0",
            "9223372036854775807",
            "-9223372036854775808", "9223372036854775808", "",
        ])
    }

    mutating func words(_ name: String, _ rest: [String]) -> [[UInt8]] {
        let name = below(8) == 0 ? name.lowercased() : name
        return ([name] + rest).map { Array($0.utf8) }
    }

    mutating func some(_ limit: Int, _ make: (inout CommandGenerator) -> [String]) -> [String] {
        var all: [String] = []
        for _ in 0...below(limit) { all += make(&self) }
        return all
    }

    // MARK: Commands

    private mutating func strings() -> [[UInt8]] {
        let key = key("s")
        switch below(14) {
        case 0...2: return words("GET", [key])
        case 3...5: return words("SET", [key, value()] + setOptions())
        case 6: return words(pick(["SETNX", "GETSET", "APPEND"]), [key, value()])
        case 7: return words(pick(["INCR", "DECR", "STRLEN", "GETDEL"]), [key])
        case 8: return words(pick(["INCRBY", "DECRBY"]), [key, number()])
        case 9: return words("MGET", some(4) { [$0.key("s")] })
        case 10: return words("MSET", some(3) { [$0.key("s"), $0.value()] })
        case 11: return words(pick(["GETRANGE", "SUBSTR"]), [key, number(), number()])
        case 12: return words("SETRANGE", [key, pick(["0", "1", "5", "30", "-1", "x"]), member()])
        default:
            let life = pick(["1000", "5000", "0", "-1", "x", "9223372036854775807"])
            return below(2) == 0
                ? words("SETEX", [key, life, value()]) : words("PSETEX", [key, life + "000", value()])
        }
    }

    private mutating func setOptions() -> [String] {
        var options: [String] = []
        for _ in 0..<below(4) {
            switch below(8) {
            case 0: options.append("NX")
            case 1: options.append("XX")
            case 2: options.append("GET")
            case 3: options.append("KEEPTTL")
            case 4: options += ["EX", pick(["5000", "0", "x", "9223372036854775"])]
            case 5: options += ["PX", pick(["5000000", "-5", ""])]
            case 6: options += [pick(["EXAT", "exat"]), pick(["3000000000", "1", "-2"])]
            default: options += ["PXAT", pick(["3000000000000", "1000"])]
            }
        }
        return options
    }

    private mutating func hashes() -> [[UInt8]] {
        let key = key("h")
        switch below(14) {
        case 0...3: return words(pick(["HSET", "HSET", "HMSET"]), [key] + some(3) { [$0.member(), $0.value()] })
        case 4: return words(pick(["HGET", "HEXISTS", "HSTRLEN"]), [key, member()])
        case 5: return words("HMGET", [key] + some(4) { [$0.member()] })
        case 6: return words(pick(["HGETALL", "HKEYS", "HVALS", "HLEN"]), [key])
        case 7, 8: return words("HDEL", [key] + some(3) { [$0.member()] })
        case 9: return words("HSETNX", [key, member(), value()])
        case 10, 11: return words("HINCRBY", [key, member(), number()])
        case 12:
            return words(
                "HSCAN", [key, "0", "COUNT", "10000"] + pick([[], ["MATCH", "*"], ["MATCH", "[a-c]"], ["X"]]))
        default:
            return words(
                "HRANDFIELD",
                [key] + pick([[], ["10000"], ["10000", "WITHVALUES"], ["0"], ["0", "WITHVALUES"], ["1", "X"]]))
        }
    }

    private mutating func sets() -> [[UInt8]] {
        let key = key("m")
        switch below(12) {
        case 0...2: return words("SADD", [key] + some(4) { [$0.member()] })
        case 3: return words("SREM", [key] + some(3) { [$0.member()] })
        case 4: return words(pick(["SCARD", "SMEMBERS"]), [key])
        case 5: return words(pick(["SISMEMBER", "SMISMEMBER"]), [key, member()])
        case 6: return words(pick(["SUNION", "SINTER", "SDIFF"]), some(3) { [$0.key("m")] })
        case 7, 8: return words(pick(["SUNIONSTORE", "SINTERSTORE", "SDIFFSTORE"]), [key] + some(3) { [$0.key("m")] })
        case 9: return words("SMOVE", [key, self.key("m"), member()])
        case 10: return words("SSCAN", [key, pick(["0", "0", "x"]), "COUNT", pick(["10000", "0"])])
        default:
            return below(2) == 0
                ? words("SPOP", [key, pick(["10000", "0", "-1", "x"])])
                : words("SRANDMEMBER", [key] + pick([[], ["10000"], ["0"], ["x"]]))
        }
    }

    private mutating func sortedSets() -> [[UInt8]] {
        let key = key("z")
        switch below(10) {
        case 0...3:
            let options = below(3) == 0 ? some(3) { [$0.pick(["NX", "XX", "GT", "LT", "CH", "INCR"])] } : []
            return words("ZADD", [key] + options + some(3) { [$0.score(), $0.member()] })
        case 4: return words("ZREM", [key] + some(3) { [$0.member()] })
        case 5: return words(pick(["ZSCORE", "ZRANK", "ZREVRANK"]), [key, member()])
        case 6: return words(pick(["ZCARD", "ZMSCORE"]), [key] + some(2) { [$0.member()] })
        case 7: return words("ZINCRBY", [key, score(), member()])
        case 8: return words(pick(["ZPOPMIN", "ZPOPMAX"]), [key] + pick([[], ["2"], ["0"], ["-1"]]))
        default: return words("ZSCAN", [key, "0", "COUNT", "10000"])
        }
    }

    private mutating func ranges() -> [[UInt8]] {
        let key = key("z")
        switch below(6) {
        case 0: return words(pick(["ZRANGE", "ZREVRANGE"]), [key, number(), number()] + pick([[], ["WITHSCORES"]]))
        case 1:
            let options = some(4) {
                $0.pick([["BYSCORE"], ["BYLEX"], ["REV"], ["WITHSCORES"], ["LIMIT", "1", $0.number()], []])
            }
            return words("ZRANGE", [key, bound(), bound()] + options)
        case 2:
            return words(
                pick(["ZRANGEBYSCORE", "ZREVRANGEBYSCORE"]),
                [key, scoreBound(), scoreBound()]
                    + pick([[], ["WITHSCORES"], ["LIMIT", "0", "2"], ["LIMIT", "-1", "2"]]))
        case 3:
            return words(
                pick(["ZRANGEBYLEX", "ZREVRANGEBYLEX"]),
                [key, byteBound(), byteBound()] + pick([[], ["LIMIT", "1", "-1"], ["WITHSCORES"]]))
        case 4:
            let name = pick(["ZCOUNT", "ZLEXCOUNT"])
            return words(
                name, name == "ZCOUNT" ? [key, scoreBound(), scoreBound()] : [key, byteBound(), byteBound()])
        default:
            switch below(3) {
            case 0: return words("ZREMRANGEBYRANK", [key, number(), number()])
            case 1: return words("ZREMRANGEBYSCORE", [key, scoreBound(), scoreBound()])
            default: return words("ZREMRANGEBYLEX", [key, byteBound(), byteBound()])
            }
        }
    }

    private mutating func scoreBound() -> String {
        pick(["-inf", "+inf", "(" + score(), score(), "0", isNew ? "(x" : "(", "(5", "5", isNew ? "y" : ""])
    }

    private mutating func byteBound() -> String { pick(["-", "+", "[" + member(), "(" + member(), "x", "[", ""]) }

    private mutating func bound() -> String {
        let bound = below(2) == 0 ? scoreBound() : byteBound()
        return isNew ? String(bound.prefix { $0 != "\u{0}" }) + "z" : bound
    }

    private mutating func lists() -> [[UInt8]] {
        let key = key("l")
        switch below(5) {
        case 0, 1: return words(pick(["RPUSH", "LPUSH"]), [key] + some(3) { [$0.member()] })
        case 2: return words(pick(["LPOP", "RPOP", "LLEN"]), [key] + pick([[], [], [], ["2"], ["0"], ["-1"]]))
        case 3: return words("LRANGE", [key, number(), number()])
        default: return words("LINDEX", [key, pick(["0", "1", "-1", "9"])])
        }
    }

    private mutating func keys() -> [[UInt8]] {
        let key = key(pick(["s", "h", "m", "z", "l"]))
        switch below(16) {
        case 0, 1:
            return words(
                pick(["DEL", "UNLINK", "EXISTS", "TOUCH"]), some(3) { $0.below(2) == 0 ? [key] : [$0.key("s")] })
        case 2: return words("TYPE", [key])
        case 3...5:
            // The two clocks differ, so only times that do not follow from them are compared with others.
            let kind = below(4)
            let conditions = kind < 2 ? ["NX", "XX", "Q"] : ["NX", "XX", "GT", "LT", "Q"]
            let options = below(3) == 0 ? some(2) { [$0.pick(conditions)] } : []
            switch kind {
            case 0:
                return words(
                    "EXPIRE", [key, pick(["5000", "90000", "-1", "0", "x", "9223372036854775807"])] + options)
            case 1: return words("PEXPIRE", [key, pick(["5000000", "90000000", "-1", "x"])] + options)
            case 2: return words("EXPIREAT", [key, pick(["3000000000", "3100000000", "1", "-9"])] + options)
            default: return words("PEXPIREAT", [key, pick(["3000000000000", "3100000000000", "1000"])] + options)
            }
        case 6, 7: return words(pick(["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME", "PERSIST"]), [key])
        case 8:
            return words(
                "GETEX", [self.key("s")] + pick([[], ["PERSIST"], ["EX", "5000"], ["PXAT", "1000"], ["X"], ["EX"]]))
        case 9: return words(pick(["RENAME", "RENAMENX"]), [key, self.key("s")])
        case 10: return words("KEYS", [pick(["*", "s*", "?1", "[hz][0-2]", "[^s]*", "\\s0", "h[0", "x"])])
        case 11: return words("SCAN", ["0", "COUNT", "10000"] + pick([[], ["TYPE", "hash"], ["MATCH", "z*"]]))
        case 12: return words("DBSIZE", [])
        case 13: return words("SELECT", [pick(["0", "0", "0", "99", "-1", "x"])])
        case 14: return words("PING", pick([[], ["hi"], ["a", "b"]]))
        default: return words("ECHO", [value()])
        }
    }

    /// Commands that no server runs.
    private mutating func broken() -> [[UInt8]] {
        switch below(8) {
        case 0: return words("NOSUCH", some(3) { [$0.value()] })
        case 1: return words(pick(["GET", "HSET", "ZADD", "EVAL", "EXPIRE"]), [])
        case 2: return words("HSET", [key("h"), "a"])
        case 3: return words("MSET", ["s1"])
        case 4: return words("ZADD", [key("z"), "1"])
        case 5: return words("SCRIPT", pick([["NOSUCH"], ["EXISTS", "00"], ["FLUSH", "x"], ["LOAD"]]))
        case 6: return words("CLUSTER", pick([["INFO"], ["SLOTS"]]))
        default: return words(pick(["ASKING", "READONLY", "READWRITE"]), [])
        }
    }
}

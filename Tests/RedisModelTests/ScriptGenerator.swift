// SPDX-License-Identifier: Apache-2.0
import Support

@testable import Redis
@testable import Worker

/// Random calls of the worker's scripts, and small scripts for the rules of Lua in Redis.
struct ScriptGenerator {
    var words: CommandGenerator
    private var known: Set<String> = []
    /// The ledger entry of a recent claim.
    private var recent = "AAAAAAA01700000000000  m0"
    static let base = 1_700_000_000_000

    init(seed: UInt64, version: String) { words = CommandGenerator(seed: seed, version: version) }

    mutating func next() -> [[UInt8]] {
        switch words.below(12) {
        case 0...3: claims()
        case 4, 5: reads()
        case 6, 7: tokens()
        case 8: queues()
        case 9: heartbeats()
        case 10: settings()
        default: words.below(2) == 0 ? small() : touch()
        }
    }

    private mutating func call(_ script: RedisScript, _ keys: [String], _ arguments: [String]) -> [[UInt8]] {
        let isKnown = known.contains(script.sha1)
        // Also EVALSHA of what the server may not know, which is refused.
        let isShort = isKnown || words.below(20) == 0
        if !isShort { known.insert(script.sha1) }
        let head = isShort ? ["EVALSHA", script.sha1] : ["EVAL", script.text]
        return (head + [String(keys.count)] + keys + arguments).map { Array($0.utf8) }
    }

    // MARK: Words

    private mutating func user() -> String { words.pick(["{im:u1}", "{im:u2}"]) }

    /// Of another type now and then.
    private mutating func key(_ kind: String, _ user: String) -> String {
        words.below(60) == 0 ? words.pick(["c:s:", "c:l:", "c:u:"]) + user : kind + user
    }

    private mutating func time() -> Int { Self.base + words.below(40) * 100 }

    private mutating func seq() -> String { words.below(3) == 0 ? "" : String(words.below(60)) }

    private static let conversations = ["AAAAAAA0", "AAAAAAA1", "B\u{1}BBBBBB"]

    private static let targets = ["TTTTTTT0", "TTTTTTT1", "TTTTTTT2", "TTTTTTT3", "TTTTTTT4", "TTTTTTT5"]

    // MARK: The worker's scripts

    private mutating func claims() -> [[UInt8]] {
        let user = user()
        let revokes = words.below(3) == 0
        var users = [user]
        if words.below(4) == 0 { users = ["{im:u1}", "{im:u2}"] }
        let id = words.below(8)
        let place = words.below(3)
        let sent = time()
        let seq = seq()
        var keys: [String] = []
        for user in users {
            keys += ["c:d:\(user):m\(id)", key("c:s:", user), key("c:l:", user), key("c:x:", user)]
            if revokes { keys.append("c:d:\(user):m\(words.below(6))") }
        }
        let conversation = Self.conversations[place]
        var arguments = [
            words.pick(["c", "c", "c", "o", "q", "a", "ca3:dnd", "qa8:no_token", "cv3:dnd"]), "100000", "r\(place)",
            "\(conversation)\(sent) \(seq) m\(id)",
            String(sent), seq, String(Self.base + 5000),
        ]
        recent = arguments[3]
        if revokes {
            let target = words.below(6)
            arguments += [words.pick(["x", "k"]), conversation, " m\(target)", Self.targets[target]]
            if words.below(2) == 0 { arguments.append("1") }
        }
        if users.count > 1 { return call(ClaimScripts.claimEach, keys, arguments) }
        switch words.below(8) {
        case 0: return call(DryRunScripts.claimDryRun, keys, arguments)
        case 1: return call(ClaimScripts.peek, Array(keys.prefix(2)), [arguments[2], arguments[4], arguments[5]])
        default: return call(ClaimScripts.claim, keys, arguments)
        }
    }

    private mutating func reads() -> [[UInt8]] {
        let user = user()
        let keys = [key("c:s:", user), key("c:l:", user), key("c:x:", user), "c:u:" + user]
        let place = words.below(3)
        switch words.below(5) {
        case 0:
            return call(
                ReadScripts.report, keys, [String(time()), String(words.below(30)), String(Self.base + 5000)])
        case 1:
            return call(
                DigestScripts.holdForDigest, ["c:h:" + user, keys[1]],
                [recent, "90000"])
        case 2:
            return call(DigestScripts.takeDigest, ["c:h:" + user, "c:i:" + user, keys[1], keys[0]], ["90000"])
        default:
            var arguments = [
                "r\(place)", Self.conversations[place], seq(), words.below(3) == 0 ? "" : String(time()),
                String(time()),
                String(Self.base + 5000),
            ]
            if words.below(2) == 0 { arguments.append("1") }
            return call(ReadScripts.read, keys, arguments)
        }
    }

    private mutating func tokens() -> [[UInt8]] {
        let user = user()
        let uid = words.pick(["u1", "u2", "u 3"])
        let version = words.pick(["1001", "1002", "1003", "1004"])
        let token = words.pick(["aa01", "aa02", "bb03"])
        let owner = "c:o:{\(token)}"
        let early = "c:e:{\(token)}"
        switch words.below(10) {
        case 0, 1: return call(OwnerScripts.bindOwner, [owner, early], [version, uid, String(time())])
        case 2: return call(OwnerScripts.settleOwner, [owner], [version, uid])
        case 3: return call(OwnerScripts.unbindOwner, [owner, early], [version, uid])
        case 4:
            return call(
                OwnerScripts.retireOwner, [owner],
                [version, uid] + words.pick([["u", ""], ["d", String(time())], ["s", String(time())]]))
        case 5: return call(TombstoneScripts.reviveOwner, [owner], [version, uid])
        case 6:
            return call(
                OwnerScripts.dropToken, ["c:u:" + user, "c:s:" + user, "c:b:" + user],
                [token, version, words.pick(["", String(time())]), String(Self.base + 5000)]
                    + words.pick([
                        [], ["", "", "ta2:d1"], [String(time()), "", ""], [String(time()), "2:d1", ""],
                        [String(time()), "2:d1", "", "aa01 1001", "aa02 1002", "bb03 1003"],
                    ]))
        case 7:
            return call(
                OwnerScripts.listActivityUser, ["c:a:{im:act}"], [uid, words.pick(["1", "2", "5"]), "90000"])
        case 8:
            return call(
                TombstoneScripts.reviveToken, ["c:u:" + user, "c:s:" + user],
                ["t1", "1 \(version) \(time()) \(token) p 3:top---"])
        default:
            let bound = time()
            return call(
                OwnerScripts.addToken, [key("c:u:", user), "c:s:" + user, "c:v:" + user, "c:b:" + user],
                [
                    words.pick(["ta2:d1", "ta2:d2", "tv2:d1", "t1"]), "1 \(version) \(bound) \(token) p 3:top", version,
                    String(bound),
                    token,
                    words.pick(["", "act"]), words.pick(["=", "-", "2:cr"]), "=", words.pick(["=", "2:de"]), "=",
                    String(Self.base + 5000), words.pick(["", "1:0"]),
                ])
        }
    }

    private mutating func queues() -> [[UInt8]] {
        switch words.below(6) {
        case 0: return ["ZADD", "c:q:{0}", String(time()), words.member()].map { Array($0.utf8) }
        case 1: return call(DigestScripts.claimDue, ["c:q:{0}"], [String(time()), String(time() + 1), "2"])
        case 2: return call(DigestScripts.endDue, ["c:q:{0}"], [words.member(), String(time() + 1)])
        case 3:
            return call(TombstoneScripts.buryToken, ["c:t:{0}"], [words.member(), String(time()), String(time())])
        case 4:
            // At most seven, so that what is drawn is the whole hash.
            return call(
                ReportScripts.acknowledge, ["c:k:" + user()],
                ["i2:d\(words.below(3))", String(Self.base + words.below(1 << 30)), "90000", "7", "20"]
                    + words.some(2) { ["m\($0.below(6))"] })
        default:
            return call(
                ReportScripts.reportPush, ["c:p:" + user()],
                ["push\(words.below(12))", String(Self.base + words.below(1 << 30)), "90000", "7"])
        }
    }

    private mutating func heartbeats() -> [[UInt8]] {
        switch words.below(8) {
        case 0:
            return call(HeartbeatScripts.endReplay, ["c:loss"], [String(words.below(40)), "2", String(words.below(3))])
        case 1: return call(HeartbeatScripts.dropLoss, ["c:loss"], [String(words.below(40))])
        case 2: return call(HeartbeatScripts.acceptLoss, ["c:accept"], [String(time()), "90000"])
        default:
            let places = words.some(3) { words in
                [
                    words.pick(["", "", "="]) + String(words.below(3)), String(words.below(500)),
                    words.pick(["", String(words.below(500))]), words.pick(["", String(words.below(500))]),
                ]
            }
            return call(
                HeartbeatScripts.beat, ["c:beat", "c:loss"],
                [
                    words.pick(["", String(words.below(60))]), words.pick(["", "1"]), words.pick(["", "1"]),
                    String(time()), words.pick(["", "east/s", "east/s", "west/s"]), "",
                ]
                    + places)
        }
    }

    private mutating func settings() -> [[UInt8]] {
        let user = user()
        switch words.below(11) {
        case 10:
            return call(
                HourScripts.takePlace, [key("c:f:", user)],
                [
                    "d\(words.below(2))", "2", "p\(words.below(9))", String(time()),
                    String(Self.base + 1000 * words.below(7_300)), words.pick(["0", "1"]),
                ])
        case 9: return forgetting(user)
        case 0...2:
            let pairs = words.some(3) { words in
                [
                    words.pick(["dn", "ds", "de", "dw", "lang", "sound"]),
                    words.pick(["", "0", "1", "08:00", "22:00", "x"]),
                ]
            }
            return call(
                SettingsScripts.settings, ["c:u:" + user, "c:s:" + user],
                [String(time()), String(Self.base + 5000)] + pairs)
        case 3, 4:
            return call(
                SettingsScripts.mute, [key("c:s:", user), "c:u:" + user],
                [
                    "m\(words.below(3))", words.pick(["0", "1", "2"]), words.pick(["-", String(time())]),
                    String(time()), String(Self.base),
                ])
        case 5:
            return call(
                ParkingScripts.noteParked, ["c:n:" + user],
                ["f\(words.below(2))", "2 \(time()) 1 \(words.below(9))", "id\(words.below(3))"]
                    + words.pick([[], ["1"]]))
        case 6:
            return call(ParkingScripts.forgetParked, ["c:n:" + user], ["f\(words.below(2))", "id\(words.below(3))"])
        case 7:
            return call(
                ParkingScripts.noteParkedConversation, ["c:g:" + user],
                ["2 \(time()) 1 \(words.below(9))", "id\(words.below(3))", "90000"])
        default: return call(ParkingScripts.forgetParkedConversation, ["c:g:" + user], ["id\(words.below(3))"])
        }
    }

    private mutating func forgetting(_ user: String) -> [[UInt8]] {
        if words.below(3) == 0 {
            return call(ForgetScripts.forgetOwner, ["c:o:{aa01}", "c:e:{aa01}"], ["1001", words.pick(["u1", "u2"])])
        }
        let names = ["u", "s", "l", "x", "k", "a", "g", "h", "p", "r", "b", "f"]
        return call(
            ForgetScripts.forgetUser, names.map { "c:\($0):" + user },
            [String(time()), String(Self.base + 5000)]
                + words.pick([["l"], ["c"], ["c", "aa01 1001", "aa02 1002", "bb03 1003", "aa01 1003"]]))
    }

    /// Damages the scripts' keys, or takes them away.
    private mutating func touch() -> [[UInt8]] {
        let user = user()
        switch words.below(40) {
        case 0: return fullLedger(user)
        // What wrong types and ended pairs leave behind goes away now and then.
        case 1...4: return [Array("FLUSHALL".utf8)]
        default: break
        }
        switch words.below(8) {
        case 0: return ["DEL", "c:s:" + user].map { Array($0.utf8) }
        case 1: return ["DEL", "c:l:" + user, "c:x:" + user].map { Array($0.utf8) }
        case 2:
            return ["HSET", "c:s:" + user, words.pick(["b", "v", "r1", "e", "k"]), words.value()].map { Array($0.utf8) }
        case 3:
            return ["SET", "c:d:\(user):m\(words.below(8))", words.pick(["f", "c", "tx5;", "ck;", "zz", ""])].map {
                Array($0.utf8)
            }
        case 4: return ["DEL", "c:u:" + user].map { Array($0.utf8) }
        case 5: return ["SET", "c:g:" + user, "2 1 2 3 id\(words.below(3))"].map { Array($0.utf8) }
        case 6: return ["HGETALL", words.pick(["c:s:", "c:u:"]) + user].map { Array($0.utf8) }
        default:
            return ["ZRANGE", words.pick(["c:l:", "c:x:"]) + user, "0", "-1", "WITHSCORES"].map { Array($0.utf8) }
        }
    }

    /// So many entries that the next claim cuts the ledger.
    private mutating func fullLedger(_ user: String) -> [[UInt8]] {
        var all = ["ZADD", "c:l:" + user]
        for index in 0..<1001 {
            all += ["0", "\(Self.conversations[index % 3])\(Self.base - index % 77) \(index % 50) m\(index)"]
        }
        return all.map { Array($0.utf8) }
    }

    /// The rules of conversion, errors and flags.
    private mutating func small() -> [[UInt8]] {
        let body = words.pick(SmallScripts.all)
        let keys = [words.key("s"), words.key("z")]
        return (["EVAL", body, "2"] + keys + [words.member(), words.number()]).map { Array($0.utf8) }
    }
}

extension RedisScript {
    /// The script's own text.
    var text: String { String(decoding: source, as: UTF8.self) }
}

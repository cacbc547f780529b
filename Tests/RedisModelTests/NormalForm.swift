// SPDX-License-Identifier: Apache-2.0
@testable import Redis
@testable import Worker

/// What is equal in two replies to one command. Redis leaves open: the order of a hash and a set, what is drawn by
/// chance, and cursors. A time left differs by the time between the two servers. Redis counts keys whose time is over until
/// it removes them.
enum NormalForm {
    static func areEqual(_ words: [[UInt8]], real left: ReplyTree, model right: ReplyTree) -> Bool {
        if left == right { return true }
        let name = String(decoding: words[0], as: UTF8.self).lowercased()
        let last = String(decoding: words[words.count - 1], as: UTF8.self).lowercased()
        switch name {
        case "ttl", "expiretime": return areNear(left, right, 5)
        case "pttl", "pexpiretime": return areNear(left, right, 5000)
        case "dbsize": return (0...5).contains((left.number ?? -1) - (right.number ?? 0))
        case "hgetall": return left.sorted(by: 2) == right.sorted(by: 2)
        case "hkeys", "hvals", "smembers", "sunion", "sinter", "sdiff", "keys": return left.sorted() == right.sorted()
        case "hscan", "scan", "sscan", "zscan":
            let size = name.hasPrefix("h") || name.hasPrefix("z") ? 2 : 1
            guard left.elements.count == 2, right.elements.count == 2 else { return false }
            return left.elements[0] == right.elements[0]
                && left.elements[1].sorted(by: size) == right.elements[1].sorted(by: size)
        case "hrandfield", "srandmember", "spop":
            if words.count == 2 { return isBulk(left) && isBulk(right) }
            let size = last == "withvalues" ? 2 : 1
            return left.sorted(by: size) == right.sorted(by: size)
        case "eval", "evalsha": return listsHashes(words) && left.sorted() == right.sorted()
        default: return false
        }
    }

    /// Whether the script's answer lists the fields of hashes and the members of sets.
    private static func listsHashes(_ words: [[UInt8]]) -> Bool {
        let script = ForgetScripts.forgetUser
        return words.count > 1 && (words[1] == script.source || words[1] == Array(script.sha1.utf8))
    }

    private static func areNear(_ left: ReplyTree, _ right: ReplyTree, _ distance: Int64) -> Bool {
        guard let left = left.number, let right = right.number else { return false }
        return left > 0 && right > 0 && abs(left - right) <= distance
    }

    private static func isBulk(_ tree: ReplyTree) -> Bool { if case .bulk = tree { true } else { false } }
}

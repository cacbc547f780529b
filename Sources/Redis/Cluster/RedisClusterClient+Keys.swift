// SPDX-License-Identifier: Apache-2.0
internal import EventLoop

/// Queries to every master with one combined answer.
struct KeyCounting {
    struct Count {
        let tag: UInt64
        var awaiting = 0
        /// By node (`RedisNode.id`); nil if it is down.
        var keys: [Int64: Int64?] = [:]
    }

    private var open: [UInt64: Count] = [:]
    /// 0 is the query for the map.
    private var lastID: UInt64 = 0

    mutating func begin(_ tag: UInt64) -> UInt64 {
        lastID &+= 1
        open[lastID] = Count(tag: tag)
        return lastID
    }

    mutating func ask(_ id: UInt64, _ node: Int64, isAway: Bool) {
        open[id]?.keys.updateValue(nil, forKey: node)
        if !isAway { open[id]?.awaiting += 1 }
    }

    /// Adds one node's answer; nil for none. Returns the whole count once it is complete.
    mutating func take(_ id: UInt64, _ node: Int64, _ keys: Int64?) -> Count? {
        guard var count = open[id] else { return nil }
        count.awaiting -= 1
        count.keys.updateValue(keys, forKey: node)
        open[id] = count.awaiting > 0 ? count : nil
        return count.awaiting > 0 ? nil : count
    }

    mutating func forget(_ id: UInt64) { open[id] = nil }
}

extension RedisClusterClient {
    /// The number of keys of each master (DBSIZE): an array of pairs, the node's number and its keys, null if it is
    /// down.
    ///
    /// Throws `.notConnected` if no master can be asked.
    public func keyCount(_ tag: UInt64) throws(RedisFault) {
        loop.assertOnLoop()
        let id = counting.begin(tag)
        var isAsked = false
        for node in masters {
            var isAway = true
            do throws(RedisFault) {
                try node.client.inquire(id) { $0.arg(word: "DBSIZE") }
                isAway = false
                isAsked = true
            } catch {}
            counting.ask(id, node.id, isAway: isAway)
        }
        if isAsked { return }
        counting.forget(id)
        throw RedisFault(.notConnected, "no master of the cluster can be asked")
    }

    func didCount(_ id: UInt64, _ node: RedisNode, _ keys: Int64?) {
        guard let count = counting.take(id, node.id, keys) else { return }
        let client = node.client
        guard count.keys.values.contains(where: { $0 != nil }) else {
            delegate?.redis(client, didFail: count.tag, fault: RedisFault(.notConnected, "no master answered"))
            return
        }
        ReplyArena.withPairs(count.keys) { delegate?.redis(client, didReply: count.tag, reply: $0) }
        delegate?.redisDidDeliverReplies(client)
    }
}

extension ReplyArena {
    /// A reply built by this client: an array of pairs of numbers; null for nil.
    static func withPairs(_ pairs: [Int64: Int64?], _ body: (borrowing RedisReply) -> Void) {
        var arena = ReplyArena(bytesMax: 1 << 20)
        let array = arena.add(Node(kind: .array), under: nil)
        for (name, value) in pairs.sorted(by: { $0.key < $1.key }) {
            _ = arena.add(Node(kind: .integer, value: name), under: array)
            _ = arena.add(value.map { Node(kind: .integer, value: $0) } ?? Node(kind: .null), under: array)
        }
        withUnsafePointer(to: arena) { body(RedisReply($0, 0)) }
    }
}

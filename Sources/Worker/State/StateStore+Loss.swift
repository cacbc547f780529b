// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// Whether Redis still has its data (`TokenLoss`).
extension StateStore {
    /// Number of keys in the database; in a cluster those of each node (`keyCounts`).
    func keyCount(tag: UInt64) throws(RedisFault) {
        try countKeys(tag: tag)
    }

    /// The reply of `keyCount` by server; nil for a server that is down. Nil for any other reply.
    static func keyCounts(_ reply: borrowing RedisReply) -> [Int64: Int64?]? {
        if reply.kind == .integer, let count = reply.int64 { return [0: bounded(count)] }
        guard reply.count > 0 else { return nil }
        var counts: [Int64: Int64?] = [:]
        var isOther = false
        reply.forEachPair { server, keys in
            guard server.kind == .integer, keys.kind == .integer || keys.isNull, let server = server.int64 else {
                return isOther = true
            }
            counts.updateValue(keys.int64.map(bounded), forKey: server)
        }
        return isOther ? nil : counts
    }

    /// Keeps sums over nodes valid, whatever a server reports.
    private static func bounded(_ count: Int64) -> Int64 { min(max(0, count), 1 << 40) }

    /// When an operator accepted a loss, by the server's clock, Unix ms: a text, or null.
    func lossAccepted(tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "GET")
            command.arg(word: "c:w:{accepted}")
        }
    }

    /// Accepts the present loss: workers that stopped for it go on, and workers that had not noticed it do not stop. The reply is `OK`.
    ///
    /// The time is the server's, which workers compare with: their own clocks may differ.
    func acceptLoss(nowMs: Int64, tag: UInt64) throws(RedisFault) {
        try change(tag, HeartbeatScripts.acceptLoss, keyCount: 1) { command in
            command.arg(word: "c:w:{accepted}")
            command.arg(StateKeys.time(nowMs))
            command.arg(86_400)
        }
    }

    /// The server's time: two texts (`timeMs`). By a script, since a cluster's client sends by key.
    ///
    /// - Parameter server: its number (`RedisServers.tagNumbers`).
    func time(server: Int, tag: UInt64) throws(RedisFault) {
        try change(tag, ParkingScripts.time, keyCount: 1) { command in command.heartbeatKey(server) }
    }

    /// - Returns: Unix ms; nil for any other reply.
    static func timeMs(_ reply: borrowing RedisReply) -> Int64? {
        guard reply.kind == .array, reply.count == 2, let seconds = reply[0].int64, let micros = reply[1].int64,
            (0..<(1 << 40)).contains(seconds), (0..<1_000_000).contains(micros)
        else { return nil }
        return seconds * 1000 + micros / 1000
    }
}

// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// A user in the queues of due digests.
public struct DueUser: Sendable, Equatable {
    public let app: String
    public let uid: String
    /// The queue; a user is always in the same one.
    public let bucket: Int
    /// The member in the queue.
    public let member: [UInt8]

    /// Number of queues, so that no slot of a cluster has them all.
    static let buckets = 16

    public init(app: String, uid: String) {
        self.app = app
        self.uid = uid
        var hash = SipHash128(key0: 0x6361_7269_6c6c_6f6e, key1: 0x6469_6765_7374_3031)
        hash.update(lengthThen: app)
        hash.update(lengthThen: uid)
        bucket = Int(hash.finish().0 % UInt64(Self.buckets))
        member = Array("\(app.utf8.count):\(app)\(uid)".utf8)
    }

    /// Reads `member`; nil for anything else.
    init?(member: UnsafeRawBufferPointer) {
        var text = CompactText(member)
        guard let app = text.string(atMost: InputLimit.id),
            let uid = text.text(until: 0, atMost: InputLimit.user)
        else { return nil }
        self.init(app: app, uid: uid)
    }
}

/// The digest after DND (`dnd_digest`): each user's held messages, and their due time.
extension StateStore {
    /// Two nights after it is due. A digest that was not sent within this time is dropped.
    private static let digestSeconds: Int64 = 172_800

    /// At most as long as the ledger, which knows the messages in it: a snooze may have no end.
    private static func seconds(untilMs endMs: Int64, nowMs: Int64) -> Int64 {
        min(max(0, endMs &- nowMs) / 1000 &+ digestSeconds, StateKeys.ledgerSeconds)
    }

    /// - Parameter untilMs: when the digest is due.
    func holdForDigest(
        app: String, uid: String, _ subject: ClaimSubject, untilMs: Int64, nowMs: Int64, tag: UInt64
    ) throws(RedisFault) {
        try change(tag, DigestScripts.holdForDigest, keyCount: 2) { command in
            command.key("c:g", app, uid)
            command.key("c:l", app, uid)
            command.ledgerMember(subject, digest: StateKeys.digest(subject.conversation))
            command.arg(Self.seconds(untilMs: untilMs, nowMs: nowMs))
        }
    }

    /// Schedules a user's digest. The last call wins.
    func planDue(_ user: DueUser, atMs: Int64, tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "ZADD")
            command.queue(user.bucket)
            command.arg(StateKeys.time(atMs))
            command.arg(user.member)
        }
    }

    /// Up to `count` due members of a queue, under a lease: an array.
    func claimDue(bucket: Int, nowMs: Int64, leaseMs: Int64, count: Int, tag: UInt64) throws(RedisFault) {
        try change(tag, DigestScripts.claimDue, keyCount: 1) { command in
            command.queue(bucket)
            command.arg(StateKeys.time(nowMs))
            command.arg(StateKeys.time(leaseMs))
            command.arg(count)
        }
    }

    /// The content of a user's digest: `{count, sent_ms of the oldest}`.
    func takeDigest(app: String, uid: String, tag: UInt64) throws(RedisFault) {
        try change(tag, DigestScripts.takeDigest, keyCount: 4) { command in
            command.key("c:g", app, uid)
            command.key("c:h", app, uid)
            command.key("c:l", app, uid)
            command.key("c:s", app, uid)
            command.arg(Self.digestSeconds)
        }
    }

    /// The digest is due later than when it was taken: DND holds again. Two commands with the same tag.
    func putOffDigest(of user: DueUser, toMs: Int64, nowMs: Int64, tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "EXPIRE")
            command.key("c:h", user.app, user.uid)
            command.arg(Self.seconds(untilMs: toMs, nowMs: nowMs))
        }
        try planDue(user, atMs: toMs, tag: tag)
    }

    /// Nothing is due for the user any more. The reply is an integer.
    func dropDue(_ user: DueUser, tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "ZREM")
            command.queue(user.bucket)
            command.arg(user.member)
        }
    }

    /// The digest was sent, or was empty. Two commands with the same tag.
    func endDigest(of user: DueUser, leaseMs: Int64, tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "DEL")
            command.key("c:h", user.app, user.uid)
        }
        try change(tag, DigestScripts.endDue, keyCount: 1) { command in
            command.queue(user.bucket)
            command.arg(user.member)
            command.arg(StateKeys.time(leaseMs))
        }
    }
}

extension RedisCommand {
    fileprivate mutating func queue(_ bucket: Int) {
        part("c:q:{q")
        part(Int64(bucket))
        part("}")
        end()
    }
}

/// Alerts held by DND, until their end.
enum DigestScripts {
    /// Stores a counted message with a held alert.
    ///
    /// KEYS held, ledger. ARGV 1 ledger member; 2 seconds of life. Answer: 1, or 0 for a read or revoked message.
    static let holdForDigest = RedisScript(
        """
        #!lua
        if not redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 0 end
        if redis.call('SCARD', KEYS[1]) >= 1000 then redis.call('SPOP', KEYS[1]) end
        redis.call('SADD', KEYS[1], ARGV[1])
        redis.call('EXPIRE', KEYS[1], ARGV[2])
        return 1
        """)

    /// Moves held messages to the digest's set, where they stay until the digest is sent. Unread ones that are younger
    /// than the client's last report count.
    ///
    /// KEYS held, digest's set, ledger, state. ARGV 1 seconds of life. Answer: `{count, sent_ms of the oldest in the
    /// set}`.
    static let takeDigest = RedisScript(
        """
        #!lua
        \(ScriptParts.inHundreds)
        if redis.call('EXISTS', KEYS[1]) == 1 then
          redis.call('SUNIONSTORE', KEYS[2], KEYS[1], KEYS[2])
          redis.call('DEL', KEYS[1])
          redis.call('EXPIRE', KEYS[2], ARGV[1])
          local extra = redis.call('SCARD', KEYS[2]) - 1000
          if extra > 0 then redis.call('SPOP', KEYS[2], extra) end
        end
        local b, base, count, oldest = redis.call('HGET', KEYS[4], 'b'), -1, 0, nil
        if b then base = tonumber(string.match(b, '^%d+')) or -1 end
        local young = {}
        for _, m in ipairs(redis.call('SMEMBERS', KEYS[2])) do
          local sent = tonumber(string.match(m, '^%d+', 9))
          if not oldest or sent < oldest then oldest = sent end
          if sent > base then young[#young + 1] = m end
        end
        inHundreds(young, function(...)
          for _, score in ipairs(redis.call('ZMSCORE', KEYS[3], ...)) do
            if score then count = count + 1 end
          end
        end)
        return {count, oldest or 0}
        """)

    /// Takes due entries under a lease. A worker that does not finish in time leaves them to another.
    ///
    /// KEYS queue. ARGV 1 now; 2 the lease's end; 3 the maximum number. Answer: the members.
    static let claimDue = RedisScript(
        """
        #!lua
        local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
        for _, m in ipairs(due) do redis.call('ZADD', KEYS[1], ARGV[2], m) end
        return due
        """)

    /// Ends a lease, unless the work was scheduled again. KEYS queue. ARGV 1 member; 2 the lease's end.
    static let endDue = RedisScript(
        """
        #!lua
        local at = redis.call('ZSCORE', KEYS[1], ARGV[1])
        if at and tonumber(at) == tonumber(ARGV[2]) then return redis.call('ZREM', KEYS[1], ARGV[1]) end
        return 0
        """)
}

// SPDX-License-Identifier: Apache-2.0
import Redis

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

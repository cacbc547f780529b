// SPDX-License-Identifier: Apache-2.0
import Redis

/// Removed tokens (`Tombstone`).
enum TombstoneScripts {
    /// KEYS tombstones. ARGV 1 member; 2 now; 3 the oldest time to keep. Answer: the number of removed old ones, at
    /// most 16.
    static let buryToken = RedisScript(
        """
        #!lua
        redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
        redis.call('EXPIRE', KEYS[1], 691200)
        local old = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. ARGV[3], 'LIMIT', 0, 16)
        if #old > 0 then redis.call('ZREM', KEYS[1], unpack(old)) end
        return #old
        """)

    /// KEYS user, state. ARGV 1 field; 2 record. Answer: 1 it is stored, 0 another one is.
    static let reviveToken = RedisScript(
        """
        #!lua
        local cur = redis.call('HGET', KEYS[1], ARGV[1])
        if cur then return cur == ARGV[2] and 1 or 0 end
        redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
        redis.call('HINCRBY', KEYS[2], 'v', 1)
        return 1
        """)

    /// KEYS owner. ARGV 1 version; 2 uid. Answer: 1 the user owns it, 0 another owner or a newer bind, 2 the user
    /// unbound it.
    static let reviveOwner = RedisScript(
        """
        #!lua
        local cur = redis.call('GET', KEYS[1])
        if cur then
          local v, st, len, at = string.match(cur, '^1 (%d+) (%a) (%d+) ()')
          if v ~= ARGV[1] or string.sub(cur, at, at + len - 1) ~= ARGV[2] then return 0 end
          if st == 'b' then return 1 end
          if st ~= 'd' then return 2 end
        end
        redis.call('SET', KEYS[1], '1 ' .. ARGV[1] .. ' b ' .. #ARGV[2] .. ' ' .. ARGV[2])
        return 1
        """)
}

// SPDX-License-Identifier: Apache-2.0
import Redis

/// A bind crosses slots: the token's owner entry first, then the users. The token is removed from the previous owners
/// before the new one gets it. It is also removed from a user after an unbind or a removal, because that may have been
/// interrupted before the copy was deleted. A copy that remains or comes late has a version without known owners
/// (`KnownOwners`), so the owner is read, and the push is refused. An interrupted bind is completed when the record is
/// read again. So a push may be lost, but none reaches a previous owner once the bind is applied.
///
/// Owner record: `1 <version> <b|u|d> <length of uid> <uid><previous owners, each as length:uid>`; `u`: unbound, `d`:
/// removed because of APNs' answer.
extension StateScripts {
    /// KEYS owner, early unbinds. ARGV 1 version; 2 uid. Answer: `{0 stale | 1 owner | 2 was unbound before it came,
    /// previous owners…}`.
    static let bindOwner = RedisScript(
        """
        #!lua
        local cur, former, state, over = redis.call('GET', KEYS[1]), '', 'b', nil
        if cur then
          local v, st, len, at = string.match(cur, '^1 (%d+) (%a) (%d+) ()')
          if v then
            local uid = string.sub(cur, at, at + len - 1)
            if v > ARGV[1] or (v == ARGV[1] and uid ~= ARGV[2]) then return {0} end
            former = string.sub(cur, at + len)
            if v == ARGV[1] then
              state = st
            elseif uid ~= ARGV[2] then
              if #former < 1024 then former = #uid .. ':' .. uid .. former else over = uid end
            end
          end
        end
        if redis.call('HGET', KEYS[2], ARGV[1]) == ARGV[2] then state = 'u' end
        local own = '1 ' .. ARGV[1] .. ' ' .. state .. ' ' .. #ARGV[2] .. ' ' .. ARGV[2] .. former
        redis.call('SET', KEYS[1], own)
        if state ~= 'b' then redis.call('EXPIRE', KEYS[1], 2592000) end
        local answer, at = {state ~= 'b' and 2 or 1, over}, 1
        while at <= #former do
          local len, from = string.match(former, '^(%d+):()', at)
          if not len then break end
          local uid = string.sub(former, from, from + len - 1)
          if uid ~= ARGV[2] then answer[#answer + 1] = uid end
          at = from + len
        end
        return answer
        """)

    /// Removes the previous owners once their copies are deleted, and reports whether the token still belongs to this
    /// user.
    ///
    /// KEYS owner. ARGV 1 version; 2 uid. Answer: 1 bound, 0 not bound (any more).
    static let settleOwner = RedisScript(
        """
        #!lua
        local cur = redis.call('GET', KEYS[1])
        if not cur then return 0 end
        local v, st, len, at = string.match(cur, '^1 (%d+) (%a) (%d+) ()')
        if v ~= ARGV[1] or string.sub(cur, at, at + len - 1) ~= ARGV[2] then return 0 end
        if at + len <= #cur then redis.call('SET', KEYS[1], string.sub(cur, 1, at + len - 1), 'KEEPTTL') end
        return st == 'b' and 1 or 0
        """)

    /// KEYS owner, early unbinds. ARGV 1 version; 2 uid. Answer: 1 unbound (now or before), 0 other owner or version, 2
    /// kept until its bind comes.
    static let unbindOwner = RedisScript(
        """
        #!lua
        local cur = redis.call('GET', KEYS[1])
        if cur then
          local v, st, len, at = string.match(cur, '^1 (%d+) (%a) (%d+) ()')
          if v and v == ARGV[1] and string.sub(cur, at, at + len - 1) == ARGV[2] then
            redis.call('SET', KEYS[1], '1 ' .. v .. ' u ' .. len .. ' ' .. string.sub(cur, at), 'EX', 2592000)
            return 1
          end
          if v and v >= ARGV[1] then return 0 end
        end
        if redis.call('HLEN', KEYS[2]) < 64 then
          redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
          redis.call('EXPIRE', KEYS[2], 86400)
        end
        return 2
        """)

    /// A token that its device replaced, or that APNs refused: unbound unless it was bound again.
    ///
    /// KEYS owner. ARGV 1 version; 2 uid; 3 `u` or `d`. Answer: 1 retired, 0 not its owner.
    static let retireOwner = RedisScript(
        """
        #!lua
        local cur = redis.call('GET', KEYS[1])
        if not cur then return 0 end
        local v, st, len, at = string.match(cur, '^1 (%d+) (%a) (%d+) ()')
        if v ~= ARGV[1] or string.sub(cur, at, at + len - 1) ~= ARGV[2] then return 0 end
        if st == 'u' then return 1 end
        redis.call('SET', KEYS[1], '1 ' .. v .. ' ' .. ARGV[3] .. ' ' .. len .. ' ' .. string.sub(cur, at), 'EX', 2592000)
        return 1
        """)

    /// KEYS user, state, activities. ARGV 1 field; 2 the record up to the topic; 3 version; 4 bound_ms; 5 token; 6 activity
    /// id or empty; 7-10 credential, content key, language, zone, each `=` to stay as it was: as this user's token had it,
    /// else as the token that this one replaces on the device, the credential only for the same topic and environment;
    /// 11 now.
    /// Answer: `{0 stale}`, `{2}` known already, `{1, replaced token or false, its version}`.
    static let addToken = RedisScript(
        """
        #!lua
        \(limit)
        local bound, replaced, was = tonumber(ARGV[4]), false, false
        local latest = tonumber(ARGV[11]) + \(skewMs)
        local function time(text)
          local ms = tonumber(text)
          return ms and ms <= latest and ms or -1
        end
        local cur = redis.call('HGET', KEYS[1], ARGV[1])
        local known, isSame = cur, false
        if cur then
          local v, b, t = string.match(cur, '^1 (%d+) (%d+) (%x+) ')
          if v then
            if v > ARGV[3] or (v == ARGV[3] and t ~= ARGV[5] and (time(b) > bound or
                (time(b) == bound and t > ARGV[5]))) then return {0} end
            if t == ARGV[5] and v == ARGV[3] and (ARGV[6] ~= '' or time(b) >= bound) then return {2} end
            isSame = t == ARGV[5]
            if not isSame then replaced, was = t, v end
          end
        end
        redis.call('HINCRBY', KEYS[2], 'v', 1)
        if ARGV[6] ~= '' then
          local began = string.match(redis.call('HGET', KEYS[3], ARGV[6]) or '', '^%d+')
          if time(began) < 0 then
            redis.call('HSET', KEYS[3], ARGV[6], ARGV[4])
            limit(KEYS[3], \(StateKeys.activitiesMax))
          end
          redis.call('EXPIRE', KEYS[3], \(StateKeys.activitySeconds))
        end
        local all, count, oldest, oldestMs = redis.call('HGETALL', KEYS[1]), 0, nil, nil
        for i = 1, #all, 2 do
          if string.sub(all[i], 1, 1) == 't' and all[i] ~= ARGV[1] then
            local v, b, t = string.match(all[i + 1], '^1 (%d+) (%d+) (%x+) ')
            if t == ARGV[5] then
              redis.call('HDEL', KEYS[1], all[i])
              if not isSame then known, isSame = all[i + 1], true end
            else
              count = count + 1
              b = tonumber(b) or 0
              if not oldestMs or b < oldestMs then oldest, oldestMs = all[i], b end
            end
          end
        end
        if count >= 64 then redis.call('HDEL', KEYS[1], oldest) end
        -- The environment, then the topic and what follows it.
        local function words(text)
          local found, env, at = {}, string.match(text, '^1 %d+ %d+ %x+ (%a) ()')
          for i = 0, 4 do
            if not at then break end
            local len, from = string.match(text, '^(%d+):()', at)
            found[i] = len and string.sub(text, at, from + len - 1) or '-'
            at = (len and from + len) or (string.sub(text, at, at) == '-' and at + 1) or nil
          end
          return found, env
        end
        local kept, env = words(known or '')
        local said, newEnv = words(ARGV[2])
        -- A credential is of one topic and environment.
        if env ~= newEnv or kept[0] ~= said[0] then kept[1] = nil end
        local record = ARGV[2]
        for i = 1, 4 do
          record = record .. (ARGV[6 + i] == '=' and (kept[i] or '-') or ARGV[6 + i])
        end
        redis.call('HSET', KEYS[1], ARGV[1], record)
        return {1, replaced, was}
        """)

    /// KEYS users who bound an activity. ARGV 1 uid; 2 the maximum number; 3 seconds of life. Answer: 1 the user is
    /// among them, 0 there are too many.
    static let listActivityUser = RedisScript(
        """
        #!lua
        local isListed = redis.call('ZSCORE', KEYS[1], ARGV[1])
        if not isListed and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
        if not isListed then redis.call('ZADD', KEYS[1], 0, ARGV[1]) end
        redis.call('EXPIRE', KEYS[1], ARGV[3])
        return 1
        """)

    /// The state keeps the last devices that lost a token for a day: an earlier try of a message may have pushed to them.
    /// `<ms> <kind><length>:<device>` each, newest first.
    ///
    /// KEYS user, state. ARGV 1 token; 2 highest version to remove; 3 the required bound_ms, or empty; 4 now. Answer: the
    /// number of removed fields.
    static let dropToken = RedisScript(
        """
        #!lua
        local all, gone, lost = redis.call('HGETALL', KEYS[1]), 0, {}
        for i = 1, #all, 2 do
          if string.sub(all[i], 1, 1) == 't' then
            local v, b, t = string.match(all[i + 1], '^1 (%d+) (%d+) (%x+) ')
            if t == ARGV[1] and v <= ARGV[2] and (ARGV[3] == '' or b == ARGV[3]) then
              redis.call('HDEL', KEYS[1], all[i])
              gone = gone + 1
              local len, from = string.match(all[i], '^t%a(%d+):()')
              if len then lost[#lost + 1] = ARGV[4] .. ' ' .. string.sub(all[i], 2, from + len - 1) end
            end
          end
        end
        if gone == 0 then return 0 end
        redis.call('HINCRBY', KEYS[2], 'v', 1)
        local before, at = redis.call('HGET', KEYS[2], 'g') or '', 1
        while #lost < 16 do
          local ms, len, from = string.match(before, '^(%d+) %a(%d+):()', at)
          if not len or tonumber(ms) < ARGV[4] - 86400000 then break end
          lost[#lost + 1] = string.sub(before, at, from + len - 1)
          at = from + len
        end
        redis.call('HSET', KEYS[2], 'g', table.concat(lost))
        return gone
        """)
}

// SPDX-License-Identifier: Apache-2.0
import Redis

/// What clients say of the badge: reads, and the totals that they report.
enum ReadScripts {
    /// A read mark: covered messages are subtracted once, at the time of the first read that covers them.
    ///
    /// KEYS state, ledger, gone, user. ARGV 1 field of the conversation; 2 digest; 3 seq or empty; 4 ms or empty; 5 the
    /// record's time; 6 now; 7 `1` if a lower badge is sent to devices. Answer: `{1 applied | 0 covered by an
    /// older read | 2 known, badge, badge before, with ARGV 7: 1 if the badge is lower and was not sent yet}`.
    static let read = RedisScript(
        """
        #!lua
        \(ScriptParts.prune)
        \(ScriptParts.countPast)
        \(ScriptParts.isForgotten)
        \(ScriptParts.stay)
        local s = redis.call('HMGET', KEYS[1], 'b', ARGV[1])
        local size = redis.call('ZCARD', KEYS[2])
        redis.call('ZCARD', KEYS[3])
        local base, value, taken, past = -1, 0, 0, 0
        if s[1] then
          local t, v, g, p = string.match(s[1], '^(%d+) (%d+) (%d+) (%d+)')
          if p then base, value, taken, past = tonumber(t), tonumber(v), tonumber(g), math.min(tonumber(p), size) end
        end
        local before = size - past + math.max(0, value - taken)
        local seq, ms, at = ARGV[3], ARGV[4], tonumber(ARGV[5])
        local latest = tonumber(ARGV[6]) + \(ScriptParts.skewMs)
        if isForgotten(KEYS[1], at, latest) then return {0, before, before, 0} end
        local function unlessFuture(time)
          return time ~= '' and tonumber(time) > latest and '' or time
        end
        local function reaches(a, b)
          return #a > #b or (#a == #b and a >= b)
        end
        local kept, topSeq, topMs = {}, seq, ms
        local rs, rm, tail = string.match(s[2] or '', '^(%d*) (%d*)()')
        if tail then
          rm = unlessFuture(rm)
          if reaches(rs, topSeq) then topSeq = rs end
          if reaches(rm, topMs) then topMs = rm end
          for hs, hm, ha in string.gmatch(string.sub(s[2], tail), '[|;](%d*) (%d*) (%d+)') do
            ha, hm = tonumber(ha), unlessFuture(hm)
            if ha > latest then ha = at end
            if ha <= at and reaches(hs, seq) and reaches(hm, ms) then
              local isKnown = ha == at and reaches(seq, hs) and reaches(ms, hm)
              return {isKnown and 2 or 0, before, before, ARGV[7] and redis.call('HEXISTS', KEYS[1], 'w')}
            end
            if not (at <= ha and reaches(seq, hs) and reaches(ms, hm)) then kept[#kept + 1] = {hs, hm, ha} end
          end
        end
        kept[#kept + 1] = {seq, ms, at}
        table.sort(kept, function(a, b) return a[3] < b[3] end)
        local long = math.max(base, ARGV[6] - 86400000)
        while #kept > 1 and (kept[2][3] <= long or #kept > 8) do
          local a, b = kept[1], kept[2]
          if reaches(a[1], b[1]) then b[1] = a[1] end
          if reaches(a[2], b[2]) then b[2] = a[2] end
          table.remove(kept, 1)
        end
        local text = topSeq .. ' ' .. topMs
        for i, e in ipairs(kept) do
          text = text .. (i == 1 and '|' or ';') .. e[1] .. ' ' .. e[2] .. ' ' .. string.format('%d', e[3])
        end
        local fresh = redis.call('HSET', KEYS[1], ARGV[1], text)

        local function isCovered(sent, q, ms, seq)
          return (ms ~= '' and sent <= tonumber(ms)) or (q ~= '' and seq ~= '' and reaches(seq, q))
        end
        local function covers(m)
          local sent, q = string.match(m, '^(%d+) (%d*)', 9)
          sent = tonumber(sent)
          return isCovered(sent, q, ms, seq), sent, q
        end
        -- Plain commands may have added it just now, after an earlier read of it.
        local function goneAt(sent, q)
          for _, e in ipairs(kept) do
            if e[3] < at and isCovered(sent, q, e[2], e[1]) then return e[3] end
          end
          return at
        end
        local wasTaken, wasPast = taken, past
        local off, added, again, ended, isPastOff = {}, {}, {}, {}, false
        for _, m in ipairs(redis.call('ZRANGEBYLEX', KEYS[2], '[' .. ARGV[2], '[' .. ARGV[2] .. '\\255')) do
          local c, sent, q = covers(m)
          if c then
            off[#off + 1] = m
            size = size - 1
            if sent <= base then isPastOff = true end
            local gone = goneAt(sent, q)
            if gone > base then
              added[#added + 1] = gone
              added[#added + 1] = m
              if sent <= base then taken = taken + 1 end
            end
          end
        end
        for _, m in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. ARGV[5], '+inf')) do
          if string.sub(m, 1, 8) == ARGV[2] then
            local c, sent = covers(m)
            if c and at > base then
              again[#again + 1] = at
              again[#again + 1] = m
            elseif c then
              ended[#ended + 1] = m
              if sent <= base then taken = taken - 1 end
            end
          end
        end
        local function note(...) redis.call('ZADD', KEYS[3], ...) end
        inHundreds(off, function(...) redis.call('ZREM', KEYS[2], ...) end)
        inHundreds(ended, function(...) redis.call('ZREM', KEYS[3], ...) end)
        inHundreds(again, note)
        inHundreds(added, note)
        if isPastOff then past = countPast(KEYS[2], base) end
        if taken ~= wasTaken or past ~= wasPast then
          redis.call('HSET', KEYS[1], 'b', string.format('%d %d %d %d', base, value, taken, past))
        end
        if #added > 0 then
          redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', string.format('%d', long))
          local extra = redis.call('ZCARD', KEYS[3]) - 1000
          if extra > 0 then redis.call('ZREMRANGEBYRANK', KEYS[3], 0, extra - 1) end
          redis.call('EXPIRE', KEYS[3], 86400)
        end
        if fresh == 1 then prune(tonumber(ARGV[6])) end
        stay(KEYS[1], KEYS[4])
        local after = size - past + math.max(0, value - taken)
        if not ARGV[7] then return {1, after, before} end
        if after < before then redis.call('HSET', KEYS[1], 'w', 1) end
        return {1, after, before, redis.call('HEXISTS', KEYS[1], 'w')}
        """)

    /// A client's own total becomes the base. Messages sent after `client_ms` still count.
    ///
    /// KEYS state, ledger, gone, user. ARGV 1 client_ms; 2 value; 3 now. Answer: `{1 applied | 0 older | 2 known, badge, before}`.
    static let report = RedisScript(
        """
        #!lua
        \(ScriptParts.isForgotten)
        \(ScriptParts.stay)
        local b = redis.call('HGET', KEYS[1], 'b')
        local size = redis.call('ZCARD', KEYS[2])
        local base, value, taken, past = -1, 0, 0, 0
        if b then
          local t, v, g, p = string.match(b, '^(%d+) (%d+) (%d+) (%d+)')
          if p then base, value, taken, past = tonumber(t), tonumber(v), tonumber(g), math.min(tonumber(p), size) end
        end
        local before = size - past + math.max(0, value - taken)
        local at, new = tonumber(ARGV[1]), tonumber(ARGV[2])
        if base > tonumber(ARGV[3]) + \(ScriptParts.skewMs) then base = -1 end
        if isForgotten(KEYS[1], at, tonumber(ARGV[3]) + \(ScriptParts.skewMs)) then return {0, before, before} end
        if at == base and new == value then return {2, before, before} end
        if at < base or (at == base and new < value) then return {0, before, before} end
        if at > base then
          taken, past = 0, 0
          for _, m in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
            if tonumber(string.match(m, '^%d+', 9)) <= at then past = past + 1 end
          end
          redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', ARGV[1])
          for _, m in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
            if tonumber(string.match(m, '^%d+', 9)) <= at then taken = taken + 1 end
          end
        end
        redis.call('HSET', KEYS[1], 'b', string.format('%d %d %d %d', at, new, taken, past))
        stay(KEYS[1], KEYS[4])
        return {1, size - past + math.max(0, new - taken), before}
        """)
}

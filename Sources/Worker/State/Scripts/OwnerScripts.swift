// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// A bind crosses slots: the token's owner entry first, then the users. The token is removed from the previous owners
/// before the new one gets it. It is also removed from a user after an unbind or a removal, because that may have been
/// interrupted before the copy was deleted. A copy that remains or comes late has a version without known owners
/// (`KnownOwners`), so the owner is read, and the push is refused. An interrupted bind is completed when the record is
/// read again. So a push may be lost, but none reaches a previous owner once the bind is applied.
///
/// Owner record: `1 <version> <b|u|s|d> <length of uid> <uid><previous owners, each as length:uid>@<ms>`; `u`: unbound, `s`:
/// ended by an account switch, `d`: removed because of APNs' answer. The time is that of the bind, or of the switch; 0 or
/// absent: not known.
///
/// An account switch without unbind: the token moves to another user, and with it the phone. The former owner's other tokens
/// end too, if their device is the one under which that user had the token, unless their bind is newer. Their owner entries
/// come first here too. The former user's state keeps the device and the time (field `d`): a bind that was sent before and
/// comes later ends in the same way. A bind that comes when its token is another user's already is such a switch, seen from the
/// other side.
enum OwnerScripts {
    /// Reads and writes an owner record.
    private static let ownerParts = """
        -- Version, state, uid, previous owners, time.
        local function parts(cur)
          local v, st, len, at = string.match(cur or '', '^1 (%d+) (%a) (%d+) ()')
          if not v then return end
          local past = at + len
          local from = past
          while from <= #cur do
            local size, name = string.match(cur, '^(%d+):()', from)
            if not size then break end
            from = name + size
          end
          return v, st, string.sub(cur, at, past - 1), string.sub(cur, past, from - 1),
            tonumber(string.match(string.sub(cur, from, from + 16), '^@(%d+)')) or 0
        end
        local function store(v, st, uid, former, ms, ...)
          local text = '1 ' .. v .. ' ' .. st .. ' ' .. #uid .. ' ' .. uid .. former .. string.format('@%d', ms)
          redis.call('SET', KEYS[1], text, ...)
        end
        """

    /// KEYS owner, early unbinds. ARGV 1 version; 2 uid; 3 the bind's time. Answer: `{1 owner | 2 was unbound before it came,
    /// previous owners…}`; `{0 stale[, since when another user has it]}`.
    static let bindOwner = RedisScript(
        """
        #!lua
        \(ownerParts)
        local v, st, uid, former, ms = parts(redis.call('GET', KEYS[1]))
        local state, over, bound = 'b', nil, tonumber(ARGV[3])
        if v then
          local isOwn = uid == ARGV[2]
          if v > ARGV[1] and not isOwn and ms > 0 then return {0, string.format('%d', ms)} end
          if v > ARGV[1] or (v == ARGV[1] and not isOwn) then return {0} end
          if v == ARGV[1] then
            if st ~= 's' or bound <= ms then state, bound = st, math.max(bound, ms) end
          elseif not isOwn then
            if #former < 1024 then former = #uid .. ':' .. uid .. former else over = uid end
          end
        end
        if redis.call('HGET', KEYS[2], ARGV[1]) == ARGV[2] then state = 'u' end
        former = former or ''
        store(ARGV[1], state, ARGV[2], former, bound)
        if state ~= 'b' then redis.call('EXPIRE', KEYS[1], 2592000) end
        local answer, at = {state ~= 'b' and 2 or 1, over}, 1
        while at <= #former do
          local len, from = string.match(former, '^(%d+):()', at)
          if not len then break end
          local name = string.sub(former, from, from + len - 1)
          if name ~= ARGV[2] then answer[#answer + 1] = name end
          at = from + len
        end
        return answer
        """)

    /// Removes the previous owners once their copies are deleted, and reports whether the token still belongs to this
    /// user.
    ///
    /// KEYS owner. ARGV 1 version; 2 uid. Answer: `{1}` bound, `{0[, since when another user has it]}` not bound (any more).
    static let settleOwner = RedisScript(
        """
        #!lua
        \(ownerParts)
        local v, st, uid, former, ms = parts(redis.call('GET', KEYS[1]))
        if v ~= ARGV[1] or uid ~= ARGV[2] then
          if v and v > ARGV[1] and uid ~= ARGV[2] and ms > 0 then return {0, string.format('%d', ms)} end
          return {0}
        end
        if former ~= '' then store(v, st, uid, '', ms, 'KEEPTTL') end
        return {st == 'b' and 1 or 0}
        """)

    /// KEYS owner, early unbinds. ARGV 1 version; 2 uid. Answer: 1 unbound (now or before), 0 other owner or version, 2
    /// kept until its bind comes.
    static let unbindOwner = RedisScript(
        """
        #!lua
        \(ownerParts)
        local v, _, uid, former, ms = parts(redis.call('GET', KEYS[1]))
        if v and v == ARGV[1] and uid == ARGV[2] then
          store(v, 'u', uid, former, ms, 'EX', 2592000)
          return 1
        end
        if v and v >= ARGV[1] then return 0 end
        if redis.call('HLEN', KEYS[2]) < 64 then
          redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
          redis.call('EXPIRE', KEYS[2], 86400)
        end
        return 2
        """)

    /// A token that its device replaced, that an account switch ended, or that APNs refused: unbound unless it was bound
    /// again.
    ///
    /// KEYS owner. ARGV 1 version; 2 uid; 3 `u`, `s` or `d`; 4 the time of the switch or of the refused bind, or empty: a newer
    /// bind stays. Answer: 1 retired, 0 not its owner (any more).
    static let retireOwner = RedisScript(
        """
        #!lua
        \(ownerParts)
        local v, st, uid, former, ms = parts(redis.call('GET', KEYS[1]))
        if v ~= ARGV[1] or uid ~= ARGV[2] then return 0 end
        local at = tonumber(ARGV[4])
        if at and ms > at then return 0 end
        if st == 'u' or (st == 's' and ARGV[3] ~= 's') then return ARGV[3] == 'd' and 0 or 1 end
        store(v, ARGV[3], uid, former, ARGV[3] == 's' and at or ms, 'EX', 2592000)
        return 1
        """)

    /// KEYS user, state, activities, pushed devices. ARGV 1 field; 2 the record up to the topic; 3 version; 4 bound_ms; 5 token; 6 activity
    /// id or empty; 7-10 credential, content key, language, zone, each `=` to stay as it was: as this user's token had it,
    /// else as the token that this one replaces on the device, the credential only for the same topic and environment;
    /// 11 now; 12 what follows the zone.
    /// Answer: `{0 stale}`, `{1 or 2 known already, replaced token or false, its version}`, `{3, time}` an account switch at
    /// that time took the device after this bind, or the user was forgotten then.
    static let addToken = RedisScript(
        """
        #!lua
        \(ScriptParts.limit)
        \(ScriptParts.isForgotten)
        local bound, replaced, was = tonumber(ARGV[4]), false, false
        local latest = tonumber(ARGV[11]) + \(ScriptParts.skewMs)
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
        local isRepeat, device = isSame and ARGV[6] ~= '', string.match(ARGV[1], '^t%a(%d+:.*)$') or ''
        local forgotten = isForgotten(KEYS[1], bound, latest)
        if forgotten then return {3, string.format('%d', forgotten)} end
        for ms, name in \(switches)(redis.call('HGET', KEYS[2], 'd')) do
          if bound < ms and string.sub(device, 1, #name) == name then return {3, string.format('%d', ms)} end
        end
        redis.call('HINCRBY', KEYS[2], 'v', 1)
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
        if ARGV[6] ~= '' then
          local began, ended = string.match(redis.call('HGET', KEYS[3], ARGV[6]) or '', '^(%d+) ?(%d*)')
          began, ended = time(began), tonumber(ended)
          local isOver = bound - began >= \(LiveActivity.endsEndMs) or (ended and bound >= ended)
          if began < 0 or (isOver and not isSame) then
            redis.call('HSET', KEYS[3], ARGV[6], ARGV[4])
            limit(KEYS[3], \(StateKeys.activitiesMax))
          end
          redis.call('EXPIRE', KEYS[3], \(StateKeys.activitySeconds))
        end
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
        redis.call('HSET', KEYS[1], ARGV[1], record .. ARGV[12])
        for _, place in ipairs({1, 2, 4}) do redis.call('PERSIST', KEYS[place]) end
        return {isRepeat and 2 or 1, replaced, was}
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

    /// Iterates over the account switches in field `d` of the state, `<ms> <length>:<device>` each, newest first: the time, and
    /// the device with its length.
    private static let switches = """
        (function(text)
          local at = 1
          return function()
            local ms, start, len, from = string.match(text or '', '^(%d+) ()(%d+):()', at)
            if not ms then return end
            at = from + len
            return tonumber(ms), string.sub(text, start, at - 1)
          end
        end)
        """

    /// The state keeps the last devices that lost a token for a day: an earlier try of a message may have pushed to them.
    /// `<ms> <kind><length>:<device>` each, newest first.
    ///
    /// What a user without tokens leaves expires, unless the user changes it or binds a token again.
    ///
    /// KEYS user, state, pushed devices. ARGV 1 token; 2 highest version to remove; 3 the required bound_ms, or empty; 4 now; 5 the time of the
    /// account switch that takes the token, or empty; 6 with it a device that it takes too, with its length, or empty; 7 the
    /// field of an activity's token, or empty; then, of the switch, the other tokens with owners that know it,
    /// `<token> <version>` each.
    /// Answer: the number of removed fields; -1: that field has the token by a newer bind; `{1, token, version…}` without any
    /// change: these end too, and their owners come first.
    static let dropToken = RedisScript(
        """
        #!lua
        local all, going, left, lost = redis.call('HGETALL', KEYS[1]), {}, 0, {}
        local switchMs, moved, devices, told, untold = tonumber(ARGV[5]), {}, {}, {}, {1}
        local latest = tonumber(ARGV[4]) + \(ScriptParts.skewMs)
        local function move(device)
          if not moved[device] then devices[#devices + 1] = device end
          moved[device] = true
        end
        for i = 8, #ARGV do told[ARGV[i]] = true end
        if switchMs and ARGV[6] ~= '' then move(ARGV[6]) end
        local function token(i)
          if string.sub(all[i], 1, 1) ~= 't' then return end
          local len, from = string.match(all[i], '^t%a(%d+):()')
          local v, b, t = string.match(all[i + 1], '^1 (%d+) (%d+) (%x+) ')
          return t, v, b, len and string.sub(all[i], 3, from + len - 1)
        end
        for i = 1, #all, 2 do
          local t, v, b, device = token(i)
          if t == ARGV[1] and v <= ARGV[2] and (ARGV[3] == '' or b == ARGV[3]) then
            going[#going + 1] = all[i]
            if switchMs and device then move(device) end
          elseif t == ARGV[1] and all[i] == ARGV[7] then
            return -1
          elseif string.sub(all[i], 1, 1) == 't' then
            left = left + 1
          end
        end
        if #devices > 0 then
          for i = 1, #all, 2 do
            local t, v, b, device = token(i)
            local bound = tonumber(b) or 0
            if t and t ~= ARGV[1] and moved[device] and (bound <= switchMs or bound > latest) then
              if told[t .. ' ' .. v] then
                going[#going + 1] = all[i]
                left = left - 1
              else
                untold[#untold + 1] = t
                untold[#untold + 1] = v
              end
            end
          end
          if #untold > 1 then return untold end
          local kept = {}
          for _, device in ipairs(devices) do kept[#kept + 1] = {switchMs, device} end
          for ms, device in \(switches)(redis.call('HGET', KEYS[2], 'd')) do
            if not moved[device] then
              kept[#kept + 1] = {ms, device}
            else
              for _, one in ipairs(kept) do
                if one[2] == device then one[1] = math.max(one[1], ms) end
              end
            end
          end
          local text = ''
          for i = 1, math.min(#kept, 16) do text = text .. string.format('%d ', kept[i][1]) .. kept[i][2] end
          redis.call('HSET', KEYS[2], 'd', text)
        end
        if #going == 0 then return 0 end
        for _, field in ipairs(going) do
          redis.call('HDEL', KEYS[1], field)
          local len, from = string.match(field, '^t%a(%d+):()')
          if len and #lost < 16 then lost[#lost + 1] = ARGV[4] .. ' ' .. string.sub(field, 2, from + len - 1) end
        end
        redis.call('HINCRBY', KEYS[2], 'v', 1)
        local before, at = redis.call('HGET', KEYS[2], 'g') or '', 1
        while #lost < 16 do
          local ms, len, from = string.match(before, '^(%d+) %a(%d+):()', at)
          if not len or tonumber(ms) < ARGV[4] - 86400000 then break end
          lost[#lost + 1] = string.sub(before, at, from + len - 1)
          at = from + len
        end
        redis.call('HSET', KEYS[2], 'g', table.concat(lost))
        if left == 0 then
          for _, key in ipairs(KEYS) do redis.call('EXPIRE', key, \(StateKeys.leftSeconds)) end
        end
        return #going
        """)
}

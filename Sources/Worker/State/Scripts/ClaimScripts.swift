// SPDX-License-Identifier: Apache-2.0
import Redis

enum ClaimScripts {
    /// The duplicate check, the badge's step and the last check before sending, in one atomic step (contract section 5,
    /// steps 5, 10 and 15).
    ///
    /// KEYS mark, state, ledger, gone, [mark of the revoked message]. ARGV 1 `c` counted; `o` not; `q` not, and the ledger is
    /// asked whether an earlier try counted; `a` counted and added to the ledger by plain commands just now. Then, of a recipient
    /// that is to be recorded without a device, `WithoutDevice.text`: the first try notes it in the mark, a later one without
    /// this note gets the devices that lost such a token since the message was sent. 2 the mark's seconds;
    /// 3 field of the conversation; 4 ledger member; 5 sent; 6 seq or empty; 7 now; of a revoke also 8 `x` (decrease) or
    /// `k` (keep); 9 conversation digest; 10 the tail that the target's member ends with; 11 digest of the target's id; 12 `1`
    /// if devices get a lower badge.
    ///
    /// Answer: `{bits, badge, version or false, [notes, or the finished mark], [of a revoke that lowered the badge: the beginning of
    /// its target's finished mark]}`; bits 0-1 fresh, resume, finished; 4 read; 8 revoked; 16 the revoke lowered the badge, which its
    /// mark keeps as `d`; 32 a lower badge is still to be sent; 64 the message adds 1, by
    /// this try or an earlier one; 128 nothing is known of the message that a revoke names; 256 a client's report is part of the
    /// badge.
    /// The fast path (fresh, counted, unread, not revoked) is four commands.
    ///
    /// All keys are read before the first write, so a key of the wrong type leaves nothing half done.
    ///
    /// It also settles the work of a `PlainClaim`: a message in the ledger without a mark was added by plain commands
    /// of a worker that crashed, or of another worker. It stays there once, as `resume`; or it is removed if a read or
    /// a revoke came first, as if it had been claimed here. The caller's own addition (`a`) is removed first. The
    /// number of ledger entries before the base is then counted again, because a report may have come before or after
    /// it.
    static let claim = RedisScript(
        "#!lua\n\(ScriptParts.inHundreds)\n\(ScriptParts.countPast)\nlocal mayCut = true\n" + claimBody)

    /// The same for several users of one message: KEYS of all users in sequence, ARGV as for one. Answer: an array of
    /// their answers.
    ///
    /// The call itself is a fifth of a claim's cost in Redis. A fault in one user's keys is an error in that user's
    /// place of the array. At most one ledger is cut per call, because members of one group reach the limit together.
    static let claimEach = RedisScript(
        """
        #!lua
        local all, each, out, keys = KEYS, ARGV[8] and 5 or 4, {}, {}
        \(ScriptParts.inHundreds)
        \(ScriptParts.countPast)
        local mayCut = true
        local function claim(KEYS)
        \(claimBody)
        end
        for i = 1, #all, each do
          for j = 1, each do keys[j] = all[i + j - 1] end
          local isDone, answer = pcall(claim, keys)
          if not isDone then
            if type(answer) == 'table' then answer = answer.err end
            if not string.match(answer, '^%u+ ') then answer = 'ERR ' .. answer end
            answer = {err = answer}
          end
          out[#out + 1] = answer
        end
        return out
        """)

    static let claimBody = """
        local function says(notes, letter)
          local at = 1
          while at do
            local one, len, from = string.match(notes, '^(%a)(%d+):()', at)
            if one == letter then return true end
            at = one and from + len
          end
        end
        local s = redis.call('HMGET', KEYS[2], 'v', 'b', ARGV[3], 'e')
        local size = redis.call('ZCARD', KEYS[3])
        local target
        if KEYS[5] then
          target = redis.call('GET', KEYS[5])
          redis.call('ZCARD', KEYS[4])
        end
        local how, tokens, reason = string.match(ARGV[1], '^(.)(.?)(.*)')
        local wasCounted = how == 'q' and redis.call('ZSCORE', KEYS[3], ARGV[4])
        if tokens ~= '' and not wasCounted then wasCounted = redis.call('ZSCORE', KEYS[4], ARGV[4]) end
        local isMine, state = how == 'a', (how == 'o' or how == 'q') and 'o' or 'c'
        local old = redis.call('SET', KEYS[1], state, 'NX', 'GET', 'EX', ARGV[2])
        local kind = old and string.sub(old, 1, 1)
        if kind == 'f' and not isMine then return {2, 0, false, old} end
        local sent, counted, bits, isPlain = tonumber(ARGV[5]), state == 'c', 0, false
        local base, value, taken, past = -1, 0, 0, 0
        if s[2] then
          local t, v, g, p = string.match(s[2], '^(%d+) (%d+) (%d+) (%d+)')
          if p then base, value, taken, past = tonumber(t), tonumber(v), tonumber(g), tonumber(p) end
        end
        local function noteGone(at, m, mode)
          local added
          if mode then
            added = redis.call('ZADD', KEYS[4], mode, at, m)
          else
            added = redis.call('ZADD', KEYS[4], at, m)
          end
          local extra = redis.call('ZCARD', KEYS[4]) - 1000
          if extra > 0 then redis.call('ZREMRANGEBYRANK', KEYS[4], 0, extra - 1) end
          redis.call('EXPIRE', KEYS[4], 86400)
          return added
        end
        local adds = sent > base and (state == 'c' or kind == 'c' or wasCounted)
        local wasTaken, wasPast = taken, past
        if isMine and redis.call('ZREM', KEYS[3], ARGV[4]) == 1 then
          isPlain = true
          size = size - 1
          if base >= sent then past = countPast(KEYS[3], base) end
        end
        -- The ledger may have expired since they were counted.
        if past > 0 and math.floor(ARGV[7] / 691200000) - (tonumber(s[4]) or 0) >= 5 then
          past = countPast(KEYS[3], base)
        end
        if kind == 'f' then
          if past ~= wasPast then
            redis.call('HSET', KEYS[2], 'b', string.format('%d %d %d %d', base, value, taken, past))
          end
          return {2, 0, false, old}
        end
        local rest, goneAt
        if old then
          local mode, at, tail = string.match(old, '^.([xk])(%d*);()')
          if mode then
            bits = 8
            goneAt = tonumber(at)
          end
          rest = string.sub(old, tail or 2)
          if kind ~= 't' then bits = bits + 1 end
          if kind == 'c' then
            counted = false
          elseif kind == 't' or counted then
            redis.call('SETRANGE', KEYS[1], 0, state)
          end
        end
        local rs, rm, tail = string.match(s[3] or '', '^(%d*) (%d*)()')
        if tail then
          local q = ARGV[6]
          if (rm ~= '' and sent <= tonumber(rm)) or
              (q ~= '' and (#q < #rs or (#q == #rs and q <= rs))) then
            bits = bits + 4
            if counted then
              for hs, hm, ha in string.gmatch(string.sub(s[3], tail), '[|;](%d*) (%d*) (%d+)') do
                ha = tonumber(ha)
                if (not goneAt or ha < goneAt) and ((hm ~= '' and sent <= tonumber(hm)) or
                    (q ~= '' and (#q < #hs or (#q == #hs and q <= hs)))) then
                  goneAt = ha
                end
              end
            end
          end
        end
        -- Plain commands of an earlier try left no mark.
        if wasCounted and bits % 2 == 0 then bits = bits + 1 end
        local added = 0
        if counted and not goneAt then
          added = redis.call('ZADD', KEYS[3], 0, ARGV[4])
          if added == 0 then
            isPlain = true
            if bits % 2 == 0 then bits = bits + 1 end
          end
        elseif not isMine and (counted or (kind == 'c' and (goneAt or bits % 8 >= 4))) then
          if redis.call('ZREM', KEYS[3], ARGV[4]) == 1 then
            isPlain = true
            size = size - 1
          end
        end
        if counted and goneAt and goneAt > base and goneAt > ARGV[7] - 86400000 then
          if noteGone(goneAt, ARGV[4], 'NX') == 1 and sent <= base then taken = taken + 1 end
        end
        size = size + added
        if isPlain and base >= sent then past = countPast(KEYS[3], base) - added end
        if (added == 1 or isPlain) and size > 0 then
          -- Its life is renewed once in eight days: no entry goes before it is thirty days old.
          local epoch = math.floor(ARGV[7] / 691200000)
          if size == 1 or tonumber(s[4]) ~= epoch then
            redis.call('EXPIRE', KEYS[3], 3456000)
            if tonumber(s[4]) ~= epoch then
              redis.call('HSET', KEYS[2], 'e', epoch)
              -- Of a user who never had a token.
              if not s[1] then redis.call('EXPIRE', KEYS[2], \(StateKeys.leftSeconds)) end
            end
          end
        end
        if past > 0 or base >= sent then
          past = math.min(past, size - added)
          if sent <= base then past = past + added end
        end

        if adds and bits < 4 then bits = bits + 64 end
        if base >= 0 then bits = bits + 256 end

        if tokens ~= '' and bits % 2 == 0 then
          redis.call('APPEND', KEYS[1], 'n' .. reason)
        elseif tokens ~= '' and not says(rest or '', 'n') then
          local lost, at = redis.call('HGET', KEYS[2], 'g') or '', 1
          while at <= #lost do
            local ms, of, len, from = string.match(lost, '^(%d+) (%a)(%d+):()', at)
            if not len then break end
            at = from + len
            if of == tokens and tonumber(ms) + \(ScriptParts.skewMs) >= sent then
              rest = (rest or '') .. 'd' .. len .. ':' .. string.sub(lost, from, at - 1)
            end
          end
        end

        if KEYS[5] then
          local token = ARGV[8] == 'x' and 'x' .. ARGV[5] .. ';' or 'k;'
          local mark = target
          -- Whoever claims the message by plain commands just now sees it among the last that were revoked: also one who
          -- was held up while another worker finished it.
          local revoked = redis.call('HGET', KEYS[2], 'k') or ''
          if string.sub(revoked, 1, 8) ~= ARGV[11] then
            redis.call('HSET', KEYS[2], 'k', string.sub(ARGV[11] .. revoked, 1, 32))
          end
          if not mark then
            redis.call('SET', KEYS[5], 't' .. token, 'EX', math.max(ARGV[2], \(StateKeys.revokedFirstSeconds)))
          else
            local mode, at, past = string.match(mark, '^.([xk])(%d*);()')
            if not mode or (ARGV[8] == 'x' and (mode == 'k' or sent < tonumber(at))) then
              redis.call('SET', KEYS[5], string.sub(mark, 1, 1) .. token .. string.sub(mark, past or 2), 'KEEPTTL')
            end
          end
          local tail, found = ARGV[10], mark and string.sub(mark, 1, 1) ~= 't'
          if ARGV[8] ~= 'x' and not found then
            for _, m in ipairs(redis.call('ZRANGEBYLEX', KEYS[3], '[' .. ARGV[9], '[' .. ARGV[9] .. '\\255')) do
              if string.sub(m, -#tail) == tail then found = true end
            end
          end
          -- A read or an earlier revoke took it off the ledger before it was finished.
          if not found then
            for _, m in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do
              if string.sub(m, -#tail) == tail and string.sub(m, 1, 8) == ARGV[9] then found = true end
            end
          end
          local isKnown = found
          if ARGV[8] == 'x' then
            found = nil
            local before = size - past + math.max(0, value - taken)
            for _, m in ipairs(redis.call('ZRANGEBYLEX', KEYS[3], '[' .. ARGV[9], '[' .. ARGV[9] .. '\\255')) do
              if string.sub(m, -#tail) == tail then
                local at, q, body = string.match(m, '^(%d+) (%d*) (.*)$', 9)
                if body == string.sub(tail, 2) then
                  found, isKnown = true, true
                  redis.call('ZREM', KEYS[3], m)
                  size = size - 1
                  if tonumber(at) <= base then past = countPast(KEYS[3], base) end
                  -- Plain commands may have added it just now, after a read of it.
                  local gone = sent
                  for hs, hm, ha in string.gmatch(string.match(s[3] or '', '|.*') or '', '[|;](%d*) (%d*) (%d+)') do
                    local covers = hm ~= '' and tonumber(at) <= tonumber(hm)
                    if q ~= '' and (#q < #hs or (#q == #hs and q <= hs)) then covers = true end
                    if covers then gone = math.min(gone, tonumber(ha)) end
                  end
                  if gone > base then
                    noteGone(gone, m)
                    if tonumber(at) <= base then taken = taken + 1 end
                  end
                end
              end
            end
            if not found then
              for _, m in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '(' .. ARGV[5], '+inf')) do
                if string.sub(m, -#tail) == tail and string.sub(m, 1, 8) == ARGV[9] then
                  local at, body = string.match(m, '^(%d+) %d* (.*)$', 9)
                  if body == string.sub(tail, 2) then
                    isKnown = true
                    if sent > base then
                      redis.call('ZADD', KEYS[4], sent, m)
                    else
                      redis.call('ZREM', KEYS[4], m)
                      if tonumber(at) <= base then taken = taken - 1 end
                    end
                  end
                end
              end
            end
            if size - past + math.max(0, value - taken) < before then
              redis.call('SETRANGE', KEYS[1], 0, 'd')
              if ARGV[12] then redis.call('HSET', KEYS[2], 'w', 1) end
              bits = bits + 16
            elseif kind == 'd' then
              bits = bits + 16
            end
            if ARGV[12] and redis.call('HEXISTS', KEYS[2], 'w') == 1 then bits = bits + 32 end
          end
          if not isKnown then bits = bits + 128 end
        end

        if (added == 1 or isPlain) and size > 1000 and mayCut then
          mayCut = false
          local all = redis.call('ZRANGE', KEYS[3], 0, -1)
          local times = {}
          for _, m in ipairs(all) do times[m] = tonumber(string.match(m, '^%d+', 9)) end
          table.sort(all, function(a, b) return times[a] < times[b] or (times[a] == times[b] and a < b) end)
          local oldest = {}
          for i = 1, size - 936 do oldest[i] = all[i] end
          past = 0
          for i = size - 935, size do
            if times[all[i]] <= base then past = past + 1 end
          end
          inHundreds(oldest, function(...) redis.call('ZREM', KEYS[3], ...) end)
          size = 936
        end
        if taken ~= wasTaken or past ~= wasPast then
          redis.call('HSET', KEYS[2], 'b', string.format('%d %d %d %d', base, value, taken, past))
        end
        if taken < value then size = size + value - taken end
        if bits % 32 >= 16 and target and string.sub(target, 1, 1) == 'f' then
          return {bits, size - past, s[1], rest or '', string.sub(target, 1, 100)}
        end
        return {bits, size - past, s[1], rest}
        """

    /// The answer of `claim` without changes, for a server that accepts no writes. It gives no badge. A key of the
    /// wrong type counts as absent.
    ///
    /// KEYS mark, state. ARGV 1 field of the conversation; 2 sent; 3 seq or empty. Answer: like `claim`, with badge
    /// false.
    static let peek = RedisScript(
        """
        #!lua flags=no-writes
        local function isOfWrongKind(answer)
          return type(answer) == 'table' and answer.err and string.sub(answer.err, 1, 9) == 'WRONGTYPE'
        end
        local old = redis.pcall('GET', KEYS[1])
        if isOfWrongKind(old) then old = false end
        if type(old) == 'table' then return old end
        local bits, rest = 0, ''
        if old then
          local kind = string.sub(old, 1, 1)
          if kind == 'f' then return {2, false, false, old} end
          local tail = string.match(old, '^.[xk]%d*;()')
          if tail then bits = 8 end
          if kind ~= 't' then bits = bits + 1 end
          if kind == 'd' then bits = bits + 16 end
          if kind == 'c' then bits = bits + 64 end
          rest = string.sub(old, tail or 2)
        end
        local s = redis.pcall('HMGET', KEYS[2], 'v', ARGV[1])
        if isOfWrongKind(s) then s = {false, false} end
        if s.err then return s end
        local rs, rm, tail = string.match(s[2] or '', '^(%d*) (%d*)()')
        if tail then
          local q = ARGV[3]
          if (rm ~= '' and tonumber(ARGV[2]) <= tonumber(rm)) or
              (q ~= '' and (#q < #rs or (#q == #rs and q <= rs))) then
            bits = bits + 4
          end
        end
        return {bits, false, s[1], rest}
        """)
}

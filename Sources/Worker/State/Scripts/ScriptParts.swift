// SPDX-License-Identifier: Apache-2.0
/// Lua that several scripts share. A script is used only if reading and writing must be one step.
///
/// Each script begins with `#!lua`, so that Redis with full memory refuses it as a whole, not in the middle (and refuses keys
/// of another slot). Each uses keys of one hash tag only. Numbers are doubles in Lua: times and counts are below 2^53
/// (`StateKeys.time`), sequences and versions are compared as text. Records have their version as the first word.
enum ScriptParts {
    /// How far the clocks of two workers may differ, ms: a stored time that is later than the present by more lies in the
    /// future, and the next time received replaces it (contract section 0, "Times").
    static let skewMs = 60_000

    /// The answer of `settings` and `mute` to a change that is stored already.
    static let known: Int64 = -4

    /// Sorted-set and hash commands with many members take them in hundreds: neither one command per member nor one
    /// that exceeds Lua's stack.
    static let inHundreds = """
        local function inHundreds(list, call)
          for i = 1, #list, 100 do call(unpack(list, i, math.min(i + 99, #list))) end
        end
        """

    /// The number of ledger entries that were sent before the base. Counted again when one is removed, because entries
    /// added by plain commands of a crashed worker after a report are not in the stored count.
    static let countPast = """
        local function countPast(ledger, base)
          local past = 0
          for _, m in ipairs(redis.call('ZRANGE', ledger, 0, -1)) do
            if tonumber(string.match(m, '^%d+', 9)) <= base then past = past + 1 end
          end
          return past
        end
        """

    /// Bounds the number of stored conversations per user: above 2048 read marks and mutes together, it removes 64 from
    /// a random quarter of them. Ended mutes go first, then the oldest of the larger kind, never from its newer half.
    /// Examining all of them would take longer than a script may.
    static let prune = """
        \(inHundreds)
        local function prune(now)
          if redis.call('HLEN', KEYS[1]) <= 2048 then return end
          local drawn, going, reads, mutes = redis.call('HRANDFIELD', KEYS[1], 512, 'WITHVALUES'), {}, {}, {}
          for i = 1, #drawn, 2 do
            local letter = string.sub(drawn[i], 1, 1)
            -- A time has sixteen digits at most; looked for in a long history it would cost the square of its length.
            local at = tonumber(string.match(string.sub(drawn[i + 1], -16), '(%d+)$')) or 0
            if letter == 'r' then
              reads[#reads + 1] = {drawn[i], at}
            elseif letter == 'm' then
              local level, till = string.match(drawn[i + 1], '^(%S+) (%S+)')
              till = tonumber(till)
              if level ~= '0' and not (till and till <= now) then
                mutes[#mutes + 1] = {drawn[i], at}
              elseif #going < 64 then
                going[#going + 1] = drawn[i]
              end
            end
          end
          local list = #reads < #mutes and mutes or reads
          table.sort(list, function(a, b) return a[2] < b[2] or (a[2] == b[2] and a[1] < b[1]) end)
          for i = 1, math.min(#list, 64 - #going) do going[#going + 1] = list[i][1] end
          inHundreds(going, function(...) redis.call('HDEL', KEYS[1], ...) end)
        end
        """

    /// Takes out fields of a hash that has more than `most`, the older one of each few first. A value begins with its time in ms.
    static let limit = """
        local function limit(key, most)
            for _ = most + 1, redis.call('HLEN', key) do
                local some, oldest, at = redis.call('HRANDFIELD', key, 8, 'WITHVALUES'), nil, nil
                for i = 1, #some, 2 do
                    local time = tonumber(string.match(some[i + 1], '^%d+')) or 0
                    if not at or time < at then oldest, at = some[i], time end
                end
                redis.call('HDEL', key, oldest)
            end
        end
        """

    /// Defines `isForgotten(key, ms)`: the user was forgotten after that time.
    static let isForgotten = """
        local function isForgotten(key, ms, latest)
          local at = tonumber(redis.call('HGET', key, 'f'))
          return at and ms < at and at <= latest and at
        end
        """

    /// Defines `stay(keys…)`: the keys that a user without tokens leaves expire later after each change.
    static let stay = """
        local function stay(...)
          for _, key in ipairs({...}) do redis.call('EXPIRE', key, \(StateKeys.leftSeconds), 'XX') end
        end
        """
}

import Redis

/// Settings and mutes: of two records about the same field the one that was sent later stands, whichever comes later;
/// of one instant the larger text. So any order, with repeats, leaves the same.
extension StateScripts {
    /// KEYS user. ARGV 1 the record's time; then field and value, one after the other. Each field holds
    /// `<sent_ms> <value>`. Answer: how many fields changed.
    static let settings = RedisScript(
        """
        #!lua
        local at, changed = tonumber(ARGV[1]), 0
        for i = 2, #ARGV, 2 do
          local was, value = string.match(redis.call('HGET', KEYS[1], ARGV[i]) or '', '^(%d+) (.*)$')
          was = tonumber(was) or -1
          if at > was or (at == was and ARGV[i + 1] > value) then
            redis.call('HSET', KEYS[1], ARGV[i], ARGV[1] .. ' ' .. ARGV[i + 1])
            changed = changed + 1
          end
        end
        return changed
        """)

    /// Level 0 is written too: without it an older mute that comes late would stand again.
    ///
    /// KEYS state. ARGV 1 field of the conversation; 2 level; 3 until or `-`; 4 the record's time; 5 now.
    /// Answer: 1 applied, 0 older or known.
    static let mute = RedisScript(
        """
        #!lua
        \(prune)
        local new, at = ARGV[2] .. ' ' .. ARGV[3] .. ' ' .. ARGV[4], tonumber(ARGV[4])
        local cur = redis.call('HGET', KEYS[1], ARGV[1])
        if cur then
          local was = tonumber(string.match(cur, '(%d+)$')) or -1
          if at < was or (at == was and new <= cur) then return 0 end
        end
        if redis.call('HSET', KEYS[1], ARGV[1], new) == 1 then prune(tonumber(ARGV[5])) end
        return 1
        """)

    /// Bounds the conversations that are remembered of one user: beyond 2048 read marks and mutes together, 64 of a quarter of
    /// them, drawn at random, go. Mutes that say nothing any more go first, then the oldest of the kind that has more: of the
    /// newer half none. To look at all of them would take longer than a script may.
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
}

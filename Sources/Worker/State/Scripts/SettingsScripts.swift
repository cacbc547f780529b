// SPDX-License-Identifier: Apache-2.0
import Redis

/// Settings and mutes: of two records for the same field the later one by time wins, in any order of arrival; at equal
/// times the larger text. So any order, with repeats, gives the same result.
enum SettingsScripts {
    /// KEYS user, state. ARGV 1 the record's time; 2 now; then field and value, one after the other. Each field holds
    /// `<sent_ms> <value>`. Answer: how many fields changed; `known`; or of DND that the stored settings make wrong, which
    /// then changes nothing: -1 a window has no start, -2 no end, -3 its ends are equal.
    static let settings = RedisScript(
        """
        #!lua
        \(settingsBody)
        \(ScriptParts.stay)
        if #writes > 0 then redis.call('HSET', KEYS[1], unpack(writes)) end
        stay(KEYS[1], KEYS[2])
        return answer
        """)

    /// The answer of `settings` without the change.
    static let settingsDryRun = RedisScript(
        """
        #!lua flags=no-writes
        \(settingsBody)
        return answer
        """)

    private static let settingsBody = """
        local at, latest = tonumber(ARGV[1]), tonumber(ARGV[2]) + \(ScriptParts.skewMs)
        local given, merged, writes, answer = {}, {}, {}, 0
        \(ScriptParts.isForgotten)
        if isForgotten(KEYS[1], at, latest) then return 0 end
        local function stored(field)
          return string.match(redis.call('HGET', KEYS[1], field) or '', '^(%d+) (.*)$')
        end
        for i = 3, #ARGV, 2 do
          local field, value = ARGV[i], ARGV[i + 1]
          local was, stands = stored(field)
          was = tonumber(was) or -1
          if was > latest then was = -1 end
          given[field] = value
          if at > was or (at == was and value > stands) then
            writes[#writes + 1] = field
            writes[#writes + 1] = ARGV[1] .. ' ' .. value
          elseif at == was and value == stands then
            answer = \(ScriptParts.known)
          end
          -- What the sender of the record has in mind, also where the larger text of an equal time stays.
          if at >= was then merged[field] = value end
        end
        if #writes > 0 then answer = #writes / 2 end
        if given.dn == '1' or given.ds or given.de or given.dw then
          for _, field in ipairs({'dn', 'ds', 'de', 'dw'}) do
            if not merged[field] then
              local _, stands = stored(field)
              merged[field] = stands or ''
            end
          end
          if merged.dw == '' then
            if merged.ds ~= '' and merged.ds == merged.de then return -3 end
            if given.dn == '1' or merged.dn == '1' then
              if merged.ds == '' then return -1 end
              if merged.de == '' then return -2 end
            end
          end
        end
        """

    /// Level 0 is also written. Without it an older mute that comes late would apply again.
    ///
    /// KEYS state, user. ARGV 1 field of the conversation; 2 level; 3 until or `-`; 4 the record's time; 5 now. Answer: 1
    /// applied, 0 older, `known`.
    static let mute = RedisScript(
        """
        #!lua
        \(ScriptParts.prune)
        \(ScriptParts.isForgotten)
        \(ScriptParts.stay)
        local new, at = ARGV[2] .. ' ' .. ARGV[3] .. ' ' .. ARGV[4], tonumber(ARGV[4])
        if isForgotten(KEYS[1], at, tonumber(ARGV[5]) + \(ScriptParts.skewMs)) then return 0 end
        local cur = redis.call('HGET', KEYS[1], ARGV[1])
        if cur then
          local was = tonumber(string.match(cur, '(%d+)$')) or -1
          if was > tonumber(ARGV[5]) + \(ScriptParts.skewMs) then was = -1 end
          if at == was and new == cur then return \(ScriptParts.known) end
          if at < was or (at == was and new < cur) then return 0 end
        end
        if redis.call('HSET', KEYS[1], ARGV[1], new) == 1 then prune(tonumber(ARGV[5])) end
        stay(KEYS[1], KEYS[2])
        return 1
        """)
}

// SPDX-License-Identifier: Apache-2.0
import Redis

enum DryRunScripts {
    /// The answer of `claim` with the badge, without changes: the same script, run over copies of the sorted sets, with
    /// every write kept inside the script. The server enforces that nothing is written.
    ///
    /// KEYS, ARGV and answer as for `claim`. Reads the whole ledger: for commands, not for the worker. A command of
    /// `claim` without a replacement here goes to the server, which refuses it if it writes.
    static let claimDryRun = RedisScript(
        """
        #!lua flags=no-writes
        local server, sets, fields = redis, {}, {}
        local function members(key)
          if not sets[key] then
            sets[key] = {}
            local all = server.call('ZRANGE', key, 0, -1, 'WITHSCORES')
            for i = 1, #all, 2 do sets[key][all[i]] = tonumber(all[i + 1]) end
          end
          return sets[key]
        end
        local function names(key, isWanted)
          local found = {}
          for m, score in pairs(members(key)) do
            if isWanted(m, score) then found[#found + 1] = m end
          end
          return found
        end
        local standIns = {
          SET = function(key, _, mode) if mode == 'NX' then return server.call('GET', key) end end,
          SETRANGE = function() end,
          APPEND = function() end,
          EXPIRE = function() end,
          HSET = function(_, field, value) fields[field] = value end,
          HEXISTS = function(key, field)
            if fields[field] then return 1 end
            return server.call('HEXISTS', key, field)
          end,
          ZADD = function(key, score, m, last)
            local set, isKept = members(key), score == 'NX'
            if isKept then score, m = m, last end
            local isNew = not set[m]
            if isNew or not isKept then set[m] = tonumber(score) end
            return isNew and 1 or 0
          end,
          ZREM = function(key, ...)
            local set, gone = members(key), 0
            for _, m in ipairs({...}) do
              if set[m] then gone = gone + 1 end
              set[m] = nil
            end
            return gone
          end,
          ZREMRANGEBYRANK = function() end,
          ZSCORE = function(key, m) return members(key)[m] end,
          ZCARD = function(key) return #names(key, function() return true end) end,
          ZRANGE = function(key) return names(key, function() return true end) end,
          ZRANGEBYLEX = function(key, low)
            local prefix = string.sub(low, 2)
            return names(key, function(m) return string.sub(m, 1, #prefix) == prefix end)
          end,
          ZRANGEBYSCORE = function(key, low)
            local above = tonumber(string.sub(low, 2))
            return names(key, function(_, score) return score > above end)
          end,
        }
        local redis = {
          call = function(name, ...)
            if standIns[name] then return standIns[name](...) end
            return server.call(name, ...)
          end
        }
        \(ScriptParts.inHundreds)
        \(ScriptParts.countPast)
        local mayCut = true
        \(ClaimScripts.claimBody)
        """)
}

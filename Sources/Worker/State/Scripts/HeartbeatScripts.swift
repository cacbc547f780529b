// SPDX-License-Identifier: Apache-2.0
import Redis

/// The heartbeat of one server (`StateStore+Heartbeat`).
enum HeartbeatScripts {
    /// KEYS heartbeat, loss. ARGV 1 the count that the caller saw here last, empty: none; 2 and 3 keys from which on a missing
    /// count or a missing place is a loss, empty: it never is; 4 the caller's time in ms, where the user may not ask for the
    /// server's; 5 the log of user state that the caller reads, empty: not known; 6 `1`: evictions are looked at; 7 the caller's
    /// group, empty: any; then in fours: a partition, the offset below which all its user state is applied, the offset that a
    /// commit names as noted here, empty: there is none to compare, and the partition's end, empty: not known. A place only
    /// rises: a worker that was paused for long beats with an old one before it knows that it lost the partition. `=` before the
    /// partition: it began again at a lower offset.
    ///
    /// A count or a place that moved back begins a loss, or begins it again: the places of that older state are kept under the
    /// loss before this beat replaces them. Places of another log say nothing about this one: the loss has none of them, and time
    /// 0. A place beyond the end is of another log too, and is 0 in the loss. Such a loss has the field `l`. A partition that an
    /// open loss has not applied again keeps that loss's start. `allow-oom`: a full server is no reason not to look.
    ///
    /// While workers of another group live, nothing is changed: one of them beat in the last ten seconds.
    ///
    /// Answer: count, the server's time in ms, the loss as HGETALL gives it, 1 if the time is the server's; if evictions are
    /// looked at and the user may ask, how many keys were evicted, and the policy; the other group's name or empty.
    static let beat = RedisScript(
        """
        #!lua flags=allow-oom
        local clock, now = redis.pcall('TIME'), tonumber(ARGV[4])
        if clock[1] then now = clock[1] * 1000 + math.floor(clock[2] / 1000) end
        local function holds(least) return least ~= '' and redis.call('DBSIZE') >= tonumber(least) end
        local beat = redis.call('HMGET', KEYS[1], 'n', 't', 'l')
        local n, known = tonumber(beat[1]), tonumber(ARGV[1])
        if ARGV[7] ~= '' then
            local group = redis.call('HMGET', KEYS[1], 'g', 'gt')
            if group[1] and group[1] ~= ARGV[7] and now - (tonumber(group[2]) or 0) < 10000 then
                return {n or 0, now, redis.call('HGETALL', KEYS[2]), clock[1] and 1 or 0, false, false, group[1]}
            end
            redis.call('HSET', KEYS[1], 'g', ARGV[7], 'gt', now)
        end
        local after = math.max(n or 0, known or 0) + 1
        local isOther = ARGV[5] ~= '' and beat[3] and beat[3] ~= ARGV[5]
        local isLost = isOther or known and (n or 0) < known and (n or holds(ARGV[2]))
        local rising, beyond = {}, {}
        for i = 8, #ARGV, 4 do
            local field = 'p' .. string.match(ARGV[i], '%d+')
            local place = not isOther and tonumber(redis.call('HGET', KEYS[1], field))
            local noted, last = not isOther and tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
            if noted and (place and place < noted or not place and holds(ARGV[3])) then isLost = true end
            if place and last and place > last then beyond[field] = true end
            if not place or beyond[field] or 'p' .. ARGV[i] ~= field or place < tonumber(ARGV[i + 1]) then
                rising[#rising + 1] = field
                rising[#rising + 1] = ARGV[i + 1]
            end
        end
        local isForeign = isOther or next(beyond)
        if isLost or isForeign then
            local old, fields, places = {}, redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[1])
            for i = 1, #fields, 2 do old[fields[i]] = fields[i + 1] end
            local time = isOther and 0 or math.min(tonumber(beat[2] or 0), tonumber(old.t or beat[2] or 0))
            redis.call('DEL', KEYS[2])
            redis.call('HSET', KEYS[2], 'n', after, 't', time, 'a', now)
            if isForeign or old.l then redis.call('HSET', KEYS[2], 'l', 1) end
            for i = 1, #places, 2 do
                local field, place = places[i], places[i + 1]
                if isOther or string.sub(field, 1, 1) ~= 'p' then
                    place = nil
                elseif beyond[field] then
                    place = 0
                elseif old[field] then
                    place = math.min(tonumber(place), tonumber(old[field]))
                elseif old.n and not old['d' .. string.sub(field, 2)] then
                    place = nil
                end
                if place then redis.call('HSET', KEYS[2], field, place) end
                if isOther and string.sub(field, 1, 1) == 'p' then redis.call('HDEL', KEYS[1], field) end
            end
        end
        redis.call('HSET', KEYS[1], 'n', after, 't', now)
        if ARGV[5] ~= '' then redis.call('HSET', KEYS[1], 'l', ARGV[5]) end
        for i = 1, #rising, 2 do redis.call('HSET', KEYS[1], rising[i], rising[i + 1]) end
        local stats = ARGV[6] == '1' and redis.pcall('INFO', 'stats')
        local memory = ARGV[6] == '1' and redis.pcall('INFO', 'memory')
        local evicted = type(stats) == 'string' and string.match(stats, 'evicted_keys:(%d+)')
        local policy = type(memory) == 'string' and string.match(memory, 'maxmemory_policy:([%w-]+)')
        return {after, now, redis.call('HGETALL', KEYS[2]), clock[1] and 1 or 0, evicted or false, policy or false, ''}
        """)

    /// KEYS loss. ARGV 1 id; 2 partitions of the topic; then partitions that were applied again. The loss ends with the last one.
    /// Answer: 1, or 0 if there is another loss now.
    static let endReplay = RedisScript(
        """
        #!lua flags=allow-oom
        if redis.call('HGET', KEYS[1], 'n') ~= ARGV[1] then return 0 end
        for i = 3, #ARGV do redis.call('HSET', KEYS[1], 'd' .. ARGV[i], 1) end
        local done, fields = 0, redis.call('HGETALL', KEYS[1])
        for i = 1, #fields, 2 do
            if string.sub(fields[i], 1, 1) == 'd' then done = done + 1 end
        end
        if done >= tonumber(ARGV[2]) then redis.call('DEL', KEYS[1]) end
        return 1
        """)

    /// KEYS loss. ARGV 1 id. An operator accepted it.
    static let dropLoss = RedisScript(
        """
        #!lua flags=allow-oom
        if redis.call('HGET', KEYS[1], 'n') ~= ARGV[1] then return 0 end
        return redis.call('DEL', KEYS[1])
        """)

    /// KEYS acceptance. ARGV 1 the caller's time in ms; 2 seconds that it lives. Answer: OK.
    static let acceptLoss = RedisScript(
        """
        #!lua flags=allow-oom
        local clock, now = redis.pcall('TIME'), ARGV[1]
        if clock[1] then now = clock[1] * 1000 + math.floor(clock[2] / 1000) end
        return redis.call('SET', KEYS[1], now, 'EX', ARGV[2])
        """)
}

// SPDX-License-Identifier: Apache-2.0
import Redis

/// The heartbeat of one server (`StateStore+Heartbeat`).
extension StateScripts {
    /// KEYS heartbeat, loss. ARGV 1 the count that the caller saw here last, empty: none; 2 and 3 keys from which on a missing
    /// count or a missing place is a loss, empty: it never is; 4 the caller's time in ms, where the user may not ask for the
    /// server's; then in threes: a partition, the offset below which all its user state is applied, and the offset that a commit
    /// names as noted here, empty: there is none to compare. A place only rises: a worker that was paused for long beats with an
    /// old one before it knows that it lost the partition. `=` before the partition: it began again at a lower offset.
    ///
    /// A count or a place that moved back begins a loss, or begins it again: the places of that older state are kept under the
    /// loss before this beat replaces them. `allow-oom`: a full server is no reason not to look.
    ///
    /// Answer: count, the server's time in ms, the loss as HGETALL gives it, 1 if the time is the server's.
    static let beat = RedisScript(
        """
        #!lua flags=allow-oom
        local clock, now = redis.pcall('TIME'), tonumber(ARGV[4])
        if clock[1] then now = clock[1] * 1000 + math.floor(clock[2] / 1000) end
        local function holds(least) return least ~= '' and redis.call('DBSIZE') >= tonumber(least) end
        local beat = redis.call('HMGET', KEYS[1], 'n', 't')
        local n, known = tonumber(beat[1]), tonumber(ARGV[1])
        local after = math.max(n or 0, known or 0) + 1
        local isLost = known and (n or 0) < known and (n or holds(ARGV[2]))
        local rising = {}
        for i = 5, #ARGV, 3 do
            local partition = string.match(ARGV[i], '%d+')
            local noted, place = tonumber(ARGV[i + 2]), tonumber(redis.call('HGET', KEYS[1], 'p' .. partition))
            if noted and (place and place < noted or not place and holds(ARGV[3])) then isLost = true end
            if not place or partition ~= ARGV[i] or place < tonumber(ARGV[i + 1]) then
                rising[#rising + 1] = 'p' .. partition
                rising[#rising + 1] = ARGV[i + 1]
            end
        end
        if isLost then
            local before, places = redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[1])
            redis.call('DEL', KEYS[2])
            redis.call('HSET', KEYS[2], 'n', after, 't', beat[2] or 0, 'a', now)
            for i = 1, #places, 2 do
                if string.sub(places[i], 1, 1) == 'p' then redis.call('HSET', KEYS[2], places[i], places[i + 1]) end
            end
            for i = 1, #before, 2 do
                local other = redis.call('HGET', KEYS[2], before[i])
                if other and string.find(before[i], '^[tp]') and tonumber(before[i + 1]) < tonumber(other) then
                    redis.call('HSET', KEYS[2], before[i], before[i + 1])
                end
            end
        end
        redis.call('HSET', KEYS[1], 'n', after, 't', now)
        for i = 1, #rising, 2 do redis.call('HSET', KEYS[1], rising[i], rising[i + 1]) end
        return {after, now, redis.call('HGETALL', KEYS[2]), clock[1] and 1 or 0}
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

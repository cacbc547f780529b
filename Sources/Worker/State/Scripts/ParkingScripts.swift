// SPDX-License-Identifier: Apache-2.0
import Redis

/// Notes of parked events (`StateStore+Parking`).
enum ParkingScripts {
    /// A note has the longest life of all parked events, because earlier events may wait longer than the last one lives.
    private static let longest = """
        local function longest(note, cur)
            local before = string.match(cur or '', '^2 %d+ %d+ (%d+) ')
            local head, own = string.match(note, '^(2 %d+ %d+ )(%d+)$')
            return before and own and tonumber(before) > tonumber(own) and head .. before or note
        end
        """

    /// Adds `id` to the list of all work that waits for the device of the note `field`, or takes it out. An entry is `;` and a part
    /// of the id's digest. A long list loses its oldest entries.
    ///
    /// Work of one device may wait in several shards, and none of them knows which of the work ends last.
    private static let waiting = """
        local list = 'Y' .. string.sub(ARGV[1], 2)
        local function waiting(id, isAdded)
            local own, ids = ';' .. string.sub(redis.sha1hex(id), 1, 12), redis.call('HGET', KEYS[1], list) or ''
            local from, to = string.find(ids, own, 1, true)
            if from then ids = string.sub(ids, 1, from - 1) .. string.sub(ids, to + 1) end
            return isAdded and string.sub(ids .. own, -832) or ids
        end
        """

    /// KEYS user. ARGV 1 field; 2 the note without its id; 3 id; 4 `1` where it was parked before: then the id of one behind it
    /// stays; 5, of a device that APNs wants left alone, until when.
    static let noteParked = RedisScript(
        """
        #!lua
        \(longest)
        \(waiting)
        redis.call('HSET', KEYS[1], list, waiting(ARGV[3], true))
        local id, cur = ARGV[3], redis.call('HGET', KEYS[1], ARGV[1])
        if cur and ARGV[4] == '1' then
            id = string.match(cur, '^2 %d+ %d+ %d+ (.*)$') or string.match(cur, '^%d+ (.*)$') or id
        end
        redis.call('HSET', KEYS[1], ARGV[1], longest(ARGV[2], cur) .. ' ' .. id)
        if ARGV[5] then redis.call('HSET', KEYS[1], 'z' .. string.sub(ARGV[1], 2), ARGV[5]) end
        return 1
        """)

    /// APNs takes pushes of the device again: work that is parked behind the note is due now.
    ///
    /// KEYS user. ARGV 1 field; 2 now. Answer: 1 changed, 0 there is no note, or it was due.
    static let hastenParked = RedisScript(
        """
        #!lua
        local due, rest = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^2 (%d+)( .*)$')
        redis.call('HDEL', KEYS[1], 'z' .. string.sub(ARGV[1], 2))
        if not due or tonumber(due) <= tonumber(ARGV[2]) then return 0 end
        redis.call('HSET', KEYS[1], ARGV[1], '2 ' .. ARGV[2] .. rest)
        return 1
        """)

    /// KEYS note of a conversation. ARGV 1 the note without its id; 2 id; 3 seconds.
    static let noteParkedConversation = RedisScript(
        """
        #!lua
        \(longest)
        local note = longest(ARGV[1], redis.call('GET', KEYS[1]))
        redis.call('SET', KEYS[1], note .. ' ' .. ARGV[2], 'EX', ARGV[3])
        return 1
        """)

    /// KEYS user. ARGV 1 field; 2 id. Answer: 1 removed, 0 other work waits. A note of an earlier version has no list, and names the
    /// last work that was parked.
    static let forgetParked = RedisScript(
        """
        #!lua
        \(waiting)
        if redis.call('HEXISTS', KEYS[1], list) == 1 then
            local ids = waiting(ARGV[2], false)
            if ids ~= '' then
                redis.call('HSET', KEYS[1], list, ids)
                return 0
            end
        else
            local cur = redis.call('HGET', KEYS[1], ARGV[1])
            local id = cur and (string.match(cur, '^2 %d+ %d+ %d+ (.*)$') or string.match(cur, '^%d+ (.*)$') or ARGV[2])
            if id ~= ARGV[2] then return 0 end
        end
        redis.call('HDEL', KEYS[1], ARGV[1], 'z' .. string.sub(ARGV[1], 2), list)
        return 1
        """)

    /// KEYS note of a conversation. ARGV 1 id. Answer: like `forgetParked`.
    static let forgetParkedConversation = RedisScript(
        """
        #!lua
        local cur = redis.call('GET', KEYS[1])
        local id = cur and (string.match(cur, '^2 %d+ %d+ %d+ (.*)$') or string.match(cur, '^%d+ (.*)$') or ARGV[1])
        if id ~= ARGV[1] then return 0 end
        return redis.call('DEL', KEYS[1])
        """)

    /// KEYS any. Answer: seconds and microseconds of the server's time; empty where the user may not ask for it.
    static let time = RedisScript(
        """
        #!lua flags=no-writes
        local time = redis.pcall('TIME')
        return time.err and {} or time
        """)
}

// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// The statistics: hashes per app and UTC hour (`StateKeys`), all in one slot, so that a flush is one step.
extension StateStore {
    /// Begins to count these partitions. The reply has their positions (`CountedPosition`), in order.
    func beginCounting(owner: String, _ partitions: [String], tag: UInt64) throws(RedisFault) {
        try change(tag, StatisticsScripts.beginCounting, keyCount: 1) { command in
            command.arg(StatisticsKey.positions)
            command.arg(owner)
            for partition in partitions { command.arg(partition) }
        }
    }

    /// Adds counts. The reply lists the partitions that belong to another owner; with any, nothing was added.
    func count(_ flush: StatisticsFlush, owner: String, nowMs: Int64, tag: UInt64) throws(RedisFault) {
        try change(tag, StatisticsScripts.count, keyCount: 2 + flush.keys.count) { command in
            command.arg(StatisticsKey.positions)
            command.arg(StatisticsKey.lastFlush(owner))
            for key in flush.keys { command.arg(key) }
            command.arg(owner)
            command.arg(Int64(flush.number))
            command.arg(StateKeys.time(nowMs))
            command.arg(flush.positions.count)
            for (partition, position) in flush.positions {
                command.arg(partition)
                command.arg(position)
            }
            for step in flush.steps { command.arg(step) }
        }
    }

    /// All fields of one of the hashes.
    func statistics(_ key: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HGETALL")
            command.arg(key)
        }
    }

    /// The sums in the hash of an hour, one for each letter.
    func statisticsSums(_ key: String, _ letters: [StatisticsFlush.Letter], tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HMGET")
            command.arg(key)
            for letter in letters { command.arg(".\(letter.rawValue)") }
        }
    }
}

/// The keys of the statistics.
enum StatisticsKey {
    static let positions = "c:t:{n}at"
    static func lastFlush(_ owner: String) -> String { "c:t:{n}f\(owner)" }
    static let hourMs: Int64 = 3_600_000

    /// The numbers of one hour since 1970.
    static func hour(_ app: String, _ hour: Int64) -> String { "c:t:{n}h\(hour):\(app)" }
    /// The names of a day by their hash.
    static func names(_ app: String, _ day: Int64) -> String { "c:t:{n}n\(day):\(app)" }
    /// The numbers and names of a day's tasks.
    static func tasks(_ app: String, _ day: Int64) -> String { "c:t:{n}t\(day):\(app)" }
    /// The tasks of a day by when they came first.
    static func taskList(_ app: String, _ day: Int64) -> String { "c:t:{n}k\(day):\(app)" }
}

/// The numbers of `carillon stats`, together with the position in Kafka up to which they count.
enum StatisticsScripts {
    /// KEYS positions. ARGV 1 owner; then partitions. The caller counts them from now on; a flush of an earlier owner is refused.
    /// Answer: their positions, empty for none.
    static let beginCounting = RedisScript(
        """
        #!lua
        local out = {}
        for i = 2, #ARGV do
            local old = redis.call('HGET', KEYS[1], ARGV[i])
            local at = old and string.match(old, '^%S+ (.*)$') or ''
            redis.call('HSET', KEYS[1], ARGV[i], ARGV[1] .. ' ' .. at)
            out[#out + 1] = at
        end
        return out
        """)

    /// KEYS positions, last flush of the owner, then those that the steps name by their place. ARGV 1 owner; 2 number of the flush; 3 now in ms; 4 how many
    /// partitions; each with its position; then steps:
    /// `h` key, seconds, n, then n fields with their increments; `n` key and directory of names, their seconds, hash, text, n, …: of
    /// more than 200 names the others are added up as `other`; `t` key and list of tasks, seconds, hash, text, n, …: of more than
    /// 1000 tasks the newest are kept.
    ///
    /// Answer: the partitions that belong to another owner: then nothing is changed. The same flush twice changes nothing. A
    /// partition without an owner is the caller's: Redis lost its keys.
    static let count = RedisScript(
        """
        #!lua
        local places, going = tonumber(ARGV[4]), {}
        if tonumber(redis.call('GET', KEYS[2]) or 0) >= tonumber(ARGV[2]) then return going end
        for i = 1, places do
            local field = ARGV[3 + 2 * i]
            local owner = string.match(redis.call('HGET', KEYS[1], field) or '', '^%S+')
            if owner and owner ~= ARGV[1] then going[#going + 1] = field end
        end
        if #going > 0 then return going end
        local at = 5 + 2 * places
        local function take()
            at = at + 1
            return ARGV[at - 1]
        end
        local function add(key, before)
            for _ = 1, tonumber(take()) do
                local field = take()
                redis.call('HINCRBY', key, before .. field, take())
            end
        end
        local function skip()
            at = at + 2 * tonumber(ARGV[at]) + 1
        end
        while at <= #ARGV do
            local step, key = take(), KEYS[tonumber(take())]
            if step == 'h' then
                local seconds = take()
                add(key, '')
                redis.call('EXPIRE', key, seconds)
            elseif step == 'n' then
                local list, seconds, hash, text = KEYS[tonumber(take())], take(), take(), take()
                if redis.call('HEXISTS', list, hash) == 0 then
                    if text ~= '' and redis.call('HLEN', list) < 200 then
                        redis.call('HSET', list, hash, text)
                    else
                        hash = 'other'
                    end
                end
                add(key, 'n' .. hash .. ':')
                redis.call('EXPIRE', key, seconds)
                redis.call('EXPIRE', list, seconds)
            else
                local list, seconds, hash, text = KEYS[tonumber(take())], take(), take(), take()
                if not redis.call('ZSCORE', list, hash) and text ~= '' then
                    redis.call('ZADD', list, ARGV[3], hash)
                    redis.call('HSET', key, hash .. ':t', text)
                    if redis.call('ZCARD', list) > 1000 then
                        local old = redis.call('ZRANGE', list, 0, 0)[1]
                        redis.call('ZREM', list, old)
                        for letter in string.gmatch('tsaArexovw', '.') do
                            redis.call('HDEL', key, old .. ':' .. letter)
                        end
                    end
                end
                if redis.call('ZSCORE', list, hash) then add(key, hash .. ':') else skip() end
                redis.call('EXPIRE', key, seconds)
                redis.call('EXPIRE', list, seconds)
            end
        end
        for i = 1, places do
            redis.call('HSET', KEYS[1], ARGV[3 + 2 * i], ARGV[1] .. ' ' .. ARGV[4 + 2 * i])
        end
        redis.call('SET', KEYS[2], ARGV[2], 'EX', 86400)
        return going
        """)
}

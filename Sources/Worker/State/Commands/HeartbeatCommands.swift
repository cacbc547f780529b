// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// A heartbeat in each server of Redis: a count that rises, the server's time, and how far user state is applied. A server
/// that returns with older data has an older count (`DataAge`).
extension StateStore {
    /// One beat of one server.
    struct Beat: Equatable {
        /// The count after the beat.
        var count: Int64
        /// The server's time, Unix ms.
        var nowMs: Int64
        /// Nil if everything that was ever applied is there, or was applied again.
        var loss: Loss?
        /// `nowMs` is not the caller's own time.
        var isServerTime = true
        /// Keys that the server has evicted since its start, and its `maxmemory-policy`; nil: not asked, or not said.
        var evicted: Int64?
        var policy: String?
        /// Another group of which a worker beat here lately: then this was no beat. Nil: there is none.
        var otherGroup: String?
    }

    /// The server returned with older data, and not all user state is applied again.
    struct Loss: Equatable {
        /// The count that began it: another loss has a higher one.
        var id: Int64
        /// The server's time of the older data, Unix ms; 0: it has no heartbeat.
        var fromMs: Int64
        /// When it was noticed, the server's time, Unix ms.
        var noticedMs: Int64
        /// By partition of the user-state topic: all before this offset was applied.
        var offsets: [Int32: Int64] = [:]
        /// Partitions that were applied again.
        var done: Set<Int32> = []
        /// Places are of another log of user state: another Kafka cluster, or a topic that was created again.
        var isOfOtherLog = false
    }

    /// The parameters of a beat.
    struct BeatRequest: Equatable {
        /// The server's number (`RedisServers.tagNumbers`).
        var server: Int
        /// The count that was seen there last; nil: none was.
        var known: Int64?
        /// A missing count is a loss where the server has so many keys; nil: it is none.
        var leastKeys: Int64?
        /// The same of a missing place.
        var leastKeysOfPlaces: Int64?
        var looksAtEviction = false
        /// The log of user state that the places belong to: Kafka's cluster and the topic; empty: not known yet.
        var log = ""
        /// By partition of the user-state topic: all before this offset is applied.
        var offsets: [Int32: Int64] = [:]
        /// By partition: the log's end, as brokers gave it.
        var ends: [Int32: Int64] = [:]
        /// By partition: the offset that a commit to Kafka names as noted here.
        var noted: [Int32: Int64] = [:]
        /// Partitions that began again at a lower offset: their places may fall.
        var restarted: Set<Int32> = []
        /// The caller's group; empty: it is not compared.
        var group = ""
    }

    /// What server numbers count.
    static let serverWord = "h"

    /// Beats. The reply is for `Beat(_:)`.
    func beat(_ request: BeatRequest, nowMs: Int64, tag: UInt64) throws(RedisFault) {
        try change(tag, HeartbeatScripts.beat, keyCount: 2) { command in
            command.heartbeatKey(request.server)
            command.heartbeatKey(request.server, isLoss: true)
            command.optional(request.known)
            command.optional(request.leastKeys)
            command.optional(request.leastKeysOfPlaces)
            command.arg(StateKeys.time(nowMs))
            command.arg(request.log)
            command.arg(word: request.looksAtEviction ? "1" : "")
            command.arg(request.group)
            for (partition, offset) in request.offsets.sorted(by: { $0.key < $1.key }) {
                if request.restarted.contains(partition) { command.part(word: "=") }
                command.part(Int64(partition))
                command.end()
                command.arg(offset)
                command.optional(request.noted[partition])
                command.optional(request.ends[partition])
            }
        }
    }

    /// Reads the count without a write, of a server that takes none: a text or null.
    func lookAtBeat(server: Int, tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "HGET")
            command.heartbeatKey(server)
            command.arg(word: "n")
        }
    }

    /// The user state of these partitions was applied again. The reply is an integer.
    ///
    /// - Parameter total: partitions of the topic: with the last one the loss ends.
    func endReplay(
        server: Int, loss: Int64, partitions: some Collection<Int32>, total: Int, tag: UInt64
    ) throws(RedisFault) {
        try change(tag, HeartbeatScripts.endReplay, keyCount: 1) { command in
            command.heartbeatKey(server, isLoss: true)
            command.arg(loss)
            command.arg(total)
            for partition in partitions { command.arg(Int64(partition)) }
        }
    }

    /// An operator accepted the loss. The reply is an integer.
    func dropLoss(server: Int, loss: Int64, tag: UInt64) throws(RedisFault) {
        try change(tag, HeartbeatScripts.dropLoss, keyCount: 1) { command in
            command.heartbeatKey(server, isLoss: true)
            command.arg(loss)
        }
    }
}

extension StateStore.Beat {
    /// The reply of `beat`; nil for anything else.
    init?(_ reply: borrowing RedisReply) {
        guard reply.count == 7, let count = reply[0].int64, let nowMs = reply[1].int64 else { return nil }
        let group = reply[6].string
        self.init(
            count: count, nowMs: nowMs, loss: StateStore.Loss(reply[2]), isServerTime: reply[3].int64 == 1,
            evicted: reply[4].int64, policy: reply[5].string, otherGroup: group.flatMap { $0.isEmpty ? nil : $0 })
    }
}

extension StateStore.Loss {
    /// - Returns: nil if there is none.
    init?(_ fields: borrowing RedisReply) {
        guard fields.count > 0 else { return nil }
        var loss = StateStore.Loss(id: 0, fromMs: 0, noticedMs: 0)
        fields.forEachPair { field, value in
            guard let value = value.int64, let letter = field.bytes.first else { return }
            let partition = field.bytes.count > 1 ? field.string.flatMap { Int32($0.dropFirst()) } : nil
            switch (letter, partition) {
            case (UInt8(ascii: "n"), nil): loss.id = value
            case (UInt8(ascii: "t"), nil): loss.fromMs = value
            case (UInt8(ascii: "a"), nil): loss.noticedMs = value
            case (UInt8(ascii: "l"), nil): loss.isOfOtherLog = true
            case (UInt8(ascii: "p"), let partition?): loss.offsets[partition] = max(0, value)
            case (UInt8(ascii: "d"), let partition?): loss.done.insert(partition)
            default: break
            }
        }
        self = loss
    }
}

extension RedisCommand {
    /// `c:w:{h<server>}`, or that of its loss, as one argument.
    mutating func heartbeatKey(_ server: Int, isLoss: Bool = false) {
        part(word: "c:w:{")
        part(StateStore.serverWord)
        part(Int64(server))
        part(word: isLoss ? "}loss" : "}")
        end()
    }
}

/// Whether Redis still has its data (`TokenLoss`).
extension StateStore {
    /// Number of keys in the database; in a cluster those of each node (`keyCounts`).
    func keyCount(tag: UInt64) throws(RedisFault) {
        try countKeys(tag: tag)
    }

    /// The reply of `keyCount` by server; nil for a server that is down. Nil for any other reply.
    static func keyCounts(_ reply: borrowing RedisReply) -> [Int64: Int64?]? {
        if reply.kind == .integer, let count = reply.int64 { return [0: bounded(count)] }
        guard reply.count > 0 else { return nil }
        var counts: [Int64: Int64?] = [:]
        var isOther = false
        reply.forEachPair { server, keys in
            guard server.kind == .integer, keys.kind == .integer || keys.isNull, let server = server.int64 else {
                return isOther = true
            }
            counts.updateValue(keys.int64.map(bounded), forKey: server)
        }
        return isOther ? nil : counts
    }

    /// Keeps sums over nodes valid, whatever a server reports.
    private static func bounded(_ count: Int64) -> Int64 { min(max(0, count), 1 << 40) }

    /// When an operator accepted a loss, by the server's clock, Unix ms: a text, or null.
    func lossAccepted(tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "GET")
            command.arg(word: "c:w:{accepted}")
        }
    }

    /// Accepts the present loss: workers that stopped for it go on, and workers that had not noticed it do not stop. The reply is `OK`.
    ///
    /// The time is the server's, which workers compare with: their own clocks may differ.
    func acceptLoss(nowMs: Int64, tag: UInt64) throws(RedisFault) {
        try change(tag, HeartbeatScripts.acceptLoss, keyCount: 1) { command in
            command.arg(word: "c:w:{accepted}")
            command.arg(StateKeys.time(nowMs))
            command.arg(86_400)
        }
    }

    /// The server's time: two texts (`timeMs`). By a script, since a cluster's client sends by key.
    ///
    /// - Parameter server: its number (`RedisServers.tagNumbers`).
    func time(server: Int, tag: UInt64) throws(RedisFault) {
        try change(tag, ParkingScripts.time, keyCount: 1) { command in command.heartbeatKey(server) }
    }

    /// - Returns: Unix ms; nil for any other reply.
    static func timeMs(_ reply: borrowing RedisReply) -> Int64? {
        guard reply.kind == .array, reply.count == 2, let seconds = reply[0].int64, let micros = reply[1].int64,
            (0..<(1 << 40)).contains(seconds), (0..<1_000_000).contains(micros)
        else { return nil }
        return seconds * 1000 + micros / 1000
    }
}

/// The scripts of one server's heartbeat.
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

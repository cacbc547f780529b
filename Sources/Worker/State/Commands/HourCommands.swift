// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// `limits.background_per_hour`: the background pushes of a user's devices in their present hours.
enum HourScripts {
    /// KEYS hours. ARGV 1 device; 2 limit; 3 push; 4 sent; 5 now; 6 `1` if it has waited. Answer: 0 the push has a place, now or
    /// since an earlier try; -1 a newer push went for it while it waited; else the ms until it should ask again.
    ///
    /// A device's hour begins with its first push. At its end the newest of those that wait goes for all. The others let it pass for
    /// ten seconds, because it may have ended otherwise. Field: `<begin of the hour> <places taken> <sent of the newest push with a
    /// place> <sent of the newest that waits, or 0> <last push with a place>`.
    static let takePlace = RedisScript(
        """
        #!lua
        local old, sent, now = redis.call('HGET', KEYS[1], ARGV[1]), tonumber(ARGV[4]), tonumber(ARGV[5])
        local begin, taken, newest, waiting, last = string.match(old or '', '^(%d+) (%d+) (%d+) (%d+) (.*)$')
        if last == ARGV[3] then return 0 end
        begin, taken, newest, waiting = math.min(begin or 0, now), tonumber(taken) or 0, tonumber(newest) or 0, tonumber(waiting) or 0
        if ARGV[6] == '1' and sent <= newest then return -1 end
        local left = begin + 3600000 - now
        local wait = left > 0 and taken >= tonumber(ARGV[2]) and left or 0
        if left <= 0 and left > -10000 and waiting > sent then wait = left + 10000 end
        if wait > 0 then
          -- What waits is not in any push so far.
          newest, waiting, last = math.max(0, math.min(newest, sent - 1)), math.max(waiting, sent), last or ''
        else
          if left <= 0 then begin, taken = now, 0 end
          taken, newest, waiting, last = taken + 1, math.max(newest, sent), 0, ARGV[3]
        end
        if not old and redis.call('HLEN', KEYS[1]) >= 256 then redis.call('DEL', KEYS[1]) end
        redis.call('HSET', KEYS[1], ARGV[1], string.format('%d %d %d %d %s', begin, taken, newest, waiting, last))
        redis.call('EXPIRE', KEYS[1], 7200)
        return wait
        """)
}

extension StateStore {
    /// - Parameter hasWaited: whether the push had no place before.
    func takePlace(
        app: String, uid: String, device: String, _ push: PushID, sentMs: Int64, limit: Int, hasWaited: Bool,
        nowMs: Int64, tag: UInt64
    ) throws(RedisFault) {
        try change(tag, HourScripts.takePlace, keyCount: 1) { command in
            command.key("c:f", app, uid)
            command.arg(device)
            command.arg(limit)
            command.arg(push.description)
            command.arg(StateKeys.time(sentMs))
            command.arg(StateKeys.time(nowMs))
            command.arg(word: hasWaited ? "1" : "0")
        }
    }

    /// A text that `DeviceHour` reads, or null.
    func readHour(app: String, uid: String, device: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HGET")
            command.key("c:f", app, uid)
            command.arg(device)
        }
    }
}

/// The background pushes of a device in its present hour, for `explain`.
struct DeviceHour {
    /// Unix ms.
    var beginMs: Int64
    var taken: Int

    /// - Returns: nil for any text that `HourScripts.takePlace` does not write.
    init?(_ text: String) {
        let words = text.split(separator: " ", maxSplits: 4)
        guard words.count >= 4, let beginMs = Int64(words[0]), let taken = Int(words[1]) else { return nil }
        self.beginMs = beginMs
        self.taken = taken
    }

    /// Until its next hour; nil: that has begun.
    func leftMs(nowMs: Int64) -> Int64? {
        let leftMs = min(beginMs, nowMs) &+ 3_600_000 &- nowMs
        return leftMs > 0 ? leftMs : nil
    }
}

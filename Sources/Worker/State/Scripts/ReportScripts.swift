// SPDX-License-Identifier: Apache-2.0
import Redis

/// What devices report of deliveries and pushes: one key per user and kind, of a bounded size.
enum ReportScripts {
    /// KEYS acknowledgements. ARGV 1 device as the values have it; 2 now in ms; 3 seconds of life; 4 how many messages at most;
    /// 5 bytes of a value at most; then message ids. Answer: 1.
    ///
    /// A device that does not fit into a value takes the place of the ones before it.
    static let acknowledge = RedisScript(
        """
        #!lua
        \(ScriptParts.limit)
        local function holds(devices, device)
            if not string.find(devices, device, 1, true) then return false end
            local at = 1
            while at <= #devices do
                local len, from = string.match(devices, '^%a(%d+):()', at)
                if not len then break end
                if string.sub(devices, at, from + len - 1) == device then return true end
                at = from + len
            end
            return false
        end
        for i = 6, #ARGV do
            local devices = string.match(redis.call('HGET', KEYS[1], ARGV[i]) or '', '^%d* ?(.*)$')
            if not holds(devices, ARGV[1]) then
                devices = devices .. ARGV[1]
                if #devices > tonumber(ARGV[5]) then devices = ARGV[1] end
            end
            redis.call('HSET', KEYS[1], ARGV[i], ARGV[2] .. ' ' .. devices)
        end
        limit(KEYS[1], tonumber(ARGV[4]))
        redis.call('EXPIRE', KEYS[1], ARGV[3])
        return 1
        """)

    /// KEYS reports. ARGV 1 push and device; 2 now in ms; 3 seconds of life; 4 how many at most; 5 the report's record.
    /// Answer: 1 it is the first one, 2 the same record made it the first one, 0 neither.
    static let reportPush = RedisScript(
        """
        #!lua
        \(ScriptParts.limit)
        local isNew = redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[5])
        if isNew == 1 then
            limit(KEYS[1], tonumber(ARGV[4]))
        elseif ARGV[5] ~= '' and string.match(redis.call('HGET', KEYS[1], ARGV[1]), ' (.*)$') == ARGV[5] then
            isNew = 2
        end
        redis.call('EXPIRE', KEYS[1], ARGV[3])
        return isNew
        """)
}

// SPDX-License-Identifier: Apache-2.0
public import PushCore
public import Redis

/// The state of Live Activities: field `<activity>` of `c:a`, `<its beginning>[ <sent_ms of the accepted end>]`.
extension StateStore {
    /// APNs accepted a start: the activity begins now, unless an end that was sent after this start was accepted. The reply is an
    /// integer.
    func beginActivity(
        app: String, uid: String, activityID: String, sentMs: Int64, nowMs: Int64, tag: UInt64
    ) throws(RedisFault) {
        try noteActivity(ActivityScripts.beginActivity, app, uid, activityID, sentMs: sentMs, nowMs: nowMs, tag)
    }

    /// APNs accepted an end: no update follows it. The reply is an integer.
    func endActivity(
        app: String, uid: String, activityID: String, sentMs: Int64, nowMs: Int64, tag: UInt64
    ) throws(RedisFault) {
        try noteActivity(ActivityScripts.endActivity, app, uid, activityID, sentMs: sentMs, nowMs: nowMs, tag)
    }

    private func noteActivity(
        _ script: RedisScript, _ app: String, _ uid: String, _ activityID: String, sentMs: Int64, nowMs: Int64,
        _ tag: UInt64
    ) throws(RedisFault) {
        try change(tag, script, keyCount: 1) { command in
            command.key("c:a", app, uid)
            command.arg(activityID)
            command.arg(StateKeys.time(nowMs))
            command.arg(StateKeys.time(sentMs))
            command.arg(StateKeys.activitySeconds)
        }
    }
}

extension ActivityState {
    /// Reads the reply of `StateStore.activityState`. Of a field that cannot be read nothing is known.
    public init(_ reply: borrowing RedisReply) {
        self.init()
        guard !reply.isNull else { return }
        var text = CompactText(reply.bytes)
        startedMs = text.number()
        isEnded = startedMs != nil && text.number() != nil
    }
}

enum ActivityScripts {
    /// KEYS activities. ARGV 1 activity; 2 now; 3 `sent_ms` of the start; 4 seconds of life.
    /// Answer: 1 it begins, 0 an end that was sent later was accepted before.
    static let beginActivity = RedisScript(
        """
        #!lua
        \(ScriptParts.limit)
        local ended = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^%d+ (%d+)$')
        if ended and tonumber(ended) > tonumber(ARGV[3]) then return 0 end
        redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
        limit(KEYS[1], \(StateKeys.activitiesMax))
        redis.call('EXPIRE', KEYS[1], ARGV[4])
        return 1
        """)

    /// KEYS activities. ARGV 1 activity; 2 now; 3 `sent_ms` of the end; 4 seconds of life. Answer: 1.
    static let endActivity = RedisScript(
        """
        #!lua
        \(ScriptParts.limit)
        local began = string.match(redis.call('HGET', KEYS[1], ARGV[1]) or '', '^%d+') or ARGV[2]
        redis.call('HSET', KEYS[1], ARGV[1], began .. ' ' .. ARGV[3])
        limit(KEYS[1], \(StateKeys.activitiesMax))
        redis.call('EXPIRE', KEYS[1], ARGV[4])
        return 1
        """)
}

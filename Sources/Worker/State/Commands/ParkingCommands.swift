// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// Notes for later events of a device, user or conversation: an earlier one is parked.
///
/// Field `y` + device of the user's hash, with an empty device for all of them; or `c:y:{app:conversation}` for an event that is
/// parked with all its recipients. Value: `2 <due> <written> <until> <id>`, the times in Unix ms (`ParkedNote`), of the one that
/// was parked last; `until` is the longest of all. Earlier versions wrote `<due> <id>`. Field `z` + device: until when APNs wants
/// the device left alone. Field `Y` + device: all work that waits for it.
extension StateStore {
    private static let conversationSeconds: Int64 = 2 * 86_400

    /// - Parameter isAgain: it was parked before, so that others may already be parked behind it.
    func noteParked(
        app: String, uid: String, device: String, _ note: ParkedNote, id: String, isAgain: Bool,
        isAPNsAsking: Bool = false,
        tag: UInt64
    ) throws(RedisFault) {
        try change(tag, ParkingScripts.noteParked, keyCount: 1) { command in
            command.key("c:u", app, uid)
            command.field("y", device)
            command.part(note)
            command.end()
            command.arg(id)
            command.arg(word: isAgain ? "1" : "0")
            if isAPNsAsking { command.arg(StateKeys.time(note.dueMs)) }
        }
    }

    /// APNs accepted a push of the device after it had asked to leave the device alone.
    func hastenParked(app: String, uid: String, device: String, nowMs: Int64, tag: UInt64) throws(RedisFault) {
        try change(tag, ParkingScripts.hastenParked, keyCount: 1) { command in
            command.key("c:u", app, uid)
            command.field("y", device)
            command.arg(StateKeys.time(nowMs))
        }
    }

    /// Until when APNs wants the device left alone: an integer, or null.
    func readPause(app: String, uid: String, device: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HGET")
            command.key("c:u", app, uid)
            command.field("z", device)
        }
    }

    /// It has ended: removes the note, unless another was parked behind it.
    func forgetParked(
        app: String, uid: String, device: String, id: String, tag: UInt64
    ) throws(RedisFault) {
        try change(tag, ParkingScripts.forgetParked, keyCount: 1) { command in
            command.key("c:u", app, uid)
            command.field("y", device)
            command.arg(id)
        }
    }

    /// Gives a recipient that waits in the topic the mark that Redis refused. An existing mark remains. It is not counted:
    /// the claim of its return counts it.
    func markParked(
        app: String, uid: String, kind: PairKind, id: String, untilMs: Int64, tag: UInt64
    ) throws(RedisFault) {
        try client.command(tag, finishes) { command in
            command.arg(word: "SET")
            command.key("c:d", app, uid, kind, suffix: id)
            command.part(word: "o")
            command.part(.parked, EarlierWait(untilMs: untilMs).text)
            command.end()
            command.arg(word: "NX")
            command.arg(word: "EX")
            command.arg(StateKeys.markSecondsMin)
        }
    }

    func noteParked(
        app: String, conversation: String, _ note: ParkedNote, id: String, tag: UInt64
    ) throws(RedisFault) {
        try change(tag, ParkingScripts.noteParkedConversation, keyCount: 1) { command in
            command.key("c:y", app, conversation)
            command.part(note)
            command.end()
            command.arg(id)
            command.arg(Self.conversationSeconds)
        }
    }

    /// The note of a conversation: a text (`StateStore.parkedNote`), or null.
    func readParked(app: String, conversation: String, tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "GET")
            command.key("c:y", app, conversation)
        }
    }

    /// - Returns: the note that `readParked` found; nil if nothing is parked.
    static func parkedNote(_ reply: borrowing RedisReply) -> ParkedNote? {
        reply.isNull ? nil : ParkedNote(reply.bytes)
    }

    func forgetParked(app: String, conversation: String, id: String, tag: UInt64) throws(RedisFault) {
        try change(tag, ParkingScripts.forgetParkedConversation, keyCount: 1) { command in
            command.key("c:y", app, conversation)
            command.arg(id)
        }
    }
}

extension ParkedNote {
    /// - Returns: nil for any other text.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var text = CompactText(bytes)
        guard let first = text.number() else { return nil }
        // Without the other times nobody knows how long the record was to wait: it is looked at now.
        guard first == Self.version else {
            self.init(dueMs: 0, writtenMs: 0, untilMs: .max)
            return
        }
        guard let due = text.number(), let written = text.number(), let until = text.number() else { return nil }
        self.init(dueMs: due, writtenMs: written, untilMs: until)
    }

    fileprivate static var version: Int64 { 2 }
}

extension RedisCommand {
    fileprivate mutating func part(_ note: ParkedNote) {
        part(ParkedNote.version)
        for ms in [note.dueMs, note.writtenMs, note.untilMs] {
            part(byte: UInt8(ascii: " "))
            part(StateKeys.time(ms))
        }
    }
}

/// The scripts of notes about parked events.
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

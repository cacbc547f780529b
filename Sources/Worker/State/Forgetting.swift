// SPDX-License-Identifier: Apache-2.0
import EventLoop
import PushCore
import Redis

/// The steps of `forget` (contract section 14, "Users"): it looks what is stored of the user, removes what is under other keys, and
/// then the user's own keys. Whatever is newer than the record stays.
///
/// A note of the time remains for a month (field `f` of both hashes): a change that was made before and comes later, or is read
/// again, stores nothing.
struct Forgetting: Sendable {
    /// The user, and the record's time.
    struct User: Sendable {
        var app: String
        var uid: String
        var atMs: Int64
        var nowMs: Int64
    }

    private enum Step: Sendable {
        case look
        /// The rest of what is under other keys.
        case elsewhere([Item])
        case clear
    }

    private enum Item: Sendable {
        case token(String, version: String)
        case activity(String)
        /// The end of a mark's key: kind and id.
        case mark(String)
        case digest

        init?(_ text: String) {
            switch text.utf8.first {
            case UInt8(ascii: "t"):
                let words = text.dropFirst().split(separator: " ")
                guard words.count == 2 else { return nil }
                self = .token(String(words[0]), version: String(words[1]))
            case UInt8(ascii: "a"): self = .activity(String(text.dropFirst()))
            case UInt8(ascii: "m"): self = .mark(String(text.dropFirst()))
            default: return nil
            }
        }
    }

    private var step = Step.look
    /// `<token> <version>` of those with owners that are removed.
    private var told: [String] = []
    /// How many keys one step removes: it takes Redis no longer than some reads.
    private static let atOnce = 100

    /// Number of commands of the present step, with one reply each.
    var commandCount: Int {
        switch step {
        case .look, .clear: 1
        case .elsewhere(let items): min(items.count, Self.atOnce)
        }
    }

    /// - Parameter place: which of the commands.
    func send(_ place: Int, _ user: User, _ store: StateStore, _ tag: UInt64) throws(RedisFault) {
        switch step {
        case .look: try store.forgetUser(user, told: nil, tag: tag)
        case .clear: try store.forgetUser(user, told: told, tag: tag)
        case .elsewhere(let items):
            switch items[place] {
            case .token(let token, let version):
                try store.forgetOwner(app: user.app, uid: user.uid, token: token, version: version, tag: tag)
            case .activity(let id): try store.unlistActivityUser(app: user.app, uid: user.uid, activityID: id, tag: tag)
            case .mark(let name): try store.removeMark(app: user.app, uid: user.uid, name: name, tag: tag)
            case .digest: try store.dropDue(DueUser(app: user.app, uid: user.uid), tag: tag)
            }
        }
    }

    /// The last reply of the step.
    mutating func move(_ answer: StepAnswer) -> UserStateTask.Progress {
        switch step {
        case .elsewhere(let items):
            let left = Array(items.dropFirst(Self.atOnce))
            step = left.isEmpty ? .clear : .elsewhere(left)
            return .next
        case .look where answer.code == 1:
            step = .elsewhere(answer.texts.compactMap { Item($0) } + [.digest])
            note(answer)
            return .next
        // More tokens, which were bound meanwhile.
        case .clear where !answer.texts.isEmpty:
            step = .elsewhere(answer.texts.compactMap { Item($0) })
            note(answer)
            return .next
        case .look, .clear:
            switch answer.code {
            case 0: return .done(.ignored(.stale))
            case 1: return .done(.applied(.none))
            case 2: return .done(.repeated)
            default: return .done(.ignored(.unusable))
            }
        }
    }

    private mutating func note(_ answer: StepAnswer) {
        for text in answer.texts where text.utf8.first == UInt8(ascii: "t") { told.append(String(text.dropFirst())) }
    }
}

extension StateStore {
    /// - Parameter told: tokens with owners that are removed; nil: only looks.
    fileprivate func forgetUser(_ user: Forgetting.User, told: [String]?, tag: UInt64) throws(RedisFault) {
        try change(tag, ForgetScripts.forgetUser, keyCount: 12) { command in
            let names: [StaticString] = [
                "c:u", "c:s", "c:l", "c:x", "c:k", "c:a", "c:g", "c:h", "c:p", "c:r", "c:b", "c:f",
            ]
            for name in names {
                command.key(name, user.app, user.uid)
            }
            command.arg(StateKeys.time(user.atMs))
            command.arg(StateKeys.time(user.nowMs))
            command.arg(word: told == nil ? "l" : "c")
            for token in told ?? [] { command.arg(token) }
        }
    }

    fileprivate func forgetOwner(
        app: String, uid: String, token: String, version: String, tag: UInt64
    ) throws(RedisFault) {
        try change(tag, ForgetScripts.forgetOwner, keyCount: 2) { command in
            command.key("c:o", app, token)
            command.key("c:n", app, token)
            command.arg(version)
            command.arg(uid)
        }
    }

    fileprivate func unlistActivityUser(
        app: String, uid: String, activityID: String, tag: UInt64
    ) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "ZREM")
            command.key("c:v", app, activityID)
            command.arg(uid)
        }
    }

    /// - Parameter name: kind and id.
    func removeMark(app: String, uid: String, name: String, tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "DEL")
            command.key("c:d", app, uid, nil, suffix: name)
        }
    }

    /// A member's mark in the common key of a group message.
    func removeGroupMark(app: String, uid: String, id: String, tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "HDEL")
            command.key("c:e", app, id)
            command.arg(uid)
        }
    }
}

enum ForgetScripts {
    /// KEYS owner, early unbinds. ARGV 1 version; 2 uid. Answer: 1 removed, 0 it is not the owner by this bind (any more).
    static let forgetOwner = RedisScript(
        """
        #!lua
        local v, len, at = string.match(redis.call('GET', KEYS[1]) or '', '^1 (%d+) %a (%d+) ()')
        if v ~= ARGV[1] or string.sub(redis.call('GET', KEYS[1]), at, at + len - 1) ~= ARGV[2] then return 0 end
        return redis.call('DEL', KEYS[1], KEYS[2]) > 0 and 1 or 0
        """)

    /// KEYS user, state, ledger, gone, acknowledgements, activities, held, digest's set, opened, arrived, pushed devices, hours. ARGV 1
    /// the record's time; 2 now; 3 `l` looks only, `c` clears; then `<token> <version>` of the tokens with owners that are
    /// removed.
    ///
    /// Answer: `{0}` forgotten later; `{1, what is under other keys…}` when looking, and when clearing if tokens are among it,
    /// without a change: `t<token> <version>`, `a<activity>`, `m<kind and id of a mark>`; when clearing else `{1}`, or `{2}`
    /// done before.
    static let forgetUser = RedisScript(
        """
        #!lua
        \(ScriptParts.inHundreds)
        \(ScriptParts.countPast)
        local at, latest = tonumber(ARGV[1]), tonumber(ARGV[2]) + \(ScriptParts.skewMs)
        local function isOld(text)
          local ms = tonumber(text)
          return not ms or ms <= at or ms > latest
        end
        local before = tonumber(redis.call('HGET', KEYS[1], 'f'))
        if before and before > at and before <= latest then return {0} end
        local clears, told, found, old, left = ARGV[3] == 'c', {}, {1}, {}, 0
        for i = 4, #ARGV do told[ARGV[i]] = true end
        local all = redis.call('HGETALL', KEYS[1])
        for i = 1, #all, 2 do
          local field = all[i]
          if string.sub(field, 1, 1) == 't' then
            local v, b, t = string.match(all[i + 1], '^1 (%d+) (%d+) (%x+) ')
            if isOld(b) then
              old[#old + 1] = field
              if t and not told[t .. ' ' .. v] then found[#found + 1] = 't' .. t .. ' ' .. v end
            else
              left = left + 1
            end
          elseif field ~= 'f' and isOld(string.match(all[i + 1], '^%d+ ') ) then
            old[#old + 1] = field
          end
        end
        if clears and #found > 1 then return found end
        local function members(key)
          local kept = {}
          for _, m in ipairs(redis.call('ZRANGE', key, 0, -1)) do
            local sent, body = string.match(m, '^(%d+) %d* (.*)$', 9)
            if isOld(sent) then
              kept[#kept + 1] = m
              if body and not clears then found[#found + 1] = 'm' .. body end
            end
          end
          return kept
        end
        local ledger, gone, begun = members(KEYS[3]), members(KEYS[4]), redis.call('HGETALL', KEYS[6])
        if not clears then
          for i = 1, #begun, 2 do found[#found + 1] = 'a' .. begun[i] end
          local acks = redis.call('HGETALL', KEYS[5])
          for i = 1, #acks, 2 do
            found[#found + 1] = 'mm' .. acks[i]
            found[#found + 1] = 'mr' .. acks[i]
          end
          for place = 7, 8 do
            for _, m in ipairs(redis.call('SMEMBERS', KEYS[place])) do
              local body = string.match(m, '^%d+ %d* (.*)$', 9)
              if body then found[#found + 1] = 'm' .. body end
            end
          end
          return found
        end
        local function drop(name, key, list)
          inHundreds(list, function(...) redis.call(name, key, ...) end)
        end
        drop('HDEL', KEYS[1], old)
        drop('ZREM', KEYS[3], ledger)
        drop('ZREM', KEYS[4], gone)
        local over, fields, state = {}, {}, redis.call('HGETALL', KEYS[2])
        for i = 1, #begun, 2 do
          if isOld(string.match(begun[i + 1], '^%d+')) then over[#over + 1] = begun[i] end
        end
        drop('HDEL', KEYS[6], over)
        for i = 1, #state, 2 do
          local letter, value = string.sub(state[i], 1, 1), state[i + 1]
          local isKept = state[i] == 'v' or state[i] == 'f'
          if letter == 'm' or letter == 'r' then
            -- The newest time comes last.
            isKept = not isOld(string.match(string.sub(value, -16), '(%d+)$'))
          elseif state[i] == 'b' then
            local base, reported, taken = string.match(value, '^(%d+) (%d+) (%d+)')
            isKept = not isOld(base)
            if isKept then
              redis.call('HSET', KEYS[2], 'b',
                string.format('%d %d %d %d', base, reported, taken, countPast(KEYS[3], tonumber(base))))
            end
          end
          if not isKept then fields[#fields + 1] = state[i] end
        end
        drop('HDEL', KEYS[2], fields)
        redis.call('DEL', KEYS[5], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12])
        redis.call('HSET', KEYS[1], 'f', ARGV[1])
        redis.call('HSET', KEYS[2], 'f', ARGV[1])
        redis.call('HINCRBY', KEYS[2], 'v', 1)
        if left == 0 then
          redis.call('EXPIRE', KEYS[1], \(StateKeys.markSecondsMax))
          redis.call('EXPIRE', KEYS[2], \(StateKeys.markSecondsMax))
        end
        return {before == at and 2 or 1}
        """)
}

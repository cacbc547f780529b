// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// The notes of all workers, in one hash: each page of an operator shows them.
extension StateStore {
    /// The note of one worker.
    struct FleetEntry: Equatable, Sendable {
        /// The worker's mark (`ProcessShared.mark`).
        var id: String
        /// JSON that only the operator's page reads.
        var note: [UInt8]
        /// When it was written, by the server's clock, Unix ms.
        var atMs: Int64
    }

    static let fleetMax = 500

    /// Writes this worker's note, or removes it where it is nil: the worker ends. The reply is for `fleet(_:)`: all notes
    /// where `readsAll`, else none.
    ///
    /// - Parameter sweeps: notes without a sign for minutes are removed.
    func tellFleet(
        _ id: String, _ note: [UInt8]?, readsAll: Bool, sweeps: Bool, nowMs: Int64, tag: UInt64
    ) throws(RedisFault) {
        try change(tag, HeartbeatScripts.fleet, keyCount: 1) { command in
            command.arg(word: "c:w:{fleet}")
            command.arg(id)
            command.arg(note.map { String(decoding: $0, as: UTF8.self) } ?? "")
            command.arg(StateKeys.time(nowMs))
            command.arg(word: readsAll ? "1" : "")
            command.arg(word: sweeps ? "1" : "")
        }
    }

    /// The notes of the reply of `tellFleet`; at most `fleetMax`.
    static func fleet(_ reply: borrowing RedisReply) -> [FleetEntry] {
        var notes: [String: [UInt8]] = [:]
        var times: [String: Int64] = [:]
        reply.forEachPair { field, value in
            guard let name = field.string, let first = name.first else { return }
            let id = String(name.dropFirst())
            switch first {
            case "w" where notes.count < fleetMax: notes[id] = Array(value.bytes.prefix(2_048))
            case "t": times[id] = value.int64
            default: break
            }
        }
        return notes.sorted { $0.key < $1.key }.compactMap { id, note in
            times[id].map { FleetEntry(id: id, note: note, atMs: $0) }
        }
    }
}

extension HeartbeatScripts {
    /// KEYS fleet. ARGV 1 the worker's id; 2 its note, empty: it ends; 3 the caller's time in ms, where the user may not ask for the
    /// server's; 4 `1`: all are read; 5 `1`: notes of ten minutes ago are removed. Fields: `w`+id the note, `t`+id its time.
    ///
    /// Answer: as HGETALL gives it, or nothing.
    static let fleet = RedisScript(
        """
        local clock, now = redis.pcall('TIME'), tonumber(ARGV[3])
        if clock[1] then now = clock[1] * 1000 + math.floor(clock[2] / 1000) end
        if ARGV[2] == '' then
            redis.call('HDEL', KEYS[1], 'w' .. ARGV[1], 't' .. ARGV[1])
        else
            redis.call('HSET', KEYS[1], 'w' .. ARGV[1], ARGV[2], 't' .. ARGV[1], now)
            redis.call('EXPIRE', KEYS[1], 86400)
        end
        if ARGV[5] == '1' then
            local all = redis.call('HGETALL', KEYS[1])
            for i = 1, #all, 2 do
                if string.sub(all[i], 1, 1) == 't' and now - tonumber(all[i + 1]) > 600000 then
                    redis.call('HDEL', KEYS[1], all[i], 'w' .. string.sub(all[i], 2))
                end
            end
        end
        if ARGV[4] == '1' then return redis.call('HGETALL', KEYS[1]) end
        return {}
        """)
}

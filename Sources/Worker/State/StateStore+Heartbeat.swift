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

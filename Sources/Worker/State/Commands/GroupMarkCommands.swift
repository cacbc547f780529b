// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// The marks of a group message's finished members in one key, except on a cluster: a hash from each uid to the content
/// of the member's own mark. The empty name, which no member has, contains which try of the event came first: that try
/// need not read members' own marks.
extension StateStore {
    /// Notes that a try of the event has begun. The first note wins. Two replies with the same tag.
    func beginGroupMarks(app: String, _ subject: ClaimSubject, note: Int64, seconds: Int64, tag: UInt64)
        throws(RedisFault)
    {
        try change(tag, order: .fixed) { command in
            command.arg(word: "HSETNX")
            command.key("c:e", app, subject.id)
            command.arg(word: "")
            command.arg(note)
        }
        try keepGroupMarks(app: app, id: subject.id, seconds: seconds, tag: tag)
    }

    /// A revoke came: a later try of its target must read members' own marks. Two replies with the same tag.
    func noteRevoked(app: String, target: String, seconds: Int64, tag: UInt64) throws(RedisFault) {
        try change(tag, order: .fixed) { command in
            command.arg(word: "HSET")
            command.key("c:e", app, target)
            command.arg(word: "")
            command.arg(word: "r")
        }
        try keepGroupMarks(app: app, id: target, seconds: seconds, tag: tag)
    }

    private func keepGroupMarks(app: String, id: String, seconds: Int64, tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "EXPIRE")
            command.key("c:e", app, id)
            command.arg(seconds)
        }
    }

    /// The note and the marks of these members, null for none: an array, the note first.
    func readGroupMarks(
        app: String, _ subject: ClaimSubject, uids: some Collection<String>, tag: UInt64
    ) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HMGET")
            command.key("c:e", app, subject.id)
            command.arg(word: "")
            for uid in uids { command.arg(uid) }
        }
    }

    /// One member's mark in the common key (`PairMark`).
    func readGroupMarks(app: String, uid: String, id: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HGET")
            command.key("c:e", app, id)
            command.arg(uid)
        }
    }

    /// How many fields the members' common key has: an integer for `hasGroupMarks`.
    func countGroupMarks(app: String, id: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HLEN")
            command.key("c:e", app, id)
        }
    }

    /// - Returns: true if a member has a mark besides the note, which a revoke may have left.
    static func hasGroupMarks(_ reply: borrowing RedisReply) -> Bool { reply.int64 ?? 0 > 1 }

    /// A member's part of `writeGroupMarks`.
    func memberMark(uid: String, _ content: (inout RedisCommand) -> Void) -> PreparedCommand {
        client.prepare { command in
            command.arg(uid)
            command.part(byte: UInt8(ascii: "f"))
            content(&command)
            command.end()
        }
    }

    /// Marks these members finished: an integer, and with the same tag another for the lifetime of the key.
    func writeGroupMarks(
        app: String, _ subject: ClaimSubject, _ marks: [PreparedCommand], seconds: Int64, tag: UInt64
    ) throws(RedisFault) {
        try client.command(tag, finishes, order: .fixed) { command in
            command.arg(word: "HSET")
            command.key("c:e", app, subject.id)
            for mark in marks { mark.append(to: &command) }
        }
        try client.command(Tag.noteBits, finishes) { command in
            command.arg(word: "EXPIRE")
            command.key("c:e", app, subject.id)
            command.arg(seconds)
        }
    }

    /// A page of the common mark keys of an app: `{cursor, keys}`.
    func scanGroupMarks(app: String, uid: String, cursor: UInt64, count: Int, tag: UInt64) throws(RedisFault) {
        try client.command(tag, toNodeOf: StateKeys.tag(app, uid)) { command in
            command.arg(word: "SCAN")
            command.arg(String(cursor))
            command.arg(word: "MATCH")
            command.part(word: "c:e:{*")
            command.part(Self.literal(app))
            command.part(word: ":*}")
            command.end()
            command.arg(word: "COUNT")
            command.arg(count)
        }
    }

    /// The message id of a common mark key.
    static func messageID(ofKey key: UnsafeRawBufferPointer, app: String) -> String? {
        let head = Array("c:e:{".utf8)
        guard key.starts(with: head), key.count > head.count, key.last == UInt8(ascii: "}") else { return nil }
        return StateKeys.id(
            inTag: UnsafeRawBufferPointer(rebasing: key[head.count..<(key.count - 1)]), app: app, atMost: InputLimit.id)
    }
}

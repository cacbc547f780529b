// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// The commands of a `PlainClaim`, and of its completion.
extension StateStore {
    /// Adds the message of an ordinary recipient: 1, or 0 if it existed.
    func addToLedger(_ request: ClaimRequest, tag: UInt64) throws(RedisFault) {
        // The second read must not run before it.
        try client.command(tag, claims, order: .fixed) { command in
            command.arg(word: "ZADD")
            command.key("c:l", request.app, request.uid)
            command.arg(word: "0")
            command.ledgerMember(request.subject, digest: StateKeys.digest(request.subject.conversation))
        }
    }

    /// Reads the mark of an uncounted message again; the reply is that of `readMark`.
    ///
    /// - Parameter inGroup: it is in the members' common key.
    func readMarkAgain(_ request: ClaimRequest, inGroup: Bool, tag: UInt64) throws(RedisFault) {
        let subject = request.subject
        if inGroup { return try readGroupMarks(app: request.app, uid: request.uid, id: subject.id, tag: tag) }
        try readMark(app: request.app, uid: request.uid, kind: subject.kind, id: subject.id, tag: tag)
    }

    /// The size of the ledger: an integer.
    func ledgerSize(_ request: ClaimRequest, tag: UInt64) throws(RedisFault) {
        try client.command(tag, claims) { command in
            command.arg(word: "ZCARD")
            command.key("c:l", request.app, request.uid)
        }
    }

    /// A string if an earlier try counted the message and it is unread; else null.
    func ledgerEntry(_ request: ClaimRequest, tag: UInt64) throws(RedisFault) {
        try client.command(tag, claims) { command in
            command.arg(word: "ZSCORE")
            command.key("c:l", request.app, request.uid)
            command.ledgerMember(request.subject, digest: StateKeys.digest(request.subject.conversation))
        }
    }

    /// The second read of a `PlainClaim` after its entry: version, base, read mark of the conversation, the ledger's
    /// age, revokes.
    func lookBehindClaim(_ request: ClaimRequest, tag: UInt64) throws(RedisFault) {
        try client.command(tag, claims) { command in
            command.arg(word: "HMGET")
            command.key("c:s", request.app, request.uid)
            command.arg(word: "v")
            command.arg(word: "b")
            command.field("r", request.subject.conversation)
            command.arg(word: "e")
            command.arg(word: "k")
        }
    }

    /// Renews the ledger's lifetime.
    ///
    /// - Parameter hadToken: the user had a token at some time; else the state has a lifetime too.
    func renewLedger(_ request: ClaimRequest, epoch: Int64?, hadToken: Bool, tag: UInt64) throws(RedisFault) {
        try client.command(tag, claims) { command in
            command.arg(word: "EXPIRE")
            command.key("c:l", request.app, request.uid)
            command.arg(StateKeys.ledgerSeconds)
        }
        guard let epoch else { return }
        try client.command(tag, claims) { command in
            command.arg(word: "HSET")
            command.key("c:s", request.app, request.uid)
            command.arg(word: "e")
            command.arg(epoch)
        }
        if hadToken { return }
        try client.command(tag, claims) { command in
            command.arg(word: "EXPIRE")
            command.key("c:s", request.app, request.uid)
            command.arg(StateKeys.leftSeconds)
        }
    }

    /// Gives a plainly claimed pair the mark that the script would have given it, for work that takes longer than a
    /// push. An existing mark remains.
    func markClaimed(_ request: ClaimRequest, tag: UInt64) throws(RedisFault) {
        try client.command(tag, finishes) { command in
            command.arg(word: "SET")
            command.key("c:d", request.app, request.uid, request.subject.kind, suffix: request.subject.id)
            command.arg(request.counted ? "c" : "o")
            command.arg(word: "NX")
            command.arg(word: "EX")
            command.arg(StateKeys.markSeconds(expireAtMs: request.subject.expireAtMs, nowMs: request.nowMs))
        }
    }

    /// The whole ledger, for `holds`: for commands.
    func readLedger(app: String, uid: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "ZRANGE")
            command.key("c:l", app, uid)
            command.arg(0)
            command.arg(-1)
        }
    }

    /// - Returns: whether the reply of `readLedger` has this message, sent at this time or later.
    static func holds(_ reply: borrowing RedisReply, message: String, sentSince: Int64) -> Bool {
        var isThere = false
        reply.forEach { member in
            // After the conversation's digest: time, sequence or nothing, kind and id.
            guard member.bytes.count > 8 else { return }
            var text = CompactText(UnsafeRawBufferPointer(rebasing: member.bytes.dropFirst(8)))
            guard let sentMs = text.number(), sentMs >= sentSince else { return }
            _ = text.number()
            guard text.skip(PairKind.message.letter) else { return }
            if text.skip(Int64(message.utf8.count), ifTheyAre: message), text.isEmpty { isThere = true }
        }
        return isThere
    }
}

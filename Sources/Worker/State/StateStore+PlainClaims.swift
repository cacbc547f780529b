import PushCore
import Redis

/// The commands of a `PlainClaim`, and what follows it.
extension StateStore {
    /// Adds the message of one who is read with nothing special about him: 1, or 0 where it was there.
    func addToLedger(_ request: ClaimRequest, tag: UInt64) throws(RedisFault) {
        // What is looked at behind it must not have been looked at before it.
        try client.command(tag, claims, order: .fixed) { command in
            command.arg(word: "ZADD")
            command.key("c:l", request.app, request.uid)
            command.arg(word: "0")
            command.ledgerMember(request.subject, digest: StateKeys.digest(request.subject.conversation))
        }
    }

    /// The mark of what does not count, once more: as `readMark` answers.
    ///
    /// - Parameter together: it lies with those of the other members (`redis.group_marks`).
    func readMarkAgain(_ request: ClaimRequest, together: Bool, tag: UInt64) throws(RedisFault) {
        let subject = request.subject
        if together { return try readTogether(app: request.app, uid: request.uid, id: subject.id, tag: tag) }
        try readMark(app: request.app, uid: request.uid, kind: subject.kind, id: subject.id, tag: tag)
    }

    /// How many the ledger holds: an integer.
    func ledgerSize(_ request: ClaimRequest, tag: UInt64) throws(RedisFault) {
        try client.command(tag, claims) { command in
            command.arg(word: "ZCARD")
            command.key("c:l", request.app, request.uid)
        }
    }

    /// What a `PlainClaim` looks at behind its entry: version, base, read mark of the conversation, the ledger's age, recalls.
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

    /// The ledger lives on from now.
    func renewLedger(_ request: ClaimRequest, epoch: Int64?, tag: UInt64) throws(RedisFault) {
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
    }

    /// Gives a plainly claimed pair the mark that the script would have given it: for what takes longer than a push. One
    /// that has a mark keeps it.
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

    /// All that the ledger holds, for `holds`: for commands.
    func readLedger(app: String, uid: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "ZRANGE")
            command.key("c:l", app, uid)
            command.arg(0)
            command.arg(-1)
        }
    }

    /// Whether the reply of `readLedger` has a message that was sent since then.
    static func holds(_ reply: borrowing RedisReply, message: String, sentSince: Int64) -> Bool {
        var isThere = false
        reply.forEach { member in
            // Behind the conversation's digest: time, sequence or nothing, kind and id.
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

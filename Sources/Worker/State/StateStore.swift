// SPDX-License-Identifier: Apache-2.0
public import PushCore
public import Redis

/// Carillon's user state in Redis, and the keys of others that it reads (contract section 4).
///
/// Bound to the loop of its client. Each function writes commands and returns. The replies come to the client's
/// delegate under the caller's tags, for the type that the function names. Nothing is kept per recipient. A function
/// that sends several commands may throw after some of them: replies to the tags already used must then be ignored.
public final class StateStore {
    public let client: RedisServers
    let reads: RedisOperation
    let ownerReads: RedisOperation
    let claims: RedisOperation
    let finishes: RedisOperation
    private let changes: RedisOperation

    public init(_ client: RedisServers) {
        self.client = client
        reads = client.operation("read")
        ownerReads = client.operation("owner")
        claims = client.operation("claim")
        finishes = client.operation("finish")
        changes = client.operation("change")
    }

    // MARK: Originals of revokes

    /// Stores the note about a message, for its revoke.
    ///
    /// - Parameter isFirst: whether an earlier note stays.
    func keepOriginal(
        app: String, msgID: String, _ original: KeptOriginal, expireAtMs: Int64, nowMs: Int64, isFirst: Bool = false,
        tag: UInt64
    ) throws(RedisFault) {
        let seconds = StateKeys.markSeconds(expireAtMs: expireAtMs, nowMs: nowMs)
        try client.command(tag, changes) { command in
            command.arg(word: "SET")
            command.key("c:i", app, msgID)
            command.part(original)
            command.end()
            command.arg(word: "EX")
            command.arg(Int(seconds))
            if isFirst { command.arg(word: "NX") }
        }
    }

    /// The stored value: a text for `KeptOriginal`, or null.
    func readOriginal(app: String, msgID: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "GET")
            command.key("c:i", app, msgID)
        }
    }

    // MARK: Acting on a pair

    /// Claims a (user, message, kind) together with the badge's step (`ClaimReply`): one script.
    ///
    /// Send it just before each push, retries included: it is also the last check of contract step 15, and gives the
    /// badge at that moment. A repeated claim never counts again.
    public func claim(_ request: ClaimRequest, tag: UInt64) throws(RedisFault) {
        let subject = request.subject
        try client.evaluate(tag, claims, ClaimScripts.claim, keyCount: subject.claimKeyCount) { command in
            command.claimKeys(subject, app: request.app, uid: request.uid)
            command.claimArguments(
                subject, counted: request.counted, wasAdded: request.wasAdded, withoutDevice: request.withoutDevice,
                nowMs: request.nowMs)
        }
    }

    /// Claims one message for several users in one call: an array of `claim` replies, in order.
    ///
    /// Not all or nothing: a key of the wrong type fails the call after some were claimed. Then claim each one alone,
    /// which counts nothing twice. The same if the server requires all keys of a call in one slot (CROSSSLOT). Not for
    /// a cluster.
    func claim(
        _ subject: ClaimSubject, app: String, uids: some Collection<String>, counted: Bool,
        withoutDevice: WithoutDevice? = nil, nowMs: Int64, tag: UInt64
    ) throws(RedisFault) {
        try client.evaluate(
            tag, claims, ClaimScripts.claimEach, keyCount: subject.claimKeyCount * uids.count
        ) { command in
            for uid in uids { command.claimKeys(subject, app: app, uid: uid) }
            command.claimArguments(subject, counted: counted, withoutDevice: withoutDevice, nowMs: nowMs)
        }
    }

    /// The result of a claim (`ClaimReply`) without changes and without a badge, for a server that accepts no writes.
    public func peek(_ request: ClaimRequest, tag: UInt64) throws(RedisFault) {
        let subject = request.subject
        try client.evaluate(tag, reads, ClaimScripts.peek, keyCount: 2) { command in
            command.key("c:d", request.app, request.uid, subject.kind, suffix: subject.id)
            command.key("c:s", request.app, request.uid)
            command.field("r", subject.conversation)
            command.arg(StateKeys.time(subject.sentMs))
            command.optional(subject.comparableSeq)
        }
    }

    /// The result of a claim (`ClaimReply`) with the badge and without changes, for commands.
    func claimDryRun(_ request: ClaimRequest, tag: UInt64) throws(RedisFault) {
        let subject = request.subject
        try client.evaluate(tag, reads, DryRunScripts.claimDryRun, keyCount: subject.claimKeyCount) { command in
            command.claimKeys(subject, app: request.app, uid: request.uid)
            command.claimArguments(
                subject, counted: request.counted, withoutDevice: request.withoutDevice, nowMs: request.nowMs)
        }
    }

    /// The command that marks the pair as ended. A redelivery then writes nothing.
    ///
    /// - Parameters:
    ///   - seconds: the mark lives at least so long.
    ///   - content: writes the mark's bytes behind its state (`PairMark`).
    func preparedMark(
        app: String, uid: String, _ subject: ClaimSubject, nowMs: Int64, seconds: Int64 = 0,
        _ content: (inout RedisCommand) -> Void = { _ in }
    ) -> PreparedCommand {
        let seconds = max(seconds, StateKeys.markSeconds(expireAtMs: subject.expireAtMs, nowMs: nowMs))
        return client.prepare { command in
            command.arg(word: "SET")
            command.key("c:d", app, uid, subject.kind, suffix: subject.id)
            command.part(byte: UInt8(ascii: "f"))
            content(&command)
            command.end()
            command.arg(word: "EX")
            command.arg(seconds)
        }
    }

    /// Sends a `preparedMark`. One command; the reply is `OK`.
    func writeMark(_ mark: PreparedCommand, tag: UInt64) throws(RedisFault) { try client.command(tag, finishes, mark) }

    /// Adds a note to the mark of a pair that has not ended: a redelivery resumes with the rest. The reply is an integer.
    ///
    /// A second command with the same tag renews the mark's lifetime: **two replies**. For the last or only device
    /// `finish` is enough.
    ///
    /// - Parameter notes: adds them to the present argument.
    func note(
        app: String, uid: String, _ subject: ClaimSubject, nowMs: Int64, tag: UInt64,
        _ notes: (inout RedisCommand) -> Void
    ) throws(RedisFault) {
        let seconds = StateKeys.markSeconds(expireAtMs: subject.expireAtMs, nowMs: nowMs)
        try client.command(tag, finishes) { command in
            command.arg(word: "APPEND")
            command.key("c:d", app, uid, subject.kind, suffix: subject.id)
            notes(&command)
            command.end()
        }
        try client.command(tag, finishes) { command in
            command.arg(word: "EXPIRE")
            command.key("c:d", app, uid, subject.kind, suffix: subject.id)
            command.arg(seconds)
        }
    }

    /// Takes a token that APNs refused from its owner. The reply is 1, or 0: it was bound again, or is another user's. Then
    /// `removeToken`.
    func retireDead(app: String, uid: String, token: BoundToken, tag: UInt64) throws(RedisFault) {
        try retireOwner(
            app: app, uid: uid, token: token.record.hex, version: token.version,
            .dead(boundMs: token.record.boundMs), tag: tag)
    }

    /// Removes a token that APNs refused, if the same token with the same `bound_ms` is still stored. The reply is the number
    /// removed.
    public func removeToken(
        app: String, uid: String, token: BoundToken, nowMs: Int64, tag: UInt64
    ) throws(RedisFault) {
        try dropToken(
            app: app, uid: uid, token: token.record.hex, upTo: token.version, boundMs: token.record.boundMs,
            nowMs: nowMs, tag: tag)
    }

    // MARK: Lowered badges (`clear_on_read`)

    /// Stores the devices that must get a lower badge. The reply is an integer.
    public func notePushed(app: String, uid: String, devices: [String], tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "SADD")
            command.key("c:b", app, uid)
            for device in devices { command.arg(device) }
        }
    }

    /// Removes devices that left the user. The reply is an integer.
    public func forgetPushed(app: String, uid: String, devices: [String], tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "SREM")
            command.key("c:b", app, uid)
            for device in devices { command.arg(device) }
        }
    }

    /// The lower badge was sent: a repeated read does not send it again. The reply is an integer.
    public func loweredBadgeSent(app: String, uid: String, tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "HDEL")
            command.key("c:s", app, uid)
            command.arg(word: "w")
        }
    }

    // MARK: Used by the changes of user state

    func change(
        _ tag: UInt64, order: RedisOrder = .free, _ build: (inout RedisCommand) -> Void
    ) throws(RedisFault) {
        try client.command(tag, changes, order: order, build)
    }

    /// Number of keys of each server.
    func countKeys(tag: UInt64) throws(RedisFault) { try client.keyCount(tag, changes) }

    func change(
        _ tag: UInt64, _ script: RedisScript, keyCount: Int, _ build: (inout RedisCommand) -> Void
    ) throws(RedisFault) {
        try client.evaluate(tag, changes, script, keyCount: keyCount, build)
    }

    func dropToken(
        app: String, uid: String, token: String, upTo version: Int64, boundMs: Int64? = nil, nowMs: Int64,
        switched: UserStateTask.Switch? = nil, repeated field: String = "", tag: UInt64
    ) throws(RedisFault) {
        try change(tag, OwnerScripts.dropToken, keyCount: 3) { command in
            command.key("c:u", app, uid)
            command.key("c:s", app, uid)
            command.key("c:b", app, uid)
            command.arg(token)
            command.arg(StateKeys.version(version))
            command.optional(boundMs.map(StateKeys.time))
            command.arg(StateKeys.time(nowMs))
            command.optional(switched.map { StateKeys.time($0.atMs) })
            command.arg(switched?.device ?? "")
            command.arg(field)
            for ended in switched?.ended ?? [] { command.arg("\(ended.token) \(StateKeys.version(ended.version))") }
        }
    }

    /// How a token stops being its owner's.
    enum Retirement {
        /// Its device has another one.
        case replaced
        /// APNs refused it, as it was bound at that time.
        case dead(boundMs: Int64)
        /// An account switch at that time.
        case switched(atMs: Int64)
    }

    /// The reply is 1, or 0 if the user does not own the token by that bind any more.
    func retireOwner(
        app: String, uid: String, token: String, version: Int64, _ why: Retirement, tag: UInt64
    ) throws(RedisFault) {
        try change(tag, OwnerScripts.retireOwner, keyCount: 1) { command in
            command.key("c:o", app, token)
            command.arg(StateKeys.version(version))
            command.arg(uid)
            switch why {
            case .replaced:
                command.arg(word: "u")
                command.arg("")
            case .dead(let boundMs):
                command.arg(word: "d")
                command.arg(StateKeys.time(boundMs))
            case .switched(let atMs):
                command.arg(word: "s")
                command.arg(StateKeys.time(atMs))
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// A token that was removed because of APNs' answer, kept for seven days so that an operator can restore it.
///
/// It is in one of `c:z:{app:z<n>}`, by the time of its removal: `<cause><uid><field><record>`, the first three with
/// their lengths. Field and record are those of the user's hash (`TokenText`).
struct Tombstone: Sendable, Equatable {
    /// `RemovalBrake.Cause.label`.
    var cause: String
    var uid: String
    var field: String
    var record: String

    /// Longer than any field of a bind.
    private static let fieldMax = 1024
    private static let recordMax = 4096
    static let keptMs: Int64 = 7 * 86_400_000
    /// Number of sets per app, so that no slot of a cluster has them all.
    static let buckets = 16

    init(_ cause: RemovalBrake.Cause, uid: String, token: BoundToken) {
        self.cause = cause.label
        self.uid = uid
        field = TokenText.field(device: token.device, token.record)
        record = TokenText.record(token)
    }

    /// - Returns: nil for another version.
    init?(member: UnsafeRawBufferPointer) {
        var text = CompactText(member)
        guard let cause = text.string(), let uid = text.string(atMost: InputLimit.user),
            let field = text.string(atMost: Self.fieldMax), let record = text.text(until: 0, atMost: Self.recordMax)
        else { return nil }
        self.cause = cause
        self.uid = uid
        self.field = field
        self.record = record
    }

    var member: String {
        var text = ""
        for part in [cause, uid, field] { CompactText.append(part, to: &text) }
        return text + record
    }

    /// Its token; nil for an unreadable record.
    var token: BoundToken? {
        var field = field
        var record = record
        return field.withUTF8 { field in
            record.withUTF8 { record in
                TokenText.token(field: UnsafeRawBufferPointer(field), record: UnsafeRawBufferPointer(record))
            }
        }
    }

    static func bucket(app: String, token: String) -> Int {
        var hash = SipHash128(key0: 0x6361_7269_6c6c_6f6e, key1: 0x746f_6d62_7330_3031)
        hash.update(lengthThen: app)
        hash.update(lengthThen: token)
        return Int(hash.finish().0 % UInt64(buckets))
    }
}

/// Removed tokens, and their restoration.
extension StateStore {
    /// Send it before `removeToken`. A token that was bound again is not restored.
    func buryToken(
        app: String, uid: String, token: BoundToken, cause: RemovalBrake.Cause, nowMs: Int64, tag: UInt64
    ) throws(RedisFault) {
        let bucket = Tombstone.bucket(app: app, token: token.record.hex)
        try change(tag, TombstoneScripts.buryToken, keyCount: 1) { command in
            command.key("c:z", app, "z\(bucket)")
            command.arg(Tombstone(cause, uid: uid, token: token).member)
            command.arg(StateKeys.time(nowMs))
            command.arg(StateKeys.time(nowMs &- Tombstone.keptMs))
        }
    }

    /// A page of a bucket's tombstones: an array of members, oldest first.
    func tombstones(
        app: String, bucket: Int, sinceMs: Int64, offset: Int, count: Int, tag: UInt64
    ) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "ZRANGEBYSCORE")
            command.key("c:z", app, "z\(bucket)")
            command.arg(StateKeys.time(sinceMs))
            command.arg(word: "+inf")
            command.arg(word: "LIMIT")
            command.arg(offset)
            command.arg(count)
        }
    }

    /// The present content of the token's field: a text, or null.
    func tokenField(app: String, _ tombstone: Tombstone, tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "HGET")
            command.key("c:u", app, tombstone.uid)
            command.arg(tombstone.field)
        }
    }

    /// Restores the token in its field. Answer: 1 restored, 0 the device has another one.
    func reviveToken(app: String, _ tombstone: Tombstone, tag: UInt64) throws(RedisFault) {
        try change(tag, TombstoneScripts.reviveToken, keyCount: 2) { command in
            command.key("c:u", app, tombstone.uid)
            command.key("c:s", app, tombstone.uid)
            command.arg(tombstone.field)
            command.arg(tombstone.record)
        }
    }

    /// Makes the user its owner again. Answer: 1 done, 0 another user bound it, 2 the user unbound it.
    func reviveOwner(app: String, _ tombstone: Tombstone, _ token: BoundToken, tag: UInt64) throws(RedisFault) {
        try change(tag, TombstoneScripts.reviveOwner, keyCount: 1) { command in
            command.key("c:o", app, token.record.hex)
            command.arg(StateKeys.version(token.version))
            command.arg(tombstone.uid)
        }
    }

    /// The token is restored: removes its tombstone. The reply is an integer.
    func forgetTombstone(app: String, _ tombstone: Tombstone, _ token: BoundToken, tag: UInt64) throws(RedisFault) {
        let bucket = Tombstone.bucket(app: app, token: token.record.hex)
        try change(tag) { command in
            command.arg(word: "ZREM")
            command.key("c:z", app, "z\(bucket)")
            command.arg(tombstone.member)
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore
import Redis

/// Removals of dead tokens. The backend is notified first (`push.feedback`); once the broker has that record the token
/// is removed. After a crash in between the token is still bound: it is refused again, and notified again.
final class TokenRemovals {
    private let shard: ShardContext
    private var told: SlotTable<Removal>
    /// App and token of each, so that a push in this time, which is refused too, is not counted and notified again.
    private var tokens: Set<UTF8Key> = []

    private final class Removal {
        /// The recipient that waits for the record.
        let recipient: WorkRef
        let app: String
        let uid: String
        let token: BoundToken
        let cause: RemovalBrake.Cause

        init(_ job: RecipientJob, _ token: BoundToken, _ cause: RemovalBrake.Cause) {
            recipient = job.ref
            app = job.event.app.id
            uid = job.uid
            self.token = token
            self.cause = cause
        }
    }

    init(_ shard: ShardContext) {
        self.shard = shard
        told = SlotTable(capacity: 1 << 20)
    }

    private static func key(_ app: String, _ token: BoundToken) -> UTF8Key { UTF8Key(app + token.record.hex) }

    func isUnderWay(_ token: BoundToken, app: String) -> Bool {
        !tokens.isEmpty && tokens.contains(Self.key(app, token))
    }

    /// The tag of the feedback record.
    func begin(_ job: RecipientJob, _ token: BoundToken, _ cause: RemovalBrake.Cause) -> UInt64 {
        tokens.insert(Self.key(job.event.app.id, token))
        return Tag(told.insert(Removal(job, token, cause)), .feedback).bits
    }

    /// The broker has the record: removes the token. Returns the recipient that waited for it.
    func didSettle(_ ref: WorkRef) -> WorkRef? {
        guard let removal = told.find(ref) else { return nil }
        told.remove(ref)
        tokens.remove(Self.key(removal.app, removal.token))
        // If this is lost with the connection, the token is refused and removed with the next push. On a cluster both
        // may be on different nodes: without its tombstone it stays.
        do throws(RedisFault) {
            try shard.store.buryToken(
                app: removal.app, uid: removal.uid, token: removal.token, cause: removal.cause, nowMs: shard.nowMs,
                tag: Tag.noteBits)
            try shard.store.removeToken(
                app: removal.app, uid: removal.uid, token: removal.token, nowMs: shard.nowMs, tag: Tag.noteBits,
                ownerTag: Tag.noteBits)
        } catch {}
        return removal.recipient
    }
}

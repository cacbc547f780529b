// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import PushCore
import Redis

/// Removals of dead tokens, in three steps: the token's owner entry, unless it was bound again; then the backend is notified
/// (`push.feedback`); once the broker has that record, the user's copy. A token that stays has no feedback. After a crash in between
/// the copy is still there: it is refused again, and notified again.
final class TokenRemovals {
    private let shard: ShardContext
    private var removals: SlotTable<Removal>
    /// App and token of each, so that a push in this time, which is refused too, is not counted and notified again.
    private var tokens: Set<UTF8Key> = []

    final class Removal {
        /// The recipient that waits for the record; nil for a push of the badge alone.
        fileprivate let recipient: WorkRef?
        fileprivate let app: AppContext
        private let uid: String
        fileprivate let token: BoundToken
        fileprivate let cause: RemovalBrake.Cause
        private let ending: Ending

        fileprivate init(
            _ recipient: WorkRef?, _ app: AppContext, _ uid: String, _ token: BoundToken,
            _ cause: RemovalBrake.Cause, _ ending: Ending
        ) {
            self.recipient = recipient
            self.app = app
            self.uid = uid
            self.token = token
            self.cause = cause
            self.ending = ending
        }

        var topicKey: String { token.record.hex }

        /// The record of `push.feedback`.
        func feedback(atMs: Int64) -> JSONWriter {
            var writer = JSONWriter(reservingCapacity: 320)
            writer.beginRecord(app: app.id)
            writer.member("uid", uid)
            writer.member("device", token.device)
            writer.member("token", token.record.hex)
            writer.member("env", token.record.environment.rawValue)
            writer.member("topic", token.record.topic)
            writer.member("cause", ending.reason)
            if let timestampMs = ending.timestampMs { writer.member("timestamp_ms", timestampMs) }
            writer.member("bound_ms", token.record.boundMs)
            writer.member("at_ms", atMs)
            writer.endObject()
            return writer
        }

        fileprivate func retire(_ store: StateStore, tag: UInt64) throws(RedisFault) {
            try store.retireDead(app: app.id, uid: uid, token: token, tag: tag)
        }

        fileprivate func remove(_ store: StateStore, nowMs: Int64) throws(RedisFault) {
            try store.buryToken(app: app.id, uid: uid, token: token, cause: cause, nowMs: nowMs, tag: Tag.noteBits)
            try store.removeToken(app: app.id, uid: uid, token: token, nowMs: nowMs, tag: Tag.noteBits)
        }

        fileprivate func count() { app.metrics.tokenRemoved(ending.label) }
    }

    init(_ shard: ShardContext) {
        self.shard = shard
        removals = SlotTable(capacity: 1 << 20)
    }

    private static func key(_ app: String, _ token: BoundToken) -> UTF8Key { UTF8Key(app + token.record.hex) }

    func isUnderWay(_ token: BoundToken, app: String) -> Bool {
        !tokens.isEmpty && tokens.contains(Self.key(app, token))
    }

    /// Takes the token from its owner. Returns false if Redis cannot be asked: the token stays, and is refused again.
    func begin(
        of recipient: WorkRef?, app: AppContext, uid: String, _ token: BoundToken, _ cause: RemovalBrake.Cause,
        _ ending: Ending
    ) -> Bool {
        let removal = Removal(recipient, app, uid, token, cause, ending)
        let ref = removals.insert(removal)
        do throws(RedisFault) {
            try removal.retire(shard.store, tag: Tag(ref, .retireToken).bits)
        } catch {
            removals.remove(ref)
            return false
        }
        tokens.insert(Self.key(removal.app.id, token))
        return true
    }

    /// What Redis did: the removal with its feedback to be written, or the recipient if the token stays.
    func didRetire(_ ref: WorkRef, isRetired: Bool) -> (removal: Removal?, recipient: WorkRef?) {
        guard let removal = removals.find(ref) else { return (nil, nil) }
        if isRetired {
            removal.count()
            return (removal, nil)
        }
        end(ref, removal)
        return (nil, removal.recipient)
    }

    /// The broker has the record: removes the token. Returns the recipient that waited for it, if there was one.
    func didSettle(_ ref: WorkRef) -> WorkRef? {
        guard let removal = removals.find(ref) else { return nil }
        end(ref, removal)
        // If this is lost with the connection, the token is refused and removed with the next push. On a cluster both
        // may be on different nodes: without its tombstone it stays.
        try? removal.remove(shard.store, nowMs: shard.nowMs)
        return removal.recipient
    }

    private func end(_ ref: WorkRef, _ removal: Removal) {
        removals.remove(ref)
        tokens.remove(Self.key(removal.app.id, removal.token))
    }
}

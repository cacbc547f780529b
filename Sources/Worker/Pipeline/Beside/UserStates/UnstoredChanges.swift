// SPDX-License-Identifier: Apache-2.0
import PushCore
import Synchronization

/// The users, tokens and activities of changes that a shard of the process has read and Redis has not stored: nothing is
/// decided about them, and no push goes to them.
///
/// From any thread. While Redis stores all changes, a question is one load and takes no lock. Other processes do not know
/// of them.
final class UnstoredChanges: Sendable {
    typealias Key = UInt64

    private let count = Atomic<Int>(0)
    private let holders = Mutex<[Key: Int]>([:])

    /// Redis has stored all changes that were read.
    var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

    func contains(_ key: Key) -> Bool {
        if isEmpty { return false }
        return holders.withLock { $0[key] != nil }
    }

    /// - Returns: whether a change names the user or one of these tokens. All tokens of a user matter, because a bind by another
    ///   user may end those of the whole phone.
    func contains(app: String, uid: String, _ tokens: [BoundToken]) -> Bool {
        if isEmpty { return false }
        return contains(Self.user(app, uid)) || tokens.contains { contains(Self.token(app, $0.record.hex)) }
    }

    /// Redis did not store a change at once.
    func insert(_ keys: [Key]) {
        holders.withLock { holders in
            for key in keys { holders[key, default: 0] += 1 }
            count.store(holders.count, ordering: .relaxed)
        }
    }

    /// The change is stored.
    func remove(_ keys: [Key]) {
        holders.withLock { holders in
            for key in keys {
                let left = (holders[key] ?? 1) - 1
                holders[key] = left > 0 ? left : nil
            }
            count.store(holders.count, ordering: .relaxed)
        }
    }

    // MARK: Keys

    static func user(_ app: String, _ uid: String) -> Key { DeviceKey.make(app: app, uid: uid, device: "") }

    static func token(_ app: String, _ hex: String) -> Key { DeviceKey.make(app: app, uid: "", device: hex) }

    /// No token begins like it.
    static func activity(_ app: String, _ id: String) -> Key {
        DeviceKey.make(app: app, uid: "", device: "activity \(id)")
    }
}

extension UserStateTask {
    /// The names under which pushes wait for the change. None for reports of opens and arrivals, which change no decision.
    var unstoredKeys: [UnstoredChanges.Key] {
        let user = UnstoredChanges.user(app, state.uid)
        switch state.change {
        case .openReport, .arrivedReport: return []
        case .settings, .mute, .read, .badgeReport, .ack, .forget: return [user]
        case .unbind(let unbinding): return [user, UnstoredChanges.token(app, unbinding.token)]
        case .bind(let binding):
            let keys = [user, UnstoredChanges.token(app, binding.token.hex)]
            return binding.token.activityID.map { keys + [UnstoredChanges.activity(app, $0)] } ?? keys
        }
    }
}

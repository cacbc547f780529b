// SPDX-License-Identifier: Apache-2.0
import PushCore

/// The (app, user, message, kind) keys in progress on this shard, and the repeats that wait for their end. `SharedKeys` has those
/// of all shards.
///
/// A claim cannot distinguish a pair in progress here from one that a crash left, so a repeat waits until the first is
/// finished, and then finds its mark.
struct DedupKeys {
    typealias Key = PushID

    private var waiting: [Key: [WorkRef]] = [:]

    var count: Int { waiting.count }

    func contains(_ key: Key) -> Bool { waiting[key] != nil }

    /// - Returns: true if the key is taken; false if it is in progress, and `ref` waits for its end.
    mutating func take(_ key: Key, _ ref: WorkRef) -> Bool {
        // Usually the key is free: it is taken with one lookup, and restored if it is not.
        guard let others = waiting.updateValue([], forKey: key) else { return true }
        waiting[key] = others + [ref]
        return false
    }

    /// Its holder has ended. Returns the waiting recipients.
    mutating func release(_ key: Key) -> [WorkRef] { waiting.removeValue(forKey: key) ?? [] }
}

// SPDX-License-Identifier: Apache-2.0
import PushCore
import Synchronization

/// The users whose badge in Redis is not exact: a claim that changes their number was refused, and Redis has not stored it.
/// Their alerts go without a number.
///
/// From any thread. Unless Redis refused a write lately, a question is one load and takes no lock.
///
/// An entry ends when the claim is stored by this process. Another process may store it too, so an entry also ends some time
/// after Redis refused a write last. For claims of other processes there is a pause: these are stored within seconds.
final class UnstoredCounts: Sendable {
    private let isUsed = Atomic<Bool>(false)
    /// When Redis refused a write of the process last, monotonic.
    private let refusedNanos = Atomic<UInt64>(0)
    private let state = Mutex(State())

    private struct State {
        var messages: [PushID: (user: UnstoredChanges.Key, notedNanos: UInt64)] = [:]
        var users: [UnstoredChanges.Key: Int] = [:]
        /// There were more than fit: nobody's number is known to be exact.
        var isFull = false

        mutating func remove(_ message: PushID) {
            guard let user = messages.removeValue(forKey: message)?.user else { return }
            let left = (users[user] ?? 1) - 1
            users[user] = left > 0 ? left : nil
        }
    }

    /// About 30 MB.
    private static let messagesMax = 262_144
    /// Claims of other processes are tried again within this time.
    static let pauseNanos: UInt64 = 5_000_000_000
    private static let lifeNanos: UInt64 = 60_000_000_000
    private static let lifeOfWholeNanos: UInt64 = 600_000_000_000

    /// Redis refused no write lately: every number is exact.
    var isEmpty: Bool { !isUsed.load(ordering: .relaxed) }

    /// - Parameter isWhole: no other process pushes to anybody.
    func isExact(_ user: UnstoredChanges.Key, isWhole: Bool, nowNanos: UInt64) -> Bool {
        if isEmpty { return true }
        if !isWhole, nowNanos &- refusedNanos.load(ordering: .relaxed) < Self.pauseNanos { return false }
        return state.withLock { !$0.isFull && $0.users[user] == nil }
    }

    /// Redis refused a write, for now.
    func wasRefused(nowNanos: UInt64) {
        refusedNanos.store(nowNanos, ordering: .relaxed)
        isUsed.store(true, ordering: .relaxed)
    }

    /// Redis refused the claim of the message, or it was read that another worker's claim was refused.
    func insert(_ message: PushID, of user: UnstoredChanges.Key, nowNanos: UInt64) {
        state.withLock { state in
            isUsed.store(true, ordering: .relaxed)
            if state.messages.count >= Self.messagesMax, state.messages[message] == nil { return state.isFull = true }
            if state.messages.updateValue((user, nowNanos), forKey: message) == nil {
                state.users[user, default: 0] += 1
            }
        }
    }

    /// Whether numbers wait for the claim of the message.
    func contains(_ message: PushID) -> Bool { !isEmpty && state.withLock { $0.messages[message] != nil } }

    /// Redis has stored the claim.
    func remove(_ message: PushID) {
        if isEmpty { return }
        state.withLock { $0.remove(message) }
    }

    /// Once a second: ends what another process has stored by now.
    func sweep(isWhole: Bool, nowNanos: UInt64) {
        let life = isWhole ? Self.lifeOfWholeNanos : Self.lifeNanos
        guard !isEmpty, nowNanos &- refusedNanos.load(ordering: .relaxed) > Self.pauseNanos else { return }
        let isOver = nowNanos &- refusedNanos.load(ordering: .relaxed) > life
        state.withLock { state in
            if isOver {
                let old = state.messages.filter { nowNanos &- $0.value.notedNanos > life }.map(\.key)
                for message in old { state.remove(message) }
                state.isFull = false
            }
            if state.messages.isEmpty, !state.isFull { isUsed.store(false, ordering: .relaxed) }
        }
    }
}

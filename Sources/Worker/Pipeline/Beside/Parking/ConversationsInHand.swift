// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The number of unfinished events per conversation in this process, if it serves several apps.
///
/// An event that is parked for its app's share comes back to some shard of some worker, and must not overtake an earlier one
/// of its conversation. A shard of the same process looks here. From any thread, without locks. Two conversations may share
/// a counter: an event then waits longer than necessary.
final class ConversationsInHand: @unchecked Sendable {
    private static let bits: UInt64 = 14
    private let counts: UnsafeMutablePointer<Atomic<Int32>>

    init() {
        counts = .allocate(capacity: 1 << Self.bits)
        for index in 0..<(1 << Self.bits) { (counts + index).initialize(to: Atomic(0)) }
    }

    deinit {
        counts.deinitialize(count: 1 << Self.bits)
        counts.deallocate()
    }

    /// - Parameter key: `ConversationKey.hash`.
    func add(_ change: Int32, to key: UInt64) {
        counts[Self.place(key)].wrappingAdd(change, ordering: .relaxed)
    }

    func contains(_ key: UInt64) -> Bool { counts[Self.place(key)].load(ordering: .relaxed) > 0 }

    private static func place(_ key: UInt64) -> Int {
        Int(truncatingIfNeeded: (key &* 0x9E37_79B9_7F4A_7C15) >> (64 - bits))
    }
}

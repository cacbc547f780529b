// SPDX-License-Identifier: Apache-2.0

/// Which servers of Redis may evict state, and how many keys they have evicted.
///
/// Redis keeps tokens without an end, so only a policy for all keys takes them. A machine without clock and server; one per shard.
struct EvictionWatch {
    /// When the last heartbeat was sent in which all servers were asked, monotonic.
    var lookedNanos: UInt64 = 0
    /// By server: a policy other than `noeviction`.
    private var policies: [Int: String] = [:]
    /// By server: the count that was seen last.
    private var counts: [Int: Int64] = [:]
    private var dueNanos: UInt64 = 0

    /// An operator may change the policy of a server that runs.
    private static let everyNanos: UInt64 = 10_000_000_000
    private static let safePolicy = "noeviction"

    /// The policy of a server that may evict state; nil if none may.
    var policy: String? { policies.values.min() }

    /// Some server may evict tokens.
    var takesTokens: Bool { !policies.isEmpty && policies.values.contains(where: Self.takesTokens) }

    private static func takesTokens(_ policy: String) -> Bool { !policy.hasPrefix("volatile-") }

    /// - Returns: whether to ask now: with each heartbeat where keys may go, else once in ten seconds.
    mutating func isDue(nowNanos: UInt64) -> Bool {
        if policies.isEmpty, nowNanos < dueNanos { return false }
        dueNanos = nowNanos &+ Self.everyNanos
        return true
    }

    /// - Parameter policy: nil if the server does not say it.
    /// - Returns: how many keys that may be tokens were evicted since the last look.
    mutating func didLook(_ server: Int, evicted: Int64, policy: String?) -> Int64 {
        let known = counts.updateValue(evicted, forKey: server)
        let now = policy == Self.safePolicy ? nil : policy
        let evicting = [policies[server], now].compactMap { $0 }
        policies[server] = now
        // A lower count is that of a new process. Without a policy that evicts, one came and went between two looks.
        guard let known, evicted > known, evicting.isEmpty || evicting.contains(where: Self.takesTokens) else {
            return 0
        }
        return evicted - known
    }
}

// SPDX-License-Identifier: Apache-2.0
/// Detects provider tokens that change too soon, per connection or per key of a team.
///
/// Apple documents only "Refresh your token no more than once every 20 minutes". Users observed the two scopes.
struct TokenThrottle {
    private var current: String?
    private var sinceMs: Int64 = 0
    private var known: Set<String> = []

    /// For a connection: returns whether a change to `fingerprint` now is too soon. A refused change has no effect.
    mutating func changesTooSoon(_ fingerprint: String, nowMs: Int64, minMs: Int64) -> Bool {
        guard fingerprint != current else { return false }
        if current != nil, nowMs - sinceMs < minMs { return true }
        current = fingerprint
        sinceMs = nowMs
        return false
    }

    /// For a key: returns whether `fingerprint` is new and comes too soon after the previous new one. Known tokens
    /// remain usable.
    mutating func appearsTooSoon(_ fingerprint: String, nowMs: Int64, minMs: Int64) -> Bool {
        guard !known.contains(fingerprint) else { return false }
        if !known.isEmpty, nowMs - sinceMs < minMs { return true }
        if known.count >= 1000 { known.removeAll() }
        known.insert(fingerprint)
        sinceMs = nowMs
        return false
    }
}

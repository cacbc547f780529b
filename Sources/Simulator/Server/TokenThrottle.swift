/// Tells which provider token comes too soon after the one before it; one per connection, or one per key of a team.
///
/// "Refresh your token no more than once every 20 minutes" is all that Apple says; the scopes are those users observed.
struct TokenThrottle {
    private var current: String?
    private var sinceMs: Int64 = 0
    private var known: Set<String> = []

    /// On a connection: whether going over to `fingerprint` now is a change too many. A refused change is not made.
    mutating func changesTooSoon(_ fingerprint: String, nowMs: Int64, minMs: Int64) -> Bool {
        guard fingerprint != current else { return false }
        if current != nil, nowMs - sinceMs < minMs { return true }
        current = fingerprint
        sinceMs = nowMs
        return false
    }

    /// For a key: whether `fingerprint` is new and comes too soon after the last new one. Known ones may be used on.
    mutating func appearsTooSoon(_ fingerprint: String, nowMs: Int64, minMs: Int64) -> Bool {
        guard !known.contains(fingerprint) else { return false }
        if !known.isEmpty, nowMs - sinceMs < minMs { return true }
        if known.count >= 1000 { known.removeAll() }
        known.insert(fingerprint)
        sinceMs = nowMs
        return false
    }
}

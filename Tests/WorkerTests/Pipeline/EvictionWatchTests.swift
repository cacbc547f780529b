// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Worker

/// Which evictions may have taken tokens, as a machine without a server.
@Suite struct EvictionWatchTests {
    private static let second: UInt64 = 1_000_000_000

    @Test func `the first look only learns what was evicted before`() {
        var watch = EvictionWatch()
        #expect(watch.didLook(0, evicted: 70, policy: "allkeys-lru") == 0)
        #expect(watch.didLook(0, evicted: 75, policy: "allkeys-lru") == 5)
        #expect(watch.didLook(0, evicted: 3, policy: "allkeys-lru") == 0, "a new process")
        #expect(watch.didLook(0, evicted: 4, policy: "noeviction") == 1, "before it was switched off")
    }

    /// Tokens have no end, so these policies never take one.
    @Test func `a policy for keys with an end takes no tokens`() {
        var watch = EvictionWatch()
        _ = watch.didLook(0, evicted: 0, policy: "volatile-lru")
        #expect(watch.didLook(0, evicted: 9, policy: "volatile-lru") == 0)
        #expect(watch.policy == "volatile-lru" && !watch.takesTokens)
    }

    @Test func `evictions between two looks without such a policy count`() {
        var watch = EvictionWatch()
        _ = watch.didLook(0, evicted: 0, policy: "noeviction")
        #expect(watch.didLook(0, evicted: 2, policy: "noeviction") == 2)
        #expect(watch.policy == nil)
    }

    @Test func `servers are asked with each heartbeat while one may evict, else once in ten seconds`() {
        var watch = EvictionWatch()
        #expect(watch.isDue(nowNanos: 0) && !watch.isDue(nowNanos: 9 * Self.second))
        #expect(watch.isDue(nowNanos: 10 * Self.second))
        _ = watch.didLook(1, evicted: 0, policy: "allkeys-lfu")
        #expect(watch.isDue(nowNanos: 11 * Self.second) && watch.takesTokens)
    }
}

// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Worker

/// Which evictions may have taken tokens, as a machine without a server.
@Suite struct EvictionWatchTests {
    private static let second: UInt64 = 1_000_000_000

    @Test func `the first look only learns what was evicted before`() {
        var watch = EvictionWatch()
        let fresh: [Int64] = [(70, "allkeys-lru"), (75, "allkeys-lru"), (3, "allkeys-lru"), (4, "noeviction")].map {
            watch.didLook(0, evicted: $0.0, policy: $0.1)
        }
        // The third is that of a new process, the last from before it was switched off.
        #expect(fresh == [0, 5, 0, 1])
    }

    /// Tokens have no end, so these policies never take one.
    @Test func `a policy for keys with an end takes no tokens`() {
        var watch = EvictionWatch()
        _ = watch.didLook(0, evicted: 0, policy: "volatile-lru")
        let fresh = watch.didLook(0, evicted: 9, policy: "volatile-lru")
        #expect(fresh == 0)
        #expect(watch.policy == "volatile-lru" && !watch.takesTokens)
    }

    @Test func `evictions between two looks without such a policy count`() {
        var watch = EvictionWatch()
        _ = watch.didLook(0, evicted: 0, policy: "noeviction")
        let fresh = watch.didLook(0, evicted: 2, policy: "noeviction")
        #expect(fresh == 2 && watch.policy == nil)
    }

    @Test func `servers are asked with each heartbeat while one may evict, else once in ten seconds`() {
        var watch = EvictionWatch()
        let due = [0, 9, 10, 11].map { watch.isDue(nowNanos: $0 * Self.second) }
        #expect(due == [true, false, true, false])
        _ = watch.didLook(1, evicted: 0, policy: "allkeys-lfu")
        let isDue = watch.isDue(nowNanos: 12 * Self.second)
        #expect(isDue && watch.takesTokens)
    }
}

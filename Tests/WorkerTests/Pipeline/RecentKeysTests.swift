// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Worker

@Suite struct RecentKeysTests {
    @Test func theNewestAreKnown() {
        var keys = RecentKeys<Int>(capacity: 3)
        #expect(!keys.contains(1))
        for key in [1, 2, 2, 3, 4, 5] { keys.insert(key) }
        #expect([1, 2, 3, 4, 5].map(keys.contains) == [false, false, true, true, true])
        #expect(keys.count == 3)
    }
}

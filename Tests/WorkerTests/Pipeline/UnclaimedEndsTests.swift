import Testing

@testable import Worker

@Suite struct UnclaimedEndsTests {
    @Test func theNewestAreKnown() {
        var ends = UnclaimedEnds<Int>(capacity: 3)
        #expect(!ends.contains(1))
        for pair in [1, 2, 2, 3, 4, 5] { ends.insert(pair) }
        #expect([1, 2, 3, 4, 5].map(ends.contains) == [false, false, true, true, true])
        #expect(ends.count == 3)
    }
}

// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@Suite struct NewestRingTests {
    @Test func eachOneBeyondTheCapacityTakesTheOldestsPlace() {
        var ring = NewestRing<Int>(capacity: 3)
        #expect((1...8).map { ring.append($0) } == [nil, nil, nil, 1, 2, 3, 4, 5])
        #expect(ring.elements.sorted() == [6, 7, 8])
        #expect(ring.count == 3)
    }

    @Test func anEmptiedReaderStartsAgain() {
        var ring = NewestRing<Int>(capacity: 2)
        for number in 1...3 { ring.append(number) }
        ring.removeAll()
        #expect(ring.elements.isEmpty)
        #expect((4...7).map { ring.append($0) } == [nil, nil, 4, 5])
    }

    @Test(arguments: [0, -1]) func itHoldsOneAtLeast(capacity: Int) {
        var ring = NewestRing<Int>(capacity: capacity)
        #expect(ring.append(1) == nil)
        #expect(ring.append(2) == 1)
    }
}

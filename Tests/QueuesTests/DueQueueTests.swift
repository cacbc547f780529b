// SPDX-License-Identifier: Apache-2.0
import Queues
import Support
import Testing

@Suite struct DueQueueTests {
    @Test func itemsComeInOrderOfTimeAndEqualsInOrderOfInsertion() {
        var random = SeededGenerator(seed: 20_261_120)
        var queue = DueQueue<UInt64, Int>()
        var model: [(due: UInt64, order: Int)] = []
        for order in 0..<2000 {
            let due = UInt64.random(in: 0..<200, using: &random)
            queue.insert(order, due: due)
            model.append((due, order))
        }
        model.sort { ($0.due, $0.order) < ($1.due, $1.order) }
        #expect(queue.earliest == model.first?.due && queue.count == 2000, "seed \(random.seed)")
        var popped: [Int] = []
        while let item = queue.popDue(1000) { popped.append(item) }
        #expect(popped == model.map(\.order), "seed \(random.seed)")
    }

    @Test func nothingComesBeforeItsTime() {
        var queue = DueQueue<UInt64, String>()
        queue.insert("late", due: 100)
        queue.insert("soon", due: 50)
        #expect(queue.popDue(49) == nil)
        #expect(queue.popDue(50) == "soon")
        #expect(queue.popDue(99) == nil && queue.earliest == 100)
        #expect(queue.popDue(100) == "late")
        #expect(queue.earliest == nil && queue.popDue(.max) == nil)
    }
}

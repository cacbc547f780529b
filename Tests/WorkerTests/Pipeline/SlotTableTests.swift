// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Worker

@Suite struct SlotTableTests {
    private final class Work {
        let number: Int
        init(_ number: Int) { self.number = number }
    }

    private func insert(_ number: Int, _ table: inout SlotTable<Work>) -> WorkRef {
        table.insert(Work(number))
    }

    @Test func aLateAnswerFindsNothingOnceItsWorkIsDone() {
        var table = SlotTable<Work>(capacity: 2)
        let first = insert(1, &table)
        table.remove(first)
        let second = insert(2, &table)
        #expect(second.slot == first.slot && second.generation != first.generation)
        #expect(table.find(first) == nil)
        #expect(table.find(second)?.number == 2)
    }

    @Test func aFullTableSaysSoAndStillHasASlotForWhatIsThere() {
        var table = SlotTable<Work>(capacity: 2)
        _ = insert(1, &table)
        let last = insert(2, &table)
        #expect(table.isFull)
        let beyond = insert(3, &table)
        #expect(table.isFull && table.count == 3)
        table.remove(beyond)
        table.remove(last)
        #expect(!table.isFull && table.count == 1)
    }

    @Test func outsideSlotsAreAbsentAndRemovingTwiceChangesNothing() {
        var table = SlotTable<Work>(capacity: 4)
        let only = insert(1, &table)
        #expect(table.find(WorkRef(slot: 3, generation: 0)) == nil)
        table.remove(WorkRef(slot: 3, generation: 0))
        table.remove(only)
        table.remove(only)
        #expect(table.count == 0)
        let slots = Set((0..<4).map { table.insert(Work($0)).slot })
        #expect(slots.count == 4, "a slot freed twice would be given away twice")
    }

    @Test func aReferenceFindsNothingInTheSecondTable() {
        var tables = [SlotTable<Work>(capacity: 1), SlotTable<Work>(capacity: 1, isSecond: true)]
        for _ in 0..<100 {
            let refs = tables.indices.map { insert(7, &tables[$0]) }
            #expect(tables[0].find(refs[1]) == nil && tables[1].find(refs[0]) == nil)
            for index in tables.indices {
                #expect(tables[index].find(refs[index]) != nil)
                tables[index].remove(refs[index])
            }
        }
    }

    @Test func generationsStayWithinTheirTag() throws {
        var table = SlotTable<Work>(capacity: 1)
        for _ in 0..<1000 {
            let place = insert(0, &table)
            let tag = try #require(Tag(Tag(place, .push).bits))
            #expect(table.find(tag.ref) != nil)
            table.remove(place)
        }
    }
}

@Suite struct TagTests {
    @Test func theBitsBringEverythingBack() {
        let stages = (UInt8(0)...255).compactMap { Question(rawValue: $0) }
        #expect(stages.count >= 18)
        for stage in stages {
            for slot in [0, 1, 19_999, (1 << 24) - 1] {
                for generation: UInt32 in [0, 7, 0xFF_FFFF] {
                    for index in [0, 9, 255] {
                        let tag = Tag(WorkRef(slot: slot, generation: generation), stage, index: index)
                        #expect(Tag(tag.bits) == tag)
                    }
                }
            }
        }
    }

    @Test func aGenerationWrapsAtTwentyFourBits() {
        let tag = Tag(Tag(WorkRef(slot: 3, generation: 0x0100_0005), .claim).bits)
        #expect(tag?.ref == WorkRef(slot: 3, generation: 5))
    }

    @Test func bitsOfNoStageAreNoTag() {
        #expect(Tag(0xFF00) == nil)
    }
}

// SPDX-License-Identifier: Apache-2.0
import Support
import Testing

@testable import Worker

@Suite struct OrderKeeperTests {
    private static let key: OrderKeeper.Key = 7

    private static func ref(_ number: Int) -> WorkRef { WorkRef(slot: number, generation: 0) }

    private static func pass(
        _ order: inout OrderKeeper, _ number: Int, to step: OrderKeeper.Step, key: OrderKeeper.Key = key
    ) -> Passage {
        order.pass(ref(number), order: UInt64(number), key: key, to: step)
    }

    private static func released(_ order: inout OrderKeeper, by number: Int) -> [Int] {
        order.goOn(ref(number), key: key).map(\.slot)
    }

    @Test func recipientsBehindALateOneContinueAfterItInOrder() {
        var order = OrderKeeper()
        order.stepOut(Self.ref(1), order: 1, key: Self.key, to: .reading)
        let later = [3, 2, 3].map { Self.pass(&order, $0, to: .claiming) }
        #expect(later == [.kept, .kept, .kept])
        let earlier = Self.pass(&order, 0, to: .passing)
        let another = Self.pass(&order, 3, to: .passing, key: 8)
        #expect(earlier == .goesOn && another == .goesOn, "earlier, and of another conversation")
        let byOther = Self.released(&order, by: 2)
        #expect(byOther.isEmpty, "it is not out of order itself")
        let byLate = Self.released(&order, by: 1)
        #expect(byLate == [2, 3])
        #expect(order.isEmpty)
    }

    @Test func lateOnesFollowEachOtherStepByStep() {
        var order = OrderKeeper()
        for number in [2, 1] { order.stepOut(Self.ref(number), order: UInt64(number), key: Self.key, to: .reading) }
        let reading = Self.pass(&order, 2, to: .reading)
        #expect(reading == .goesOn, "both may be read at once")
        let claiming = [1, 2].map { Self.pass(&order, $0, to: .claiming) }
        #expect(claiming == [.goesOn, .goesOn])
        order.stepOut(Self.ref(1), order: 1, key: Self.key, to: .reading)
        let passing = [2, 3].map { Self.pass(&order, $0, to: .passing) }
        #expect(passing == [.kept, .kept], "the first is read once more")
        let next = Self.released(&order, by: 1)
        #expect(next == [2, 3])
    }

    @Test func nobodyIsReleasedToWaitAgain() {
        var order = OrderKeeper()
        for number in [1, 2] { order.stepOut(Self.ref(number), order: UInt64(number), key: Self.key, to: .waiting) }
        let reading = Self.pass(&order, 3, to: .reading)
        #expect(reading == .kept)
        let byFirst = Self.released(&order, by: 1)
        let bySecond = Self.released(&order, by: 2)
        #expect(byFirst.isEmpty && bySecond == [3])
    }

    /// Any order of answers, second readings, pauses and ends: all pass, each after those before it.
    @Test func allPassInTheirOrder() {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var random = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            var run = OrderRun(count: Int.random(in: 1...12, using: &random))
            while !run.isOver { run.step(&random) }
            #expect(run.passed == run.passed.sorted() && run.passed.count == run.count, "\(run.passed)")
            #expect(run.order.isEmpty)
        }
    }
}

/// Candidates of one conversation that are read and claimed as `Lookup` and `Pipeline` do it, in whatever order Redis answers.
private struct OrderRun {
    private enum Phase { case unread, reading, claiming, postponed, held, passed }

    let count: Int
    var order = OrderKeeper()
    private(set) var passed: [Int] = []
    private var phases: [Phase]
    /// Pauses and second readings that are left, so that it ends.
    private var mishaps = 20
    /// What Redis has yet to answer, in the order in which it was asked.
    private var asked: [Int] = []

    init(count: Int) {
        self.count = count
        phases = Array(repeating: .unread, count: count)
    }

    var isOver: Bool { passed.count == count }

    private func ref(_ number: Int) -> WorkRef { WorkRef(slot: number, generation: 0) }

    private mutating func pass(_ number: Int, to step: OrderKeeper.Step) -> Passage {
        let passage = order.pass(ref(number), order: UInt64(number), key: 1, to: step)
        if passage == .kept { phases[number] = .held }
        return passage
    }

    private mutating func read(_ number: Int) {
        if pass(number, to: .reading) == .goesOn { ask(number, .reading) }
    }

    private mutating func ask(_ number: Int, _ phase: Phase) {
        phases[number] = phase
        asked.append(number)
    }

    private mutating func answer(_ number: Int, _ random: inout SeededGenerator) {
        let isMishap = mishaps > 0 && Int.random(in: 0..<4, using: &random) == 0
        if isMishap { mishaps -= 1 }
        if isMishap, phases[number] == .reading {
            order.stepOut(ref(number), order: UInt64(number), key: 1, to: .waiting)
            phases[number] = .postponed
        } else if phases[number] == .reading {
            if pass(number, to: .claiming) == .goesOn { ask(number, .claiming) }
        } else if pass(number, to: .passing) == .kept {
            return
        } else if isMishap {
            order.stepOut(ref(number), order: UInt64(number), key: 1, to: .reading)
            ask(number, .reading)
        } else {
            pass(number)
        }
    }

    private mutating func pass(_ number: Int) {
        phases[number] = .passed
        passed.append(number)
        let next = order.goOn(ref(number), key: 1).map(\.slot)
        for number in next { order.stepOut(ref(number), order: UInt64(number), key: 1, to: .waiting) }
        for number in next { read(number) }
    }

    mutating func step(_ random: inout SeededGenerator) {
        // Records begin in their order.
        let begun = phases.firstIndex(of: .unread)
        let paused = phases.firstIndex(of: .postponed)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: if let begun { read(begun) }
        case 1: if let paused { read(paused) }
        default: if !asked.isEmpty { answer(asked.removeFirst(), &random) }
        }
    }
}

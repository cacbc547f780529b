// SPDX-License-Identifier: Apache-2.0
import PushCore
import Support
import Testing

@testable import Worker

struct BurstTableTests {
    private static let one = BurstTable<Int>.Key(high: 1, low: 1)
    private static let other = BurstTable<Int>.Key(high: 2, low: 2)

    private func closed(_ close: BurstTable<Int>.Close) -> String {
        switch close {
        case .pending: "pending"
        case .merged(let members, let window): "merged \(members) \(window)"
        case .nothing(let window): "nothing \(window.map { String($0) } ?? "-")"
        }
    }

    @Test func theFirstGoesAndWhatFollowsWaits() {
        var table = BurstTable<Int>(waitingMax: 10)
        #expect(table.arrive(1, of: Self.one) == .goesNow(window: 1))
        #expect(table.arrive(2, of: Self.one) == .waits)
        #expect(table.arrive(3, of: Self.other) == .goesNow(window: 2), "another conversation")
        #expect(table.waitingCount == 1)
        #expect(table.isWaiting(Self.one) && !table.isWaiting(Self.other), "the first one of a window does not wait")
    }

    @Test func aWindowInWhichNothingWaitedIsOver() {
        var table = BurstTable<Int>(waitingMax: 10)
        _ = table.arrive(1, of: Self.one)
        #expect(table.end(Self.one, window: 1).isEmpty && table.count == 0)
        #expect(table.arrive(2, of: Self.one) == .goesNow(window: 2))
    }

    @Test func aliveAlertsAreMergedInOrderAndTheWindowOpensAgain() {
        var table = BurstTable<Int>(waitingMax: 10)
        for member in 1...4 { _ = table.arrive(member, of: Self.one) }
        #expect(table.end(Self.one, window: 1) == [2, 3, 4])
        #expect(closed(table.answered(Self.one, place: 2, isAlive: true)) == "pending")
        #expect(table.isWaiting(Self.one), "they are being looked at")
        #expect(closed(table.answered(Self.one, place: 1, isAlive: false)) == "pending")
        #expect(closed(table.answered(Self.one, place: 0, isAlive: true)) == "merged [2, 4] 2")
        #expect(table.waitingCount == 0)
        #expect(table.arrive(5, of: Self.one) == .waits, "the merged push was an alert too")
        #expect(table.end(Self.one, window: 1).isEmpty, "the end of the first window means nothing any more")
        #expect(table.end(Self.one, window: 2) == [5])
    }

    @Test func whereNothingIsLeftToTellTheWindowIsOver() {
        var table = BurstTable<Int>(waitingMax: 10)
        for member in 1...2 { _ = table.arrive(member, of: Self.one) }
        _ = table.end(Self.one, window: 1)
        #expect(closed(table.answered(Self.one, place: 0, isAlive: false)) == "nothing -")
        #expect(table.arrive(3, of: Self.one) == .goesNow(window: 3))
    }

    @Test func arrivalsDuringAQueryWaitForTheNextEnd() {
        var table = BurstTable<Int>(waitingMax: 10)
        for member in 1...2 { _ = table.arrive(member, of: Self.one) }
        _ = table.end(Self.one, window: 1)
        #expect(table.arrive(3, of: Self.one) == .waits)
        #expect(table.end(Self.one, window: 1).isEmpty, "it is closing")
        #expect(
            closed(table.answered(Self.one, place: 0, isAlive: false)) == "nothing 2", "the new one is told at once")
        #expect(table.end(Self.one, window: 2) == [3])
    }

    @Test func aFullTableEndsTheWindowOfTheNextAlert() {
        var table = BurstTable<Int>(waitingMax: 2)
        for member in 1...3 { _ = table.arrive(member, of: Self.one) }
        #expect(table.arrive(4, of: Self.one) == .waitsNoLonger(window: 1))
        #expect(table.end(Self.one, window: 1) == [2, 3, 4])
        #expect(table.arrive(5, of: Self.one) == .waits, "there is room again")
    }

    @Test func anAlertMayEndTheWindowOfThoseThatWait() {
        var table = BurstTable<Int>(waitingMax: 10)
        #expect(table.waiting(Self.one).isEmpty && table.arrive(1, of: Self.one) == .goesNow(window: 1))
        _ = table.arrive(2, of: Self.one)
        #expect(table.waiting(Self.one) == [2])
        #expect(table.arrive(3, of: Self.one, endsNow: true) == .waitsNoLonger(window: 1))
        #expect(table.end(Self.one, window: 1) == [2, 3])
        _ = table.arrive(4, of: Self.one)
        #expect(table.waiting(Self.one).isEmpty, "the window is ending")
    }

    @Test func lateAnswersMeanNothing() {
        var table = BurstTable<Int>(waitingMax: 10)
        #expect(closed(table.answered(Self.one, place: 0, isAlive: true)) == "pending")
        for member in 1...2 { _ = table.arrive(member, of: Self.one) }
        #expect(closed(table.answered(Self.one, place: 0, isAlive: true)) == "pending")
        _ = table.end(Self.one, window: 1)
        #expect(closed(table.answered(Self.one, place: 7, isAlive: true)) == "pending")
    }

    /// Whatever the order of events: each member goes at once, or is looked at exactly once.
    @Test(arguments: [UInt64](1...20)) func noRecipientIsLostOrRecordedTwice(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var table = BurstTable<Int>(waitingMax: 6)
        var windows: [(BurstTable<Int>.Key, UInt32)] = []
        var looking: [(BurstTable<Int>.Key, Int)] = []
        var told: [Int: Int] = [:]
        func end(_ key: BurstTable<Int>.Key, _ window: UInt32) {
            for (place, member) in table.end(key, window: window).enumerated() {
                looking.append((key, place))
                told[member, default: 0] += 1
            }
        }
        func answer(_ key: BurstTable<Int>.Key, _ place: Int) {
            switch table.answered(key, place: place, isAlive: Bool.random(using: &random)) {
            case .pending, .nothing(endsNow: nil): break
            case .nothing(let window?): end(key, window)
            case .merged(_, let window): windows.append((key, window))
            }
        }
        for member in 0..<500 {
            let key = [Self.one, Self.other].randomElement(using: &random)!
            switch table.arrive(member, of: key) {
            case .goesNow(let window):
                told[member, default: 0] += 1
                windows.append((key, window))
            case .waits: break
            case .waitsNoLonger(let window): end(key, window)
            }
            if Int.random(in: 0..<4, using: &random) == 0, let next = windows.popLast() { end(next.0, next.1) }
            while Bool.random(using: &random), !looking.isEmpty {
                let (key, place) = looking.removeFirst()
                answer(key, place)
            }
        }
        while table.count > 0 {
            if let next = windows.popLast() { end(next.0, next.1) }
            while !looking.isEmpty {
                let (key, place) = looking.removeFirst()
                answer(key, place)
            }
        }
        #expect(told.count == 500 && told.values.allSatisfy { $0 == 1 }, "seed \(seed)")
        #expect(table.waitingCount == 0, "seed \(seed)")
    }
}

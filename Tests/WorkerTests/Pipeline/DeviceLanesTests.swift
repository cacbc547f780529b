import Testing

@testable import Worker

@Suite struct DeviceLanesTests {
    @Test func oneIsOutAndTheOthersFollowInOrder() {
        var lanes = DeviceLanes<Int>()
        let entered = [("a", 1), ("a", 2), ("a", 3), ("b", 4)].map { lanes.enter($0, $1) }
        #expect(entered == [true, false, false, true], "another device is free")
        #expect(lanes.busyCount == 2 && lanes.waitingCount == 2)
        #expect(turns(after: "a", of: &lanes) == [2])
        #expect(turns(after: "a", of: &lanes) == [3])
        #expect(turns(after: "a", of: &lanes) == [])
        #expect(lanes.waitingCount == 0)
        #expect(lanes.busyCount == 1)
        let isFree = lanes.enter("a", 5)
        #expect(isFree)
    }

    @Test func leavingALaneThatNobodyHasIsNothing() {
        var lanes = DeviceLanes<Int>()
        #expect(turns(after: "a", of: &lanes) == [])
        #expect(lanes.busyCount == 0)
    }

    @Test func aPushThatIsGoneLeavesItsTurnToTheNext() {
        var lanes = DeviceLanes<Int>()
        for item in 1...3 as ClosedRange<Int> { _ = lanes.enter("a", item) }
        let isServer = lanes.leave("a")
        #expect(isServer)
        var served: [Int] = []
        while let turn = lanes.nextTurn() {
            served.append(turn.item)
            if turn.item == 2 { lanes.pass(turn) }
        }
        #expect(served == [2, 3])
        #expect(lanes.busyCount == 1, "the third one is out")
    }

    /// All expired while they waited: each ends within its own turn, as `Pipeline.leaveLane` lets it.
    @Test(.timeLimit(.minutes(1))) func aHundredThousandThatEndAtOnceGoNoDeeperThanOne() {
        let count = 100_000
        let ending = Ending()
        for item in 0...count { _ = ending.lanes.enter("a", item) }
        #expect(ending.lanes.waitingCount == count)
        ending.leave()
        #expect(ending.ended == Array(1...count))
        #expect(ending.deepest == 2, "the loop, and the push that ends within it")
        #expect(ending.lanes.busyCount == 0 && ending.lanes.waitingCount == 0)
    }

    private final class Ending {
        var lanes = DeviceLanes<Int>()
        var ended: [Int] = []
        var deepest = 0
        private var depth = 0

        func leave() {
            depth += 1
            defer { depth -= 1 }
            deepest = max(deepest, depth)
            guard lanes.leave("a") else { return }
            while let turn = lanes.nextTurn() {
                ended.append(turn.item)
                leave()
            }
        }
    }

    private func turns(after token: String, of lanes: inout DeviceLanes<Int>) -> [Int] {
        var items: [Int] = []
        if lanes.leave(token) {
            while let turn = lanes.nextTurn() { items.append(turn.item) }
        }
        return items
    }
}

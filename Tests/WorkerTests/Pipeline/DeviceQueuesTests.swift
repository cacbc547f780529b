// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Worker

@Suite struct DeviceQueuesTests {
    @Test func oneIsOutAndTheOthersFollowInOrder() {
        var queues = DeviceQueues<Int>()
        let entered = [("a", 1), ("a", 2), ("a", 3), ("b", 4)].map { queues.enter($0, $1) }
        #expect(entered == [true, false, false, true], "another device is free")
        #expect(queues.busyCount == 2 && queues.waitingCount == 2)
        #expect(turns(after: "a", of: &queues) == [2])
        #expect(turns(after: "a", of: &queues) == [3])
        #expect(turns(after: "a", of: &queues) == [])
        #expect(queues.waitingCount == 0)
        #expect(queues.busyCount == 1)
        let isFree = queues.enter("a", 5)
        #expect(isFree)
    }

    @Test func leavingADeviceThatNobodyHasIsNothing() {
        var queues = DeviceQueues<Int>()
        #expect(turns(after: "a", of: &queues) == [])
        #expect(queues.busyCount == 0)
    }

    @Test func aPushThatIsGoneLeavesItsTurnToTheNext() {
        var queues = DeviceQueues<Int>()
        for item in 1...3 as ClosedRange<Int> { _ = queues.enter("a", item) }
        let isServer = queues.leave("a")
        #expect(isServer)
        var served: [Int] = []
        while let turn = queues.nextTurn() {
            served.append(turn.item)
            if turn.item == 2 { queues.pass(turn) }
        }
        #expect(served == [2, 3])
        #expect(queues.busyCount == 1, "the third one is out")
    }

    @Test func aBadgeReadBeforeItsDevicesCheckMayBeOlder() {
        var queues = DeviceQueues<Int>()
        for item in 1...2 as ClosedRange<Int> { _ = queues.enter("a", item) }
        _ = queues.enter("b", 3)
        queues.didCheck(DeviceQueues<Int>.key(of: "a"), atNanos: 10)
        #expect(queues.mayShowNumber(DeviceQueues<Int>.key(of: "a"), readSince: 9))
        #expect(!queues.mayShowNumber(DeviceQueues<Int>.key(of: "a"), readSince: 10), "asked after the answer had come")
        #expect(!queues.mayShowNumber(DeviceQueues<Int>.key(of: "b"), readSince: 9))
        #expect(turns(after: "a", of: &queues) == [2])
        #expect(queues.mayShowNumber(DeviceQueues<Int>.key(of: "a"), readSince: 9), "the device shows it still")
        #expect(turns(after: "a", of: &queues) == [])
    }

    /// All expired while they waited: each ends within its own turn, as `Sender.leaveQueue` lets it.
    @Test(.timeLimit(.minutes(1))) func aHundredThousandThatEndAtOnceGoNoDeeperThanOne() {
        let count = 100_000
        let ending = Ending()
        for item in 0...count { _ = ending.queues.enter("a", item) }
        #expect(ending.queues.waitingCount == count)
        ending.leave()
        #expect(ending.ended == Array(1...count))
        #expect(ending.deepest == 2, "the loop, and the push that ends within it")
        #expect(ending.queues.busyCount == 0 && ending.queues.waitingCount == 0)
    }

    private final class Ending {
        var queues = DeviceQueues<Int>()
        var ended: [Int] = []
        var deepest = 0
        private var depth = 0

        func leave() {
            depth += 1
            defer { depth -= 1 }
            deepest = max(deepest, depth)
            guard queues.leave("a") else { return }
            while let turn = queues.nextTurn() {
                ended.append(turn.item)
                leave()
            }
        }
    }

    private func turns(after token: String, of queues: inout DeviceQueues<Int>) -> [Int] {
        var items: [Int] = []
        if queues.leave(token) {
            while let turn = queues.nextTurn() { items.append(turn.item) }
        }
        return items
    }
}

/// Devices by name.
extension DeviceQueues {
    static func key(of name: String) -> Key { DeviceKey.make(app: "im", uid: "u", device: name) }

    mutating func enter(_ name: String, _ item: @autoclosure () -> Item) -> Bool {
        enter(Self.key(of: name), item())
    }

    mutating func leave(_ name: String) -> Bool { leave(Self.key(of: name)) }
}

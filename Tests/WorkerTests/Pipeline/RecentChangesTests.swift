// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@testable import Worker

/// What is made once more after another Redis process took over: all of its keys' newest changes, in their order.
@Suite struct RecentChangesTests {
    /// Changes are numbers; those of a node are told by their tens.
    private static func node(_ change: Int) -> Int { change / 10 }

    private func filled(_ changes: [Int], capacity: Int = 8, spanNanos: UInt64 = 100) -> RecentChanges<Int> {
        var recent = RecentChanges<Int>(capacity: capacity, spanNanos: spanNanos)
        for (nanos, change) in changes.enumerated() {
            recent.append(change, generation: 1, takenNanos: UInt64(nanos))
        }
        return recent
    }

    @Test func onlyWhatAnotherProcessServesIsTakenAndOnceOnly() {
        var recent = filled([1, 11, 2, 12, 3])
        #expect(recent.takeMoved { _ in 1 }.isEmpty)
        #expect(recent.takeMoved { Self.node($0) == 0 ? 2 : 1 } == [1, 2, 3])
        #expect(recent.takeMoved { Self.node($0) == 0 ? 2 : 1 }.isEmpty)
        #expect(recent.takeMoved { _ in 3 } == [11, 12])
        #expect(recent.count == 0)
    }

    @Test(arguments: [5, 8, 9, 15, 16, 17, 100]) func theNewestAreKept(count: Int) {
        var recent = filled(Array(0..<count))
        #expect(recent.count < 16)
        #expect(recent.takeMoved { _ in 2 } == Array((0..<count).suffix(8)))
    }

    /// A change with many ids takes the place of many.
    @Test func keptChangesAreBoundedByWeight() {
        var recent = RecentChanges<Int>(capacity: 8, spanNanos: 100)
        for change in 0..<40 { recent.append(change, weight: 5, generation: 1, takenNanos: 1) }
        #expect(recent.count <= 3)
        recent.append(40, weight: 1_000, generation: 1, takenNanos: 1)
        recent.append(41, generation: 1, takenNanos: 1)
        #expect(recent.takeMoved { _ in 2 } == [41])
    }

    /// However late the new one comes: what counts is what was taken just before the last that the old one took.
    @Test func changesLongBeforeTheNewestWereCopied() {
        var recent = filled(Array(0..<6), spanNanos: 3)
        #expect(recent.takeMoved { _ in 2 } == [3, 4, 5])
    }

    /// Redis is away, so that the repetition does not end.
    @Test func decisionsWaitWhileChangesAreMadeAgain() throws {
        let waits = try ScriptedShard.withPipeline { _, pipeline in
            let now = pipeline.shard.nowNanos
            let record = #"{"v":1,"kind":"read","app":"im","event_id":"e","sent_ms":1700000000000,"uid":"u","#
            let event = try pipeline.shard.reader.read(
                Array((record + #""conv_id":"c","up_to_seq":1}"#).utf8), of: .userState)
            guard case .userState(let state) = event.body, let app = pipeline.apps["im"] else { return [Bool]() }
            let before = pipeline.userStates.mayHaveMissed(readNanos: now)
            pipeline.userStates.applyAgain(state, of: event, app: app)
            _ = pipeline.userStates.beginAgain()
            return [before, pipeline.userStates.mayHaveMissed(readNanos: now)]
        }
        #expect(waits == [false, true])
    }
}

// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Worker

/// How many reads of one user's hashes are with Redis at once.
@Suite struct ReadGateTests {
    private final class Gate {
        private var gate = ReadGate()

        func admit(_ bucket: UInt8, _ slot: Int) -> Bool {
            gate.admit(bucket, WorkRef(slot: slot, generation: 1))
        }

        func release(_ bucket: UInt8) { gate.release(bucket) }
        func next(_ bucket: UInt8) -> Int? { gate.next(bucket)?.slot }
    }

    @Test func readsBeyondTheBoundGoInTheirOrder() {
        let gate = Gate()
        let bucket = ReadGate.bucket("u")
        let most = Int(ReadGate.atOnce)
        for slot in 0..<most { #expect(gate.admit(bucket, slot)) }
        for slot in most..<most + 3 { #expect(!gate.admit(bucket, slot)) }
        #expect(gate.next(bucket) == nil, "all places are taken")
        #expect(gate.admit(bucket &+ 1, 99), "of other users")
        for slot in most..<most + 3 {
            gate.release(bucket)
            #expect(gate.next(bucket) == slot)
            #expect(gate.next(bucket) == nil)
        }
        gate.release(bucket)
        #expect(gate.next(bucket) == nil)
        #expect(gate.admit(bucket, 7))
    }

    @Test func aReadDoesNotOvertakeEarlierOnesThatWait() {
        let gate = Gate()
        let most = Int(ReadGate.atOnce)
        for slot in 0...most { _ = gate.admit(3, slot) }
        gate.release(3)
        #expect(!gate.admit(3, 50))
        #expect(gate.next(3) == most)
    }

    @Test func anOversizedKeyIsReadOnceAtATimeWhenItsMinuteIsOver() {
        var keys = OversizedKeys()
        let second: UInt64 = 1_000_000_000
        keys.note(1, nowNanos: 0)
        let found = [59, 61, 61].map { keys.admit(1, nowNanos: $0 * second) }
        #expect(found == [false, true, false], "one reading shows whether it still is, the others wait for its answer")
        keys.forget(1)
        let later = keys.admit(1, nowNanos: 61 * second)
        #expect(later)
    }
}

// SPDX-License-Identifier: Apache-2.0
import APNsProtocol
import Foundation
import Synchronization
import Testing

@testable import Worker

@Suite struct SharedKeysTests {
    private static func key(_ number: UInt64) -> PushID {
        PushID(high: number &* 0x9E37_79B9_7F4A_7C15, low: ~number << 7)
    }

    @Test func `a key has one holder at a time`() {
        let keys = SharedKeys(bits: 2)
        #expect(keys.take(Self.key(1)) && !keys.take(Self.key(1)) && keys.contains(Self.key(1)))
        #expect(keys.take(Self.key(2)) && keys.count == 2)
        keys.leave(Self.key(1))
        #expect(!keys.contains(Self.key(1)) && keys.take(Self.key(1)))
    }

    /// Its copies then do not wait: the table is bounded.
    @Test func `a full bucket refuses nothing`() {
        let keys = SharedKeys(bits: 0)
        for number in 1...20 as ClosedRange<UInt64> { #expect(keys.take(Self.key(number))) }
        #expect(keys.count == 8)
        for number in 1...20 as ClosedRange<UInt64> { keys.leave(Self.key(number)) }
        #expect(keys.count == 0)
    }

    /// Several threads bid for few keys in one bucket, so that their bids cross.
    @Test func `no two threads hold a key, and each gets it in the end`() {
        let keys = SharedKeys(bits: 0)
        let holders = [Count(), Count(), Count()]
        let doubles = Count()
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for round in 0..<20_000 {
                let number = (thread &+ round) % 3
                let key = Self.key(UInt64(number + 1))
                guard keys.take(key) else { continue }
                if holders[number].value.add(1, ordering: .sequentiallyConsistent).newValue != 1 {
                    doubles.value.add(1, ordering: .relaxed)
                }
                holders[number].value.subtract(1, ordering: .sequentiallyConsistent)
                keys.leave(key)
            }
        }
        #expect(doubles.value.load(ordering: .relaxed) == 0)
        #expect(keys.count == 0)
        #expect(keys.take(Self.key(1)))
    }

    private final class Count: Sendable {
        let value = Atomic(0)
    }
}

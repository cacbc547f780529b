// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Testing

@testable import APNs

@Suite struct ConnectionHealthTests {
    static let ms: UInt64 = 1_000_000

    func look(
        _ health: inout ConnectionHealth, inFlight: Int = 1, blocked: ConnectionHealth.Suspicion? = nil,
        peers: UInt64? = nil, atMs: UInt64
    ) -> ConnectionHealth.Suspicion? {
        health.suspicion(
            inFlight: inFlight, blocked: blocked, peersTripNanos: peers, stallNanos: 1500 * Self.ms,
            nowNanos: atMs * Self.ms)
    }

    @Test func requestsWithoutAnyAnswerAreSuspicious() {
        var health = ConnectionHealth(nowNanos: 0)
        health.submitted(isFirstInFlight: true, nowNanos: 5000 * Self.ms)
        same(look(&health, atMs: 6400), nil)
        same(look(&health, atMs: 6500), .frozen)
        health.answered(tripNanos: 1, nowNanos: 6500 * Self.ms)
        same(look(&health, atMs: 7900), nil)
        // Idle, it owes nothing.
        same(look(&health, inFlight: 0, atMs: 99_000), nil)
    }

    @Test func windowThatStaysShutIsSuspicious() {
        var health = ConnectionHealth(nowNanos: 0)
        same(look(&health, inFlight: 0, blocked: .window, atMs: 0), nil)
        same(look(&health, inFlight: 0, blocked: .window, atMs: 1400), nil)
        same(look(&health, inFlight: 0, blocked: .window, atMs: 1500), .window)
    }

    @Test func windowThatOpensNowAndThenIsNot() {
        var health = ConnectionHealth(nowNanos: 0)
        for step in 0..<100 {
            same(look(&health, inFlight: 0, blocked: .window, atMs: UInt64(step) * 400), nil)
            if step % 3 == 0 { health.submitted(isFirstInFlight: true, nowNanos: UInt64(step) * 400 * Self.ms) }
        }
    }

    @Test func slowIsMeasuredAgainstTheOthers() {
        var health = ConnectionHealth(nowNanos: 0)
        for _ in 0..<64 { health.answered(tripNanos: 900 * Self.ms, nowNanos: 1000 * Self.ms) }
        same(look(&health, atMs: 1001), nil)
        same(look(&health, peers: 800 * Self.ms, atMs: 1001), nil)
        same(look(&health, peers: 50 * Self.ms, atMs: 1001), .slow)
    }

    @Test func addressesThatFailedComeLastAndUsedOnesLater() {
        var book = AddressBook()
        var random = SmallRandom(seed: 4)
        let found = ["a:1", "b:1", "c:1", "d:1"]
        book.failed("b:1", nowNanos: 10)
        for _ in 0..<50 {
            let order = book.order(found, inUse: ["a:1", "a:1", "c:1"], nowNanos: 20, random: &random)
            same(order, [3, 2, 0, 1])
        }
        let later = book.order(found, inUse: ["a:1", "c:1", "d:1"], nowNanos: 61_000_000_000, random: &random)
        same(later.first, 1)
        book.succeeded("b:1")
        var first: Set<Int> = []
        for _ in 0..<200 { first.formUnion(book.order(found, inUse: [], nowNanos: 30, random: &random).prefix(1)) }
        same(first, [0, 1, 2, 3])
    }
}

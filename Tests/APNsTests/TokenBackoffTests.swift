// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Testing

@testable import APNs

@Suite struct TokenBackoffTests {
    typealias Kind = TokenBackoff.Kind

    let token: DeviceToken
    let other: DeviceToken
    /// An alert with a collapse id.
    let alert = Kind(.alert, collapseID: Array("c".utf8))

    init() throws {
        token = try #require(DeviceToken("aa"))
        other = try #require(DeviceToken("bb"))
    }

    @Test func newestOfACollapseIDWaitsAndOtherTokensAreFree() {
        var backoff = TokenBackoff()
        #expect(backoff.isEmpty && !backoff.holds(token))
        same(
            backoff.refused(token, alert, 1, order: 1, dueNanos: 100),
            TokenBackoff.Wait(dueNanos: 100, refusals: 1))
        #expect(backoff.holds(token) && !backoff.holds(other))
        same(
            backoff.wait(token, alert, 2, order: 2),
            TokenBackoff.Wait(dueNanos: 100, refusals: 1, superseded: 1))
        // A push without its collapse id is no newer version of it, and waits for its end.
        same(
            backoff.wait(token, Kind(.background), 3, order: 3),
            TokenBackoff.Wait(dueNanos: .max, refusals: 1))
        // The place passes to the newer alert, the turn to who waits longest.
        same(
            backoff.wait(token, alert, 4, order: 4),
            TokenBackoff.Wait(
                dueNanos: .max, refusals: 1, superseded: 2, next: TokenBackoff.Turn(slot: 3, dueNanos: 100)))
        same(backoff.wait(other, alert, 5, order: 5), nil)
    }

    /// A device shows all of them: APNs replaces none of them by another one either.
    @Test func pushesWithoutACommonCollapseIDAllWait() {
        var backoff = TokenBackoff()
        _ = backoff.refused(token, Kind(.alert), 1, order: 1, dueNanos: 100)
        let kinds = [
            Kind(.alert), Kind(.alert), alert, Kind(.alert, collapseID: Array("d".utf8)), Kind(.background),
            Kind(.background), Kind(.background, collapseID: alert.collapseID),
        ]
        for (index, kind) in kinds.enumerated() {
            same(backoff.wait(token, kind, Int32(index + 2), order: UInt64(index + 2))?.superseded, nil)
        }
        same(backoff.wait(token, alert, 9, order: 9)?.superseded, 4)
        // Once one is accepted the others go one after the other.
        var went: [Int32] = []
        var slot: Int32? = 1
        while let one = slot {
            same(backoff.asks(token, Kind(.alert), one, order: UInt64(one), nowNanos: 100), nil)
            went.append(one)
            let next = backoff.ended(token, one, isOver: true)
            #expect(next == nil || next?.dueNanos == 0)
            slot = next?.slot
        }
        same(went, [1, 2, 3, 5, 6, 7, 8, 9])
        #expect(backoff.isEmpty)
    }

    @Test func `a push that is accepted wakes the one that waited for its time`() {
        var backoff = TokenBackoff()
        _ = backoff.refused(token, alert, 1, order: 1, dueNanos: 100)
        // Sent before the first one was refused.
        same(backoff.ended(token, 7, isOver: true), TokenBackoff.Turn(slot: 1, dueNanos: 0))
        same(backoff.asks(token, alert, 1, order: 1, nowNanos: 1), nil)
    }

    @Test func `a refusal for longer than pushes wait takes all of the device along`() {
        var backoff = TokenBackoff()
        _ = backoff.refused(token, Kind(.alert), 1, order: 1, dueNanos: 100)
        for slot in 2...4 as ClosedRange<Int32> { _ = backoff.wait(token, Kind(.alert), slot, order: UInt64(slot)) }
        _ = backoff.asks(token, Kind(.alert), 1, order: 1, nowNanos: 100)
        same(backoff.deferred(token, 1, .absent, dueNanos: 900), [2, 3, 4])
        // The next one waits as long, and its refusals are those of the device.
        same(backoff.wait(token, Kind(.alert), 5, order: 5), TokenBackoff.Wait(dueNanos: 900, refusals: 2))
        same(backoff.pause(token, nowNanos: 100)?.nanos, 800)
        same(backoff.pause(token, nowNanos: 900)?.nanos, nil)
        same(backoff.heldCount(nowNanos: 899), 1)
    }

    @Test func olderPushThatIsRefusedLaterIsTheOneThatGives() {
        var backoff = TokenBackoff()
        _ = backoff.refused(token, alert, 2, order: 2, dueNanos: 100)
        same(backoff.refused(token, alert, 1, order: 1, dueNanos: 200).superseded, 1)
    }

    @Test func oneTriesAndTheOthersHearOfIt() {
        var backoff = TokenBackoff()
        _ = backoff.refused(token, alert, 1, order: 1, dueNanos: 100)
        _ = backoff.wait(token, Kind(.background), 2, order: 2)
        // Not before its time, and not before the one whose turn it is.
        same(backoff.asks(token, alert, 1, order: 1, nowNanos: 99)?.dueNanos, 100)
        same(backoff.asks(token, Kind(.background), 2, order: 2, nowNanos: 100)?.dueNanos, .max)
        same(backoff.asks(token, alert, 1, order: 1, nowNanos: 100), nil)
        // A resend of the one that tries needs no other leave.
        same(backoff.asks(token, alert, 1, order: 1, nowNanos: 101), nil)
        // While one tries no clock wakes a newcomer.
        same(backoff.wait(token, alert, 3, order: 3)?.dueNanos, .max)
        same(backoff.ended(token, 1, isOver: true), TokenBackoff.Turn(slot: 2, dueNanos: 0))
        same(backoff.asks(token, Kind(.background), 2, order: 2, nowNanos: 100), nil)
        same(backoff.ended(token, 2, isOver: true), TokenBackoff.Turn(slot: 3, dueNanos: 0))
        same(backoff.ended(token, 3, isOver: false), nil)
        #expect(backoff.isEmpty)
    }

    @Test func aRefusedProbeRestartsTheWait() {
        var backoff = TokenBackoff()
        _ = backoff.refused(token, alert, 1, order: 1, dueNanos: 100)
        same(backoff.asks(token, alert, 1, order: 1, nowNanos: 100), nil)
        same(
            backoff.refused(token, alert, 1, order: 1, dueNanos: 300),
            TokenBackoff.Wait(dueNanos: 300, refusals: 2))
        same(backoff.asks(token, alert, 1, order: 1, nowNanos: 300), nil)
    }

    @Test func secondRefusalWakesTheNewerOneThatTakesThePlace() {
        var backoff = TokenBackoff()
        _ = backoff.refused(token, alert, 1, order: 1, dueNanos: 100)
        same(backoff.asks(token, alert, 1, order: 1, nowNanos: 100), nil)
        same(backoff.wait(token, alert, 2, order: 2)?.dueNanos, .max)
        same(
            backoff.refused(token, alert, 1, order: 1, dueNanos: 300),
            TokenBackoff.Wait(
                dueNanos: .max, refusals: 2, superseded: 1, next: TokenBackoff.Turn(slot: 2, dueNanos: 300)))
    }

    @Test func lostTryLetsTheNextOneGo() {
        var backoff = TokenBackoff()
        _ = backoff.refused(token, alert, 1, order: 1, dueNanos: 100)
        _ = backoff.wait(token, Kind(.background), 2, order: 2)
        _ = backoff.asks(token, alert, 1, order: 1, nowNanos: 100)
        same(backoff.ended(token, 1, isOver: false), TokenBackoff.Turn(slot: 2, dueNanos: 100))
        same(backoff.asks(token, Kind(.background), 2, order: 2, nowNanos: 100), nil)
        same(backoff.ended(other, 9, isOver: true), nil)
    }

    @Test func longOverIsForgotten() {
        var backoff = TokenBackoff()
        _ = backoff.refused(token, alert, 1, order: 1, dueNanos: 100)
        same(backoff.ended(token, 1, isOver: false), nil)
        backoff.sweep(nowNanos: 59_000_000_000)
        #expect(!backoff.isEmpty)
        backoff.sweep(nowNanos: 61_000_000_000)
        #expect(backoff.isEmpty)
    }

    /// Whatever the order of refusals, arrivals, losses and ends: each push that waits is on a clock, or waits for one
    /// that is; and when APNs takes everything in the end, every push ends.
    @Test(arguments: [1, 2, 3, 4, 5, .random(in: 6 ... .max)] as [UInt64])
    func everyPushThatWaitsIsWokenBySomething(seed: UInt64) {
        print("token back-off with seed \(seed)")
        var world = BackoffWorld(token: token, seed: seed)
        for _ in 0..<3000 {
            world.step()
            #expect(world.stuck.isEmpty, "seed \(seed): \(world.stuck)")
        }
        world.settle()
        #expect(world.pushes.isEmpty, "seed \(seed): \(world.pushes)")
        #expect(world.backoff.isEmpty, "seed \(seed)")
    }
}

/// One device and its pushes, moved as a client moves them.
private struct BackoffWorld {
    enum Place: Equatable {
        case queued
        case delayed(UInt64)
        case flying
    }

    struct State {
        var place: Place
        var kind: TokenBackoff.Kind
        var isSuperseded = false
    }

    let token: DeviceToken
    var random: SmallRandom
    var backoff = TokenBackoff()
    var pushes: [Int32: State] = [:]
    var now: UInt64 = 0
    var last: Int32 = 0

    init(token: DeviceToken, seed: UInt64) {
        self.token = token
        random = SmallRandom(seed: seed)
    }

    /// Pushes without a clock while nobody of the device has one.
    var stuck: [Int32] {
        let waits = pushes.filter { $0.value.place == .delayed(.max) }
        return waits.count == pushes.count ? Array(waits.keys) : []
    }

    private func pick(_ matches: (State) -> Bool) -> [Int32] { pushes.filter { matches($0.value) }.keys.sorted() }

    mutating func step() {
        now += random.next(in: 0...20)
        let flying = pick { $0.place == .flying }.randomElement(using: &random)
        switch random.next(in: 0...6) {
        case 0: come()
        case 1, 2: submit()
        case 3: if let flying { refuse(flying) }
        case 4: if let flying { end(flying, isOver: random.next(in: 0...2) == 0) }
        // Lost with its connection, and sent again.
        case 5: if let flying { pushes[flying]?.place = .queued }
        // Expired or withdrawn where it waits.
        default:
            if let slot = pick({ $0.place != .flying }).randomElement(using: &random) { end(slot, isOver: false) }
        }
    }

    mutating func settle() {
        for _ in 0..<1000 where !pushes.isEmpty || !backoff.isEmpty {
            now += 1000
            submit()
            for slot in pick({ $0.place == .flying }) { end(slot, isOver: true) }
            backoff.sweep(nowNanos: now &+ 100_000_000_000)
        }
    }

    private mutating func come() {
        guard pushes.count < 12 else { return }
        last += 1
        let kinds = [TokenBackoff.Kind(.alert), .init(.alert, collapseID: [1]), .init(.background)]
        let kind = kinds[Int(random.next(in: 0...2))]
        pushes[last] = State(place: .queued, kind: kind)
        // The client asks the table at once where the token backs off.
        if let wait = backoff.wait(token, kind, last, order: UInt64(last)) { apply(wait, last) }
    }

    private mutating func submit() {
        for slot in pick({ if case .delayed(let due) = $0.place { due <= now } else { false } }) {
            pushes[slot]?.place = .queued
        }
        for slot in pick({ $0.place == .queued }) {
            guard let state = pushes[slot] else { continue }
            if state.isSuperseded {
                end(slot, isOver: false)
            } else if let wait = backoff.asks(token, state.kind, slot, order: UInt64(slot), nowNanos: now) {
                apply(wait, slot)
            } else {
                pushes[slot]?.place = .flying
            }
        }
    }

    private mutating func refuse(_ slot: Int32) {
        guard let kind = pushes[slot]?.kind else { return }
        let due = now + random.next(in: 1...50)
        apply(backoff.refused(token, kind, slot, order: UInt64(slot), dueNanos: due), slot)
    }

    private mutating func apply(_ wait: TokenBackoff.Wait, _ slot: Int32) {
        pushes[slot]?.place = .delayed(wait.dueNanos)
        if let old = wait.superseded {
            pushes[old]?.isSuperseded = true
            pushes[old]?.place = .delayed(now)
        }
        if let next = wait.next { pushes[next.slot]?.place = .delayed(next.dueNanos) }
    }

    private mutating func end(_ slot: Int32, isOver: Bool) {
        pushes[slot] = nil
        if let turn = backoff.ended(token, slot, isOver: isOver), pushes[turn.slot]?.place != .flying {
            pushes[turn.slot]?.place = .delayed(turn.dueNanos)
        }
    }
}

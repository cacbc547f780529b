// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Support
import Testing

@Suite(.timeLimit(.minutes(10)))
struct LoopTimerTests {
    private static let milli: UInt64 = 1_000_000

    @Test func firesInOrderOfDeadlinesAndNeverEarly() async throws {
        let test = try TestLoop()
        let facts = Facts<Int>()
        await test.run { test in
            for (index, delay) in [30, 10, 20, 1, 40].enumerated() {
                let deadline = test.loop.nowNanos + UInt64(delay) * Self.milli
                let timer = LoopTimer(loop: test.loop) {
                    facts.record(Loop.monotonicNanos() < deadline ? -1 : index)
                }
                timer.arm(afterNanos: UInt64(delay) * Self.milli)
                test.keep(timer)
            }
        }
        var order: [Int] = []
        for _ in 0..<5 { order.append(try await facts.next()) }
        #expect(order == [3, 1, 2, 0, 4])
        await test.end()
    }

    @Test func doesNotFireWhenCancelled() async throws {
        let test = try TestLoop()
        let facts = Facts<String>()
        await test.run { test in
            let cancelled = LoopTimer(loop: test.loop) { facts.record("cancelled") }
            cancelled.arm(afterNanos: Self.milli)
            #expect(cancelled.isArmed)
            cancelled.cancel()
            #expect(!cancelled.isArmed)
            let other = LoopTimer(loop: test.loop) { facts.record("other") }
            other.arm(afterNanos: 20 * Self.milli)
            test.keep(cancelled)
            test.keep(other)
        }
        #expect(try await facts.next() == "other")
        #expect(facts.all == ["other"])
        await test.end()
    }

    @Test func firesOnceAtTheLastDeadlineAfterManyReArms() async throws {
        let test = try TestLoop()
        let facts = Facts<UInt64>()
        let deadline = await test.run { test in
            let timer = LoopTimer(loop: test.loop) { facts.record(Loop.monotonicNanos()) }
            for step in 1...1000 { timer.arm(afterNanos: UInt64(step) * 20_000) }
            let last = test.loop.nowNanos + 1000 * 20_000
            test.keep(timer)
            return last
        }
        #expect(try await facts.next() >= deadline)
        // A second firing would come before this later one.
        let later = Facts<String>()
        await test.run { test in
            let timer = LoopTimer(loop: test.loop) { later.record("later") }
            timer.arm(afterNanos: 10 * Self.milli)
            test.keep(timer)
        }
        _ = try await later.next()
        #expect(facts.all.count == 1)
        await test.end()
    }

    @Test func firesSoonerWhenArmedForAnEarlierDeadline() async throws {
        let test = try TestLoop()
        let facts = Facts<String>()
        await test.run { test in
            let timer = LoopTimer(loop: test.loop) { facts.record("fired") }
            timer.arm(afterNanos: 3_600_000 * Self.milli)
            timer.arm(afterNanos: Self.milli)
            test.keep(timer)
        }
        #expect(try await facts.next() == "fired")
        await test.end()
    }

    @Test func reArmsFromItsOwnCallback() async throws {
        let test = try TestLoop()
        let facts = Facts<Int>()
        await test.run { test in
            let ticker = Ticker(loop: test.loop, facts)
            test.keep(ticker)
        }
        for number in 1...5 { #expect(try await facts.next() == number) }
        await test.end()
    }

    @Test func survivesItsOwnReleaseInsideTheCallback() async throws {
        let test = try TestLoop()
        let facts = Facts<String>()
        await test.run { test in
            let holder = Holder()
            let timer = LoopTimer(loop: test.loop) {
                holder.timer = nil
                facts.record("released")
            }
            holder.timer = timer
            timer.arm(afterNanos: 1)
        }
        #expect(try await facts.next() == "released")
        await test.end()
    }

    @Test func takesTheLongestWaitWithoutOverflow() async throws {
        let test = try TestLoop()
        await test.run { test in
            let timer = LoopTimer(loop: test.loop) {}
            timer.arm(afterNanos: .max)
            #expect(timer.isArmed)
            test.keep(timer)
        }
        await test.end()
    }
}

private final class Holder {
    var timer: LoopTimer?
}

private final class Ticker {
    private var timer: LoopTimer?
    private var count = 0

    init(loop: Loop, _ facts: Facts<Int>) {
        timer = LoopTimer(loop: loop) { [unowned self] in
            self.count += 1
            facts.record(self.count)
            if self.count < 5 { self.timer?.arm(afterNanos: 1000) }
        }
        timer?.arm(afterNanos: 1000)
    }
}

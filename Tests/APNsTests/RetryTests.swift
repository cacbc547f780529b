// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Testing

@testable import APNs

@Suite struct RetryTests {
    let id = PushID(high: 7, low: 9)

    func answer(_ status: Int, _ reason: String, retryAfter: UInt32? = nil) -> AttemptEnd {
        .answer(
            status: status, reason: APNsReason(bytes: reason.utf8), time: .absent, retryAfterSeconds: retryAfter)
    }

    @Test func finalAnswersFinish() {
        let policy = RetryPolicy(APNsLimits())
        var history = PushHistory()
        var random = SmallRandom(seed: 1)
        #expect(
            policy.next(
                after: answer(200, ""), history: &history, id: id, isRepeatable: true, leftMs: 1, random: &random)
                == .finish(.accepted(apnsID: id)))
        let gone = policy.next(
            after: .answer(
                status: 410, reason: APNsReason(bytes: "Unregistered".utf8), time: .ms(5), retryAfterSeconds: nil),
            history: &history, id: id, isRepeatable: true, leftMs: 1, random: &random)
        #expect(
            gone
                == .finish(
                    .rejected(status: 410, reason: APNsReason(bytes: "Unregistered".utf8), time: .ms(5))))
    }

    @Test func unprocessedIsResentAtOnceThenSpaced() {
        let policy = RetryPolicy(APNsLimits())
        var history = PushHistory()
        var random = SmallRandom(seed: 1)
        for _ in 0..<3 {
            #expect(
                policy.next(
                    after: .unprocessed(.refused), history: &history, id: id, isRepeatable: true, leftMs: .max,
                    random: &random)
                    == .resendNow)
        }
        guard
            case .resendAfter = policy.next(
                after: .unprocessed(.refused), history: &history, id: id, isRepeatable: true, leftMs: .max,
                random: &random)
        else {
            Issue.record("the fourth refusal must wait")
            return
        }
    }

    @Test func unknownIsTriedOnlySoOften() {
        var limits = APNsLimits()
        limits.unknownTries = 2
        let policy = RetryPolicy(limits)
        var history = PushHistory()
        var random = SmallRandom(seed: 1)
        func step() -> NextStep {
            policy.next(
                after: .unknown(.timeout), history: &history, id: id, isRepeatable: true, leftMs: .max, random: &random)
        }
        #expect(step() == .resendNow)
        #expect(step() == .resendNow)
        #expect(step() == .finish(.unknown(.timeout, apnsID: id)))
    }

    @Test func pushesThatCouldShowTwiceAreNotRetried() throws {
        let policy = RetryPolicy(APNsLimits())
        var history = PushHistory()
        var random = SmallRandom(seed: 1)
        #expect(
            policy.next(
                after: .unknown(.reset), history: &history, id: id, isRepeatable: false, leftMs: .max, random: &random)
                == .finish(.unknown(.reset, apnsID: id)))
        #expect(try !PushHeaders(topic: "a.b", pushType: .alert).isRepeatable)
        #expect(try PushHeaders(topic: "a.b", pushType: .alert, collapseID: [65]).isRepeatable)
        #expect(try PushHeaders(topic: "a.b", pushType: .background, priority: .considerate).isRepeatable)
    }

    @Test func overloadedServerIsAskedAgainUntilExpiry() {
        let policy = RetryPolicy(APNsLimits())
        var history = PushHistory()
        var random = SmallRandom(seed: 3)
        guard
            case .resendAfter(let nanos) = policy.next(
                after: answer(503, "ServiceUnavailable", retryAfter: 7), history: &history, id: id, isRepeatable: true,
                leftMs: 60_000,
                random: &random)
        else {
            Issue.record("503 must be tried again")
            return
        }
        #expect(nanos >= 7_000_000_000)
        #expect(
            policy.next(
                after: answer(429, "TooManyRequests", retryAfter: 7), history: &history, id: id, isRepeatable: true,
                leftMs: 6_000,
                random: &random) == .finish(.expired))
    }

    @Test func longWaitIsHandedBackWhereTheCallerWantsIt() {
        var limits = APNsLimits()
        limits.holdNanos = 5_000_000_000
        let policy = RetryPolicy(limits)
        var history = PushHistory()
        var random = SmallRandom(seed: 3)
        guard
            case .finish(.deferred(503, _, let ms)) = policy.next(
                after: answer(503, "", retryAfter: 60), history: &history, id: id, isRepeatable: true, leftMs: .max,
                random: &random)
        else {
            Issue.record("a minute is more than five seconds")
            return
        }
        #expect(ms >= 60_000)
    }

    @Test func `a device waits five minutes at most after a 429 without a time, and never a moment only`() {
        let policy = RetryPolicy(APNsLimits())
        var random = SmallRandom(seed: 3)
        var longest: UInt64 = 0
        for delays in 0..<40 as Range<UInt32> {
            var history = PushHistory()
            history.delays = delays
            guard
                case .resendAfter(let nanos) = policy.next(
                    after: answer(429, "TooManyRequests"), history: &history, id: id, isRepeatable: true, leftMs: .max,
                    random: &random)
            else {
                Issue.record("429 must be tried again")
                return
            }
            #expect(nanos >= min(500_000_000 << UInt64(min(delays, 30)), 300_000_000_000) / 2)
            longest = max(longest, nanos)
        }
        #expect(longest <= 300_000_000_000)
    }

    @Test func refusedCredentialKeepsThePush() {
        let policy = RetryPolicy(APNsLimits())
        var history = PushHistory()
        var random = SmallRandom(seed: 3)
        #expect(
            policy.next(
                after: answer(403, "InvalidProviderToken"), history: &history, id: id, isRepeatable: true, leftMs: 5,
                random: &random)
                == .awaitCredential)
    }

    @Test func connectsAreSpacedAndBackedOff() {
        var pacer = ConnectPacer(
            spacingNanos: 1000, refillSpacingNanos: 1000, burst: 1000, refillNanos: 1000,
            backoff: Backoff(baseNanos: 10_000, capNanos: 1_000_000), waitingCapNanos: 100_000)
        var random = SmallRandom(seed: 5)
        #expect(pacer.mayConnect(nowNanos: 0))
        pacer.began(nowNanos: 0, random: &random)
        #expect(!pacer.mayConnect(nowNanos: 499))
        #expect(pacer.mayConnect(nowNanos: 1000))
        // A thousand failures of an endpoint that refuses at once cost a bounded number of connects.
        var now: UInt64 = 0
        var connects = 0
        while now < 50_000_000 {
            if pacer.mayConnect(nowNanos: now) {
                connects += 1
                pacer.began(nowNanos: now, random: &random)
                pacer.failed(nowNanos: now, random: &random)
            }
            now += 500
        }
        #expect(connects < 400, "\(connects)")
        // With pushes to send the next one is near, and never later than without.
        let waiting = pacer.notBeforeNanos(pushesWait: true)
        #expect(waiting <= now + 100_000 && waiting <= pacer.notBeforeNanos(pushesWait: false))
        pacer.proved()
        #expect(pacer.failures == 0)
    }

    @Test func burstOfConnectsIsFollowedByASlowPace() {
        var pacer = ConnectPacer(
            spacingNanos: 1000, refillSpacingNanos: 1000, burst: 3, refillNanos: 100_000,
            backoff: Backoff(baseNanos: 1, capNanos: 1), waitingCapNanos: 1)
        var random = SmallRandom(seed: 5)
        var now: UInt64 = 1_000_000
        var begun: [UInt64] = []
        while begun.count < 6 {
            if pacer.mayConnect(nowNanos: now) {
                begun.append(now)
                pacer.began(nowNanos: now, random: &random)
            }
            now += 100
        }
        #expect(begun[2] - begun[0] <= 2_200, "\(begun)")
        for index in 4..<6 { #expect(begun[index] - begun[index - 1] >= 50_000, "\(begun)") }
    }

    @Test func poolGrowsOnlyWhenStreamsAndQueuePersist() {
        var limits = APNsLimits()
        limits.connectionsMax = 2
        limits.growAfterNanos = 100
        var policy = PoolPolicy(limits)
        var summary = PoolPolicy.Summary()
        same(policy.wantsConnection(summary, nowNanos: 0), true)
        summary.live = 1
        summary.waiting = 5
        summary.room = 1
        same(policy.wantsConnection(summary, nowNanos: 0), false)
        summary.room = 0
        same(policy.wantsConnection(summary, nowNanos: 10), false)
        same(policy.wantsConnection(summary, nowNanos: 109), false)
        same(policy.wantsConnection(summary, nowNanos: 110), true)
        summary.live = 2
        same(policy.wantsConnection(summary, nowNanos: 1000), false)
        summary.opening = 1
        summary.replacing = 1
        same(policy.wantsConnection(summary, nowNanos: 1000), false)
        summary.opening = 0
        same(policy.wantsConnection(summary, nowNanos: 1000), true)
        // Where the limiter is what holds, another connection would not help.
        summary = PoolPolicy.Summary()
        summary.live = 1
        summary.waiting = 5
        summary.hasLeave = false
        same(policy.wantsConnection(summary, nowNanos: 2000), false)
        same(policy.wantsConnection(summary, nowNanos: 9000), false)
        // Beyond a handful only a queue that lasts is worth another one.
        limits.connectionsMax = 16
        policy = PoolPolicy(limits)
        summary.hasLeave = true
        summary.live = 4
        summary.waitNanos = 50
        same(policy.wantsConnection(summary, nowNanos: 9000), false)
        same(policy.wantsConnection(summary, nowNanos: 9200), false)
        summary.waitNanos = 500
        same(policy.wantsConnection(summary, nowNanos: 9200), false)
        same(policy.wantsConnection(summary, nowNanos: 9300), true)
        summary.live = 1
        // What the only connection refused wants another one at once.
        summary.hasLeave = true
        summary.room = 7
        summary.wantsAnother = true
        same(policy.wantsConnection(summary, nowNanos: 9001), true)
    }

    @Test func poolComesBackToItsSizeAfterGoAway() {
        var limits = APNsLimits()
        limits.connectionsMax = 4
        limits.growAfterNanos = 1_000_000_000_000
        var policy = PoolPolicy(limits)
        // All four are told to go, one after the other.
        for live in [4, 3, 2, 1] { policy.lost(live: live, nowNanos: 100) }
        var summary = PoolPolicy.Summary()
        summary.waiting = 9
        // No patience, and none waits for the one before to prove itself.
        for live in 0...3 {
            summary.live = live
            summary.opening = live
            same(policy.wantsConnection(summary, nowNanos: 200), true, "\(live)")
            same(policy.isRefill(live: live, nowNanos: 200), true, "\(live)")
        }
        summary.live = 4
        same(policy.wantsConnection(summary, nowNanos: 200), false)
        same(policy.isRefill(live: 4, nowNanos: 200), false)
        // Where nobody waits for them, or those there are have room, they are not missed.
        summary.live = 2
        summary.waiting = 0
        same(policy.wantsConnection(summary, nowNanos: 200), false)
        summary.waiting = 9
        summary.room = 1
        same(policy.wantsConnection(summary, nowNanos: 200), false)
        // Later the size has to be found anew.
        summary.room = 0
        same(policy.wantsConnection(summary, nowNanos: 200), true)
        same(policy.wantsConnection(summary, nowNanos: 5_000_000_100), false)
        // Another loss tells of the smaller pool that there is then.
        policy.lost(live: 2, nowNanos: 6_000_000_000)
        same(policy.isRefill(live: 2, nowNanos: 6_000_000_001), false)
        same(policy.isRefill(live: 1, nowNanos: 6_000_000_001), true)
    }

    @Test func refillsFollowEachOtherQuicklyWhileTheBurstLasts() {
        var pacer = ConnectPacer(
            spacingNanos: 100_000, refillSpacingNanos: 1000, burst: 3, refillNanos: 1_000_000,
            backoff: Backoff(baseNanos: 1, capNanos: 1), waitingCapNanos: 1)
        var random = SmallRandom(seed: 5)
        var now: UInt64 = 10_000_000
        var begun: [UInt64] = []
        while begun.count < 6 {
            if pacer.mayConnect(nowNanos: now) {
                begun.append(now)
                pacer.began(isRefill: true, nowNanos: now, random: &random)
            }
            now += 100
        }
        for index in 1...3 {
            let gap = begun[index] - begun[index - 1]
            #expect(gap >= 500 && gap <= 1_100, "\(begun)")
        }
        for index in 4...5 { #expect(begun[index] - begun[index - 1] >= 500_000, "\(begun)") }
    }

    @Test func connectionsThatServedAndWereEndedInOrderCostNoConnect() {
        var pacer = ConnectPacer(
            spacingNanos: 100_000, refillSpacingNanos: 1000, burst: 3, refillNanos: 1_000_000,
            backoff: Backoff(baseNanos: 1_000_000, capNanos: 1_000_000), waitingCapNanos: 1_000_000)
        var random = SmallRandom(seed: 5)
        var now: UInt64 = 10_000_000
        for _ in 0..<50 {
            #expect(pacer.mayConnect(nowNanos: now))
            pacer.began(isRefill: true, nowNanos: now, random: &random)
            pacer.served()
            now += 1_000
        }
        // What was used up otherwise is not waited for either, but a failure is.
        for _ in 0..<4 {
            pacer.began(nowNanos: now, random: &random)
            now += 100_000
        }
        #expect(!pacer.mayConnect(pushesWait: true, nowNanos: now))
        pacer.served()
        #expect(pacer.mayConnect(pushesWait: true, nowNanos: now))
        pacer.began(nowNanos: now, random: &random)
        pacer.failed(nowNanos: now, random: &random)
        let later = pacer.notBeforeNanos(pushesWait: true)
        pacer.served()
        #expect(pacer.notBeforeNanos(pushesWait: true) == later)
    }

    @Test func suspectsGetAConnectionOnlyWhenThereAreAny() {
        var policy = PoolPolicy(APNsLimits(), route: .suspect)
        var summary = PoolPolicy.Summary()
        same(policy.wantsConnection(summary, nowNanos: 0), false)
        summary.waiting = 1
        same(policy.wantsConnection(summary, nowNanos: 0), true)
        summary.live = 1
        same(policy.wantsConnection(summary, nowNanos: 1), false)
        same(policy.wantsConnection(summary, nowNanos: 10_000_000_000), false)
    }
}

extension RetryPolicy {
    /// With the table's own rule for the answer.
    func next(
        after end: AttemptEnd, history: inout PushHistory, id: PushID, isRepeatable: Bool, leftMs: Int64,
        random: inout SmallRandom
    ) -> NextStep {
        next(
            after: end, rule: end.rule, history: &history, id: id, isRepeatable: isRepeatable, leftMs: leftMs,
            random: &random)
    }
}

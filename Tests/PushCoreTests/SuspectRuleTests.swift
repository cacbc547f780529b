// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@Suite struct SuspectRuleTests {
    private static let day: Int64 = 86_400_000
    private static let now: Int64 = 1_700_000_000_000

    @Test func onlyTheLongSilentAreSuspectByDefault() {
        let rule = SuspectRule()
        #expect(!rule.isSuspect(boundMs: Self.now, nowMs: Self.now))
        #expect(!rule.isSuspect(boundMs: Self.now - 60 * Self.day + 1, nowMs: Self.now))
        #expect(rule.isSuspect(boundMs: Self.now - 60 * Self.day, nowMs: Self.now))
        #expect(rule.isSuspect(boundMs: 0, nowMs: Self.now))
    }

    @Test func theNewAreSuspectWhereAskedFor() {
        var rule = SuspectRule()
        rule.unconfirmedMs = 5000
        #expect(rule.isSuspect(boundMs: Self.now - 4999, nowMs: Self.now))
        #expect(!rule.isSuspect(boundMs: Self.now - 5000, nowMs: Self.now))
        // A device whose clock is ahead of ours has bound just now.
        #expect(rule.isSuspect(boundMs: Self.now + Self.day, nowMs: Self.now))
    }

    @Test func zeroSwitchesOff() {
        var rule = SuspectRule()
        rule.silentMs = 0
        for boundMs in [Int64.min, 0, Self.now, .max] { #expect(!rule.isSuspect(boundMs: boundMs, nowMs: Self.now)) }
    }
}

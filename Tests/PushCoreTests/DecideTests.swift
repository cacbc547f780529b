import PushCore
import Testing

@Suite struct DecideTests {
    @Test(arguments: DecisionRow.all)
    func decidesAsTheCasesSay(_ row: DecisionRow) {
        var trace = NoTrace()
        #expect(row.decide(&trace) == row.expected)
    }

    @Test(arguments: DecisionRow.all)
    func tracingChangesNothing(_ row: DecisionRow) {
        var none = NoTrace()
        var recorded = RecordedTrace()
        #expect(row.decide(&none) == row.decide(&recorded))
        // The steps stand in the order of the contract.
        let steps = recorded.steps.map(\.step.rawValue)
        #expect(steps == steps.sorted())
    }

    @Test func everyCaseHasItsOwnNameAndItsRule() {
        let rows = DecisionRow.all
        #expect(Set(rows.map(\.name)).count == rows.count)
        #expect(rows.count >= 300)
        let rules = Set(["5c.4", "5c.7"] + (1...34).map { "row \($0)" } + (1...11).map { "B\($0)" })
        #expect(Set(rows.map(\.source)).isSubset(of: rules))
        // One case may show two rules, but then under two names.
        #expect(Set(rows.map { [$0.message, $0.recipient, $0.app] }).count > 300)
    }

    @Test func theTraceEndsTheAlertStepsAtTheFirstDeny() {
        var trace = RecordedTrace()
        let row = DecisionRow("row 6 | muted | group | mute=5 dnd=00:00-23:59 phone=fg |  | conv_muted +0 phone=quiet")
        #expect(row.decide(&trace) == row.expected)
        #expect(trace.steps.map(\.step) == [.expiry, .read, .veto, .mute, .quietHours, .badge, .routes, .token])
        #expect(trace.steps[3].outcome == "conv_muted")
        #expect(trace.steps[3].input == "level 5 by user, mention none, forced false")
    }

    @Test func theTraceNamesNoToken() {
        var trace = RecordedTrace()
        _ = DecisionRow("row 26 | two | p2p | alert:phone voip:phone | | allow +1 phone=apns").decide(&trace)
        #expect(!trace.steps.contains { $0.input.contains("aa0") || $0.outcome.contains("aa0") })
    }

    @Test func extremeTimesTrapNowhere() {
        for now in [Int64.min, Int64.min + 1, -1, 0, 1, .max] {
            var world = World()
            world.readRecipient("phone=bg,l")
            world.recipient.presence[0].backgroundSinceMs = now == .max ? .min : .max
            world.readRecipient("alert:phone")
            world.readRecipient("dnd=22:00-08:00")
            world.message.expireAtMs = .max
            let minute = QuietHours(world.recipient, policy: world.policy, zones: TestZones(), now: now).minute
            #expect((0..<1440).contains(minute))
            _ = decide(
                world.message, sentMs: now, for: world.recipient, policy: world.policy, zones: TestZones(), now: now)
        }
    }

    @Test(arguments: [
        (Int64(0), 0, 0), (-1, 0, 1439), (86_399_999, 0, 1439), (86_400_000, 0, 0), (0, -60, 1439), (0, 14 * 3600, 840),
        (59_999, 0, 0), (60_000, 0, 1), (30_000, 30, 1), (0, 20_700, 345),
    ])
    func theMinuteOfTheDayIsTheLocalOne(ms: Int64, offset: Int, minute: Int) {
        #expect(QuietHours.minuteOfDay(ms, offset: offset) == minute)
    }

    @Test func theSenderAndTheExcludedAreNotMeant() {
        var message = World().message
        message.to = .init(uids: ["a", "b", "you"], exclude: ["b"])
        #expect(["a", "b", "you"].filter { message.isMeant(for: $0) } == ["a"])
    }

    @Test(arguments: [
        (Recheck(), Int64(999), Reason?.none),
        (Recheck(isRead: true, isRevoked: true, isTokenOwned: false), 1000, .expired),
        (Recheck(isRead: true, isRevoked: true, isTokenOwned: false), 0, .alreadyRead),
        (Recheck(isRevoked: true, isTokenOwned: false), 0, .revoked),
        (Recheck(isTokenOwned: false), 0, .tokenMoved),
    ])
    func theSecondLookBeforeSending(_ look: Recheck, now: Int64, reason: Reason?) {
        #expect(look.reason(expireAtMs: 1000, now: now) == reason)
    }
}

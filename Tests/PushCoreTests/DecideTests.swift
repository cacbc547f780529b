// SPDX-License-Identifier: Apache-2.0
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
        let rules = Set(
            ["5c.4", "5c.7", "N2", "N3", "user-state"] + (1...34).map { "row \($0)" } + (1...11).map { "B\($0)" })
        #expect(Set(rows.map(\.source)).isSubset(of: rules))
        // One case may show two rules, but then under two names.
        #expect(Set(rows.map { [$0.message, $0.recipient, $0.app] }).count > 300)
    }

    @Test func theTraceEndsTheAlertStepsAtTheFirstDeny() {
        var trace = RecordedTrace()
        let row = DecisionRow("row 6 | muted | group | mute=5 dnd=00:00-23:59 phone=fg |  | conv_muted +0 phone=quiet")
        #expect(row.decide(&trace) == row.expected)
        #expect(trace.steps.map(\.step) == [.expiry, .read, .veto, .mute, .dnd, .badge, .routes, .token])
        #expect(trace.steps[3].outcome == "conv_muted")
        #expect(trace.steps[3].input == "level 5 of the user, no mention")
        // Times and weekdays are readable, and the badge step gives its cause.
        #expect(trace.steps[0].input.hasSuffix(", now 2023-11-15T12:00:00.000Z"), "\(trace.steps[0])")
        #expect(trace.steps[4].input.contains(/active at [A-Z][a-z]{2} \d\d:\d\d of its zone, level 5, no mention/))
        #expect(trace.steps[5].input == "vetoed or muted")
    }

    /// A user's own mute and quiet hours have an end. A group's mute and an allowed alert have none.
    @Test(
        arguments: [
            ("mute=5", nil, nil), ("mute=5", World.midnight * 2, World.midnight * 2), ("group=5", nil, nil),
            ("dnd=00:00-23:59", nil, World.midnight + 1439 * 60_000), ("", nil, nil), ("mute=5", .max, nil),
            ("snooze=5000", nil, World.midnight + 12 * 3_600_000 + 5000), ("levels.group=5", nil, nil),
        ] as [(String, Int64?, Int64?)])
    func theFactsNameTheEndOfTheDenial(words: String, muteEndMs: Int64?, expected: Int64?) {
        var world = World()
        world.readMessage("group")
        if !words.isEmpty { world.readRecipient(words[...]) }
        world.recipient.mute?.untilMs = muteEndMs
        var facts = DecisionFacts()
        _ = decide(
            world.message, sentMs: world.sentMs, for: world.recipient, policy: world.policy, zones: TestZones(),
            now: world.now, facts: &facts)
        #expect(facts.deniedUntilMs == expected)
    }

    /// A trace of the worker and `explain` name what set the level, and a snooze.
    @Test(
        arguments: [
            ("group", "levels.group=5", "level 5 of the user's settings, no mention", "conv_muted", "no active window"),
            ("group", "mute=1 levels.group=5", "level 1 of the user, no mention", "conv_muted", "no active window"),
            ("p2p", "snooze=60000", "no mute level is set, no mention", "let through", "snoozed"),
        ])
    func `the steps name the user's level for a type, and a snooze`(
        type: String, words: String, mute: String, outcome: String, dnd: String
    ) {
        var world = World()
        for word in type.split(separator: " ") { world.readMessage(word) }
        for word in words.split(separator: " ") { world.readRecipient(word) }
        var trace = RecordedTrace()
        _ = decide(
            world.message, sentMs: world.sentMs, for: world.recipient, policy: world.policy, zones: TestZones(),
            now: world.now, trace: &trace)
        #expect(trace.steps[3].input == mute && trace.steps[3].outcome == outcome)
        let facts = trace.facts.steps
        #expect(facts[3].input == mute && facts[3].outcome == outcome && facts[4].input == dnd)
        let isSnoozed = dnd == "snoozed"
        #expect(trace.steps[4].input.hasPrefix(isSnoozed ? "snoozed until 2023-11-15T12:01:00.000Z, level 5" : dnd))
        var unread = trace.facts
        unread.insert(.settingsUnread)
        // Without the settings nobody knows the level that comes after the group's.
        #expect(unread.steps[3].outcome == (isSnoozed ? "not looked at" : "conv_muted"))
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
            let minute = DNDState(world.recipient, policy: world.policy, zones: TestZones(), now: now).weekMinute
            #expect((0..<7 * 1440).contains(minute))
            _ = decide(
                world.message, sentMs: now, for: world.recipient, policy: world.policy, zones: TestZones(), now: now)
        }
    }

    @Test(arguments: [
        (Int64(0), 0, 0), (-1, 0, 1439), (86_399_999, 0, 1439), (86_400_000, 0, 0), (0, -60, 1439), (0, 14 * 3600, 840),
        (59_999, 0, 0), (60_000, 0, 1), (30_000, 30, 1), (0, 20_700, 345),
    ])
    func theMinuteOfTheDayIsTheLocalOne(ms: Int64, offset: Int, minute: Int) {
        #expect(DNDState.minuteOfWeek(ms, offset: offset) % 1440 == minute)
    }

    @Test func theSenderAndTheExcludedAreNotMeant() {
        var message = World().message
        message.to = .init(uids: ["a", "b", "you"], exclude: ["b"])
        #expect(["a", "b", "you"].filter { message.isMeant(for: $0) } == ["a"])
    }

    @Test(arguments: [
        (SendFacts(), Int64(999), Reason?.none),
        (SendFacts(isRead: true, isRevoked: true, isTokenOwned: false), 1000, .expired),
        (SendFacts(isRead: true, isRevoked: true, isTokenOwned: false), 0, .alreadyRead),
        (SendFacts(isRevoked: true, isTokenOwned: false), 0, .revoked),
        (SendFacts(isTokenOwned: false), 0, .tokenMoved),
    ])
    func theLastCheckBeforeSending(_ facts: SendFacts, now: Int64, reason: Reason?) {
        #expect(facts.reason(expireAtMs: 1000, now: now) == reason)
    }

    /// Step 2 ends all but one: an expired revoke still takes its target off the badge.
    @Test(arguments: [
        (Message.Kind.message, Message.Revoke.Badge.decrease, false), (.revoke, .decrease, true),
        (.revoke, .keep, false),
        (.revoke, .count, false),
    ])
    func onlyARevokeThatDecreasesIsClaimedThoughItExpired(
        kind: Message.Kind, badge: Message.Revoke.Badge, needsClaim: Bool
    ) {
        var world = World()
        world.readRecipient("alert:phone")
        world.message.kind = kind
        if kind == .revoke { world.message.revoke = .init(targetMsgID: "m0", badge: badge) }
        func decide() -> Decision {
            PushCore.decide(
                world.message, sentMs: world.sentMs, for: world.recipient, policy: world.policy, zones: TestZones(),
                now: world.now)
        }
        #expect(decide().needsClaim)
        world.message.expireAtMs = world.now
        #expect(decide().alert == .deny(.expired) && decide().needsClaim == needsClaim && decide().routes.isEmpty)
    }

    /// What the claim found later is as if it had been known: only devices that were to be pushed end with a record of
    /// their own.
    @Test(arguments: [
        ("alert:phone", "", "phone=revoked"), ("phone=fg alert:phone", "", "phone=quiet"),
        ("phone=fg alert:phone alert:pad", "", "phone=quiet pad=revoked"),
        ("phone=fg alert:phone alert:pad", "strategy=4", "phone=quiet pad=revoked"),
        ("phone=fg,open alert:phone", "", "phone=quiet"), ("alert:phone", "strategy=3", "phone=connection_only"),
        ("nodesktop pc=fg alert:phone", "", "phone=revoked pc=quiet"),
        ("nodesktop hold=30 pc=fg alert:phone", "", "phone=revoked pc=quiet"),
        ("alertsoff:phone alert:pad", "", "phone=revoked pad=revoked"),
    ])
    func aRevokeFoundJustBeforeSendingTakesTheAlertFromEveryWay(recipient: String, app: String, ways: String) {
        let row = World(DecisionRow("row 18 | late revoke | | \(recipient) | \(app) |"))
        let decision = PushCore.decide(
            row.message, sentMs: row.sentMs, for: row.recipient, policy: row.policy, zones: TestZones(), now: row.now)
        func words(_ decision: Decision) -> String {
            decision.routes.map { "\($0.device)=\($0.way.word)" }.joined(separator: " ")
        }
        let late = decision.withoutAlerts(isRead: false, isRevoked: true)
        #expect(words(late) == ways)
        #expect(late.alert == decision.alert && late.counted == decision.counted)
        #expect(decision.withoutAlerts(isRead: false, isRevoked: false) == decision)
        // Read comes first, as in step 6.
        let read = decision.withoutAlerts(isRead: true, isRevoked: true)
        #expect(words(read) == ways.replacing("revoked", with: "already_read"))
        // The same live devices, and none of them alerting, as where it had been known from the start.
        var known = row.recipient
        known.isRevoked = true
        let quiet = PushCore.decide(
            row.message, sentMs: row.sentMs, for: known, policy: row.policy, zones: TestZones(), now: row.now
        ).routes
        #expect(quiet.allSatisfy { late.routes.contains($0) })
        let connections = late.routes.filter { if case .connection = $0.way { true } else { false } }
        #expect(connections.count == quiet.count)
    }

    @Test func anAlertHasNoBadgeIfTheClientCounts() {
        var policy = AppPolicy(id: "im", topic: "t")
        policy.badgeCap = 5
        #expect(BadgeRule.besideAlert(7, policy) == 5 && BadgeRule.besideAlert(0, policy) == nil)
        policy.badge = .client
        #expect(BadgeRule.besideAlert(7, policy) == nil)
    }
}

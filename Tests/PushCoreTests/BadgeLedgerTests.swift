// SPDX-License-Identifier: Apache-2.0
import PushCore
import Support
import Testing

@Suite struct BadgeLedgerTests {
    typealias Fact = BadgeLedger.Fact

    @Test func eachCountedMessageIsOne() {
        #expect(value([counted("a", at: 1), counted("b", at: 2), counted("a", at: 1)]) == 2)
    }

    @Test func aReadTakesAwayItsConversationOnly() {
        #expect(value([counted("a", at: 1), counted("b", in: "d", at: 2), read("c", toMs: 5, at: 6)]) == 1)
        #expect(value([counted("a", seq: 4, at: 1), counted("b", seq: 5, at: 2), read("c", toSeq: 4, at: 6)]) == 1)
    }

    @Test func anUncomparableMessageStaysUnread() {
        #expect(value([counted("a", at: 1), read("c", toSeq: 99, at: 6)]) == 1)
    }

    @Test func aRevokeTakesAwayOnlyWhatWasCountedAndUnread() {
        #expect(value([counted("a", at: 1), counted("b", at: 1), revoke("a", at: 2)]) == 1)
        #expect(value([counted("b", at: 1), revoke("never", at: 2)]) == 1)
        #expect(value([counted("a", at: 1), counted("b", at: 9), read("c", toMs: 1, at: 2), revoke("a", at: 3)]) == 1)
    }

    @Test func aReportReplacesWhatItSawAndKeepsWhatCameAfter() {
        #expect(value([counted("a", at: 1), .report(value: 7, clientMs: 5)]) == 7)
        #expect(value([counted("a", at: 1), counted("b", at: 6), .report(value: 7, clientMs: 5)]) == 8)
        #expect(value([.report(value: 7, clientMs: 5), .report(value: 2, clientMs: 4)]) == 7)
        #expect(value([.report(value: 7, clientMs: 5), .report(value: 2, clientMs: 6)]) == 2)
    }

    @Test func aLateReportNeverWipesLaterMessages() {
        #expect(value([counted("a", at: 10), counted("b", at: 11), .report(value: 0, clientMs: 5)]) == 2)
    }

    @Test func aReadNotLaterThanTheReportTakesOnlyWhatCameAfterIt() {
        let facts = [counted("a", at: 1), counted("b", at: 6), Fact.report(value: 3, clientMs: 5)]
        #expect(value(facts + [read("c", toMs: 1, at: 5)]) == 4)
        #expect(value(facts + [read("c", toMs: 9, at: 5)]) == 3)
        #expect(value(facts + [read("c", toMs: 9, at: 7)]) == 2)
    }

    @Test func aRevokeAfterTheReportTakesFromItsTotal() {
        let facts = [counted("a", at: 1), Fact.report(value: 3, clientMs: 5)]
        #expect(value(facts + [revoke("a", at: 4)]) == 3)
        #expect(value(facts + [revoke("a", at: 6)]) == 2)
    }

    @Test func itNeverFallsBelowNothing() {
        #expect(value([counted("a", at: 1), .report(value: 0, clientMs: 5), revoke("a", at: 6)]) == 0)
        #expect(value([.report(value: -5, clientMs: 5)]) == 0)
        #expect(value([.report(value: .max, clientMs: 5), counted("a", at: 6)]) == .max)
    }

    @Test func readsOfReportedMessagesNeverHideLaterOnes() {
        let facts = [counted("a", at: 1), Fact.report(value: 0, clientMs: 5), counted("b", in: "d", at: 6)]
        #expect(value(facts + [read("c", toMs: 1, at: 7)]) == 1)
        #expect(value(facts + [revoke("a", at: 7)]) == 1)
        #expect(value(facts + [revoke("a", at: 7), revoke("b", at: 8)]) == 0)
    }

    @Test(arguments: UInt64(1)...60)
    func anyOrderWithRepeatsGivesTheSameNumber(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let facts = (0..<40).map { _ in Self.randomFact(&random) }
        let expected = value(facts)
        for _ in 0..<20 {
            var told = facts + facts.filter { _ in Bool.random(using: &random) }
            told.shuffle(using: &random)
            #expect(value(told) == expected, "seed \(seed)")
        }
    }

    @Test func badgeZeroIsOmittedWithAnAlertAndSentAlone() {
        #expect(BadgeRule.besideAlert(0, cap: 0) == nil)
        #expect(BadgeRule.besideAlert(3, cap: 0) == 3)
        #expect(BadgeRule.besideAlert(300, cap: 99) == 99)
        #expect(BadgeRule.besideAlert(-4, cap: 99) == nil)
        #expect(BadgeRule.alone(0, cap: 99) == 0)
        #expect(BadgeRule.alone(300, cap: 99) == 99)
    }

    @Test func aPushedNumberIsOvertakenByAHigherOneThatWouldBePushedNow() {
        // What was pushed, the number now, the app's cap and who counts.
        let rows: [(pushed: Int64, newest: Int64, cap: Int64, badge: AppPolicy.BadgeCounter, isOvertaken: Bool)] = [
            (5, 6, 0, .server, true),
            (5, 5, 0, .server, false),
            (5, 4, 0, .server, false),
            (5, 0, 0, .server, false),
            (5, -1, 0, .server, false),
            (98, 100, 99, .server, true),
            (99, 100, 99, .server, false),
            (5, .max, 0, .server, true),
            (5, 6, 0, .client, false),
        ]
        for row in rows {
            var policy = AppPolicy(id: "im", topic: "t")
            policy.badgeCap = row.cap
            policy.badge = row.badge
            #expect(BadgeRule.isOvertaken(row.pushed, newest: row.newest, policy) == row.isOvertaken, "\(row)")
        }
    }

    private func value(_ facts: [Fact]) -> Int64 {
        var ledger = BadgeLedger()
        for fact in facts { ledger.apply(fact) }
        return ledger.value
    }

    private func counted(_ id: String, in conversation: String = "c", seq: Int64? = nil, at sentMs: Int64) -> Fact {
        .counted(msgID: id, conversation: conversation, seq: seq, sentMs: sentMs)
    }

    private func read(_ conversation: String, toSeq seq: Int64? = nil, toMs ms: Int64? = nil, at sentMs: Int64) -> Fact
    {
        .read(conversation: conversation, upTo: .init(seq: seq, ms: ms), sentMs: sentMs)
    }

    private func revoke(_ target: String, at sentMs: Int64) -> Fact {
        .revoke(target: target, sentMs: sentMs)
    }

    private static func randomFact(_ random: inout SeededGenerator) -> Fact {
        let ms = Int64.random(in: 0..<50, using: &random)
        let conversation = Bool.random(using: &random) ? "c" : "d"
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5:
            // A message's facts follow from its id, as they do outside.
            let number = Int64.random(in: 0..<20, using: &random)
            return .counted(
                msgID: "m\(number)", conversation: number % 2 == 0 ? "c" : "d", seq: number % 3 == 0 ? nil : number,
                sentMs: number * 2)
        case 5..<7:
            let bySeq = Bool.random(using: &random)
            return .read(
                conversation: conversation, upTo: .init(seq: bySeq ? ms / 3 : nil, ms: bySeq ? nil : ms), sentMs: ms)
        case 7..<9:
            return .revoke(target: "m\(Int.random(in: 0..<20, using: &random))", sentMs: ms)
        default:
            return .report(value: Int64.random(in: 0..<9, using: &random), clientMs: ms)
        }
    }
}

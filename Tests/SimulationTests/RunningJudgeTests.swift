// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Simulation

/// What is judged while a world runs: commits and bounds.
@Suite("The judge of commits and bounds")
struct RunningJudgeTests {
    private static func event(_ offset: Int64, to uids: [String] = ["u1"]) -> Sent {
        Sent(
            kind: .message, app: "im", eventID: "e\(offset)", messageID: "m\(offset)", conversation: "c", seq: offset,
            recipients: uids, atNanos: 1, sentMs: 1, partition: 0, offset: offset)
    }

    private static func observed(
        outcomes: [(event: String, uid: String, verdict: String)] = [],
        handedOn: [(event: String, uids: [String]?)] = []
    ) -> Observed {
        var observed = Observed()
        for (event, uid, verdict) in outcomes {
            observed.outcomes.append(
                Observed.Outcome(
                    atNanos: 1, eventID: event, uid: uid, device: "", verdict: verdict, reason: "", pid: "", badge: nil)
            )
        }
        observed.handedOn = handedOn.map { Observed.HandOn(atNanos: 1, eventID: $0.event, key: "", uids: $0.uids) }
        return observed
    }

    private static func violations(_ sent: [Sent], _ observed: Observed, offset: Int64) -> [Violation] {
        var judge = CommitJudge()
        judge.didCommit("im.events", 0, offset, sent: sent, states: [], observed)
        return judge.violations
    }

    @Test func `odd times must be counted, and markers must not count as deleted records`() {
        let text = """
            # TYPE carillon_kafka_odd_times_total counter
            carillon_kafka_odd_times_total{topic="im.events"} 3
            carillon_kafka_gap_records_total{topic="im.events"} 0

            """
        func found(_ text: String, written: Int) -> Int {
            var judge = MetricsJudge([Array(text.utf8)])
            judge.checkGaps()
            judge.checkOddTimes("im.events", written: written, hasLost: false)
            return judge.violations.count
        }
        #expect(found(text, written: 2) == 0 && found(text, written: 3) == 0)
        #expect(found(text, written: 4) == 1 && found(text, written: 0) == 1)
        #expect(found(text.replacing("} 0", with: "} 1"), written: 3) == 1)
    }

    @Test func aCommitAfterTheOutcomesIsGood() {
        let observed = Self.observed(outcomes: [("e0", "u1", "accepted"), ("e0", "u2", "suppressed")])
        #expect(Self.violations([Self.event(0, to: ["u1", "u2"])], observed, offset: 1).isEmpty)
    }

    @Test func aCommitBeforeTheOutcomeOfARecipientIsFound() {
        let observed = Self.observed(outcomes: [("e0", "u1", "accepted")])
        #expect(Self.violations([Self.event(0, to: ["u1", "u2"])], observed, offset: 1).count == 1)
    }

    @Test func aCommitBelowTheEventIsGood() {
        #expect(Self.violations([Self.event(5)], Observed(), offset: 5).isEmpty)
    }

    @Test func aParkedOutcomeAloneIsFound() {
        let observed = Self.observed(outcomes: [("e0", "u1", "parked")])
        #expect(Self.violations([Self.event(0)], observed, offset: 1).count == 1)
    }

    @Test(arguments: [["u1"], nil, ["u0", "u1"]]) func workThatWasHandedOnIsGood(uids: [String]?) {
        #expect(Self.violations([Self.event(0)], Self.observed(handedOn: [("e0", uids)]), offset: 1).isEmpty)
    }

    /// One recipient by its place in the event, with a device, and one by its id.
    @Test func `a parked record speaks for the recipients in it`() {
        let event = Array(#"{"to":{"uids":["u1","u2"]}}"#.utf8)
        let open: [UInt8] = [6, 105, 1, 1, 100, 1, 112, 4, 117, 2, 117, 51]
        func uids(_ head: String, _ open: [UInt8] = []) -> [String]? {
            ParkedMembers.uids(in: Array("\(head)\n".utf8) + open + event)
        }
        #expect(uids(#"{"v":1,"open":12}"#, open) == ["u2", "u3"])
        #expect(uids(#"{"v":1}"#) == nil && uids(#"{"v":1,"part":3}"#) == [])
        #expect(uids(#"{"v":1,"uids":["u4"]}"#) == ["u4"])
    }

    @Test func workOfAnotherUserThatWasHandedOnIsFound() {
        #expect(Self.violations([Self.event(0)], Self.observed(handedOn: [("e0", ["u2"])]), offset: 1).count == 1)
    }

    @Test func aStateRecordWithoutResultIsFound() {
        let state = StateSent(
            kind: .showsDetail(true), app: "im", eventID: "s0", uid: "u1", atNanos: 1, sentMs: 1, partition: 0,
            offset: 0)
        var judge = CommitJudge()
        judge.didCommit("im.user-state", 0, 1, sent: [], states: [state], Observed())
        #expect(judge.violations.count == 1)
    }

    @Test func countsOverTheirBoundAreFound() {
        var plan = Plan(seed: 1)
        plan.windowRecords = 20
        plan.partitions = 1
        (plan.apps, plan.kit) = ([AppSettings(id: "im")], nil)
        plan.apps[0].inFlight = 2
        var judge = BoundsJudge(plan)
        judge.look("worker-1", [("pushes on streams", 2), ("user-state records", 2_000), ("events", 84)])
        #expect(judge.violations.isEmpty)
        judge.look("worker-1", [("pushes on streams", 3)])
        judge.look("worker-1", [("events", 1_000)])
        judge.didTurn("worker-1", bytes: 2 << 20)
        #expect(judge.violations.count == 3)
    }
}

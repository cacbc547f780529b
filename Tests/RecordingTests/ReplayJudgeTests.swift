// SPDX-License-Identifier: Apache-2.0
import JSON
import Testing

@testable import Recording

/// What a replay's report says of what came out.
@Suite struct ReplayJudgeTests {
    private static let event = ReplayJudge.Event(app: "im", id: "e1", msgID: "m1", recipients: ["bob", "eve"])

    private static func judge(
        _ events: [ReplayJudge.Event] = [event], _ records: [String], atMs: Int64 = 1000
    ) -> ReplayJudge {
        var judge = ReplayJudge(seeds: (1, 2))
        for event in events { judge.wrote(event, atMs: atMs) }
        let parser = JSONParser()
        for record in records {
            _ = parser.parse(Array(record.utf8)) { (root) throws(Never) in judge.read(root) }
        }
        return judge
    }

    private static func record(
        _ uid: String, _ verdict: String = "accepted", device: String? = "d", pid: String? = nil, event: String = "e1",
        msgID: String = "m1", more: String = ""
    ) -> String {
        let device = device.map { #","device":"\#($0)""# } ?? ""
        let pid = pid ?? (verdict == "accepted" ? "p-\(uid)\(device)" : "")
        let escaped = pid.replacing("\"", with: "")
        return #"{"v":1,"app":"im","event_id":"\#(event)","msg_id":"\#(msgID)","uid":"\#(uid)"\#(device),"#
            + #""verdict":"\#(verdict)","reason":"ok","pid":"\#(escaped)","latency_ms":7,"at_ms":1500\#(more)}"#
    }

    @Test func everyRecipientWithOneOutcomeIsWell() {
        let judge = Self.judge([Self.event], [Self.record("bob"), Self.record("eve", "suppressed", device: nil)])
        #expect(judge.expected == 2 && judge.answered == 2 && judge.silent == 0)
        #expect(judge.duplicates == 0 && judge.contradictions == 0 && judge.uninvited == 0 && judge.foreign == 0)
        #expect(judge.outcomes == ["accepted ok": 1, "suppressed ok": 1])
        #expect(judge.fromWriting.maxMs == 500 && judge.fromWriting.count == 2 && judge.inWorker.count == 1)
        #expect(!judge.isSilent(Self.event, uid: "bob") && judge.writtenMs(Self.event) == 1000)
    }

    @Test func devicesWithoutAFinalOutcomeAreSilent() {
        let judge = Self.judge([Self.event], [Self.record("bob", "parked")])
        #expect(judge.silent == 2 && judge.outcomes.isEmpty)
        #expect(judge.isSilent(Self.event, uid: "bob") && !judge.isSilent(Self.event, uid: "ann"))
    }

    /// An event that expired before its members were read has one record, without a user.
    @Test func anEventMayEndForAllAtOnce() {
        let judge = Self.judge([Self.event], [Self.record("", "expired", device: nil)])
        #expect(judge.silent == 0 && judge.endedWhole == 2 && !judge.isSilent(Self.event, uid: "bob"))
    }

    /// A record that is written again after a crash says the same; what is accepted twice was pushed twice.
    @Test(
        arguments: [
            ([record("bob"), record("bob")], 1, 0),
            ([record("bob", pid: "p1"), record("bob", pid: "p2")], 0, 1),
            ([record("bob"), record("bob", "rejected")], 0, 1),
            ([record("bob"), record("bob", "suppressed", device: nil)], 0, 1),
            ([record("bob", "suppressed"), record("bob", "suppressed")], 0, 0),
            ([record("bob", device: "d1"), record("bob", device: "d2")], 0, 0),
        ])
    func twoOutcomesAreADuplicateOrAContradiction(records: [String], duplicates: Int, contradictions: Int) {
        let judge = Self.judge([Self.event], records)
        #expect(judge.duplicates == duplicates && judge.contradictions == contradictions)
    }

    @Test func othersRecordsAreNoneOfThisReplay() {
        let judge = Self.judge(
            [Self.event], [Self.record("bob", event: "e9"), Self.record("ann"), "{}", #"{"app":5}"#])
        #expect(judge.foreign == 1 && judge.uninvited == 1 && judge.unreadable == 2)
    }

    /// A push that only tells a number names the event of the read, and no message.
    @Test func aBadgeAloneIsNoOutcome() {
        let judge = Self.judge([Self.event], [Self.record("bob"), Self.record("bob", pid: "p9", msgID: "")])
        #expect(judge.contradictions == 0 && judge.outcomes == ["accepted ok": 1])
    }

    @Test func recordsWrittenAgainAreRepeatsWithinTheFile() {
        let judge = Self.judge([Self.event, Self.event], [Self.record("bob"), Self.record("eve")])
        #expect(judge.expected == 2 && judge.repeatedInFile == 2 && judge.silent == 0)
    }

    /// Whom Redis knows alone is not judged.
    @Test func membersOfAGroupAreCountedOnly() {
        let group = ReplayJudge.Event(app: "im", id: "e1", msgID: "m1", recipients: nil)
        let judge = Self.judge([group], [Self.record("bob")])
        #expect(judge.openAudiences == 1 && judge.expected == 0 && judge.uninvited == 0)
        #expect(judge.outcomes == ["accepted ok": 1])
    }

    @Test func latenciesAreReportedPerLaneIfRecordsNameOne() {
        let judge = Self.judge([Self.event], [Self.record("bob", more: #","lane":"urgent""#), Self.record("eve")])
        #expect(judge.lanes.mapValues(\.count) == ["urgent": 1])
    }

    @Test func hostileRecordsFillNothing() {
        let records = (0..<1000).map {
            #"{"app":"im","event_id":"e1","msg_id":"m1","uid":"u\#($0)","verdict":"v\#($0)","reason":"r","#
                + #""at_ms":-9223372036854775808,"lane":"l\#($0)"}"#
        }
        let judge = Self.judge([Self.event], records)
        #expect(judge.outcomes.count <= 201 && judge.lanes.count <= 16 && judge.uninvited == 1000)
        let long = Self.record("bob", String(repeating: "v", count: 100))
        #expect(Self.judge([Self.event], [long]).outcomes == ["other": 1])
    }
}

// SPDX-License-Identifier: Apache-2.0
import JSON
import PushCore
import Testing

@testable import APNs
@testable import Worker

@Suite struct OutcomeRecordTests {
    private func json(_ record: OutcomeRecord) -> String {
        var writer = JSONWriter()
        OutcomeRecord.begin(in: &writer, app: "im", eventID: "e", msgID: "m")
        record.finish(in: &writer, atMs: 9)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    @Test func absentFieldsAreLeftOut() {
        #expect(
            json(OutcomeRecord(uid: "u\"1", verdict: .suppressed, reason: .dnd)) == """
                {"v":1,"app":"im","event_id":"e","msg_id":"m","uid":"u\\"1","verdict":"suppressed","reason":"dnd",\
                "attempts":0,"latency_ms":0,"at_ms":9}
                """)
    }

    @Test func aKeptBeginningGoesOnLikeAFreshOne() {
        let record = OutcomeRecord(uid: "u", verdict: .suppressed, reason: .dnd)
        var writer = JSONWriter()
        OutcomeRecord.begin(in: &writer, app: "im", eventID: "e", msgID: "m")
        let head = writer.bytes
        writer.clear()
        writer.raw(head)
        record.finish(in: &writer, atMs: 9)
        #expect(String(decoding: writer.bytes, as: UTF8.self) == json(record))
    }

    @Test func everyFieldHasItsPlace() {
        var record = OutcomeRecord(uid: "u", device: "d", verdict: .accepted, reason: .ok)
        let id = PushID.make(app: "im", uid: "u", msgID: "m", kind: "m", tokenHex: "00")
        record.pushID = id
        record.apnsID = id
        record.status = 200
        record.badge = 0
        record.attempts = 2
        record.latencyMs = 31
        #expect(
            json(record) == """
                {"v":1,"app":"im","event_id":"e","msg_id":"m","uid":"u","device":"d","verdict":"accepted","reason":"ok",\
                "pid":"\(id)","apns_id":"\(id)","status":200,"badge":0,"attempts":2,"latency_ms":31,"at_ms":9}
                """)
    }
}

@Suite struct DeliveryTargetTests {
    @Test func aRecordHoldsTheOriginalEventAndItsTargets() {
        let id = PushID.make(app: "im", uid: "u", msgID: "m", kind: "m", tokenHex: "00")
        var writer = JSONWriter()
        DeliveryTarget.writeRecord(
            of: [
                DeliveryTarget(
                    uid: "u", device: "d", connectionEpoch: 7, alert: true, pushed: false, pushID: nil, ackByMs: 5),
                DeliveryTarget(
                    uid: "w", device: "e", connectionEpoch: -1, alert: false, pushed: true, pushID: id, ackByMs: nil),
            ], gateway: "gw", app: "im", event: Array(#"{ "x" : 1.0 }"#.utf8), to: &writer)
        #expect(
            String(decoding: writer.bytes, as: UTF8.self) == """
                {"v":1,"app":"im","gateway":"gw","event":{ "x" : 1.0 },"to":[\
                {"uid":"u","device":"d","conn_epoch":7,"alert":true,"pushed":false,"ack_by_ms":5},\
                {"uid":"w","device":"e","conn_epoch":-1,"alert":false,"pushed":true,"pid":"\(id)"}]}
                """)
    }
}

/// What APNs' outcomes become in `push.results`, and whether the token goes (contract section 5, step 17).
@Suite struct EndingTests {
    private let token = TokenRecord(hex: "00", environment: .production, topic: "t", type: .alert, boundMs: 1000)

    private func ending(_ outcome: PushOutcome, isForced: Bool = false) -> Ending {
        Ending(outcome, token: BoundToken(device: "d", record: token, version: 1), isForced: isForced)
    }

    private func rejected(_ status: Int, _ reason: String, _ time: AnswerTime = .absent) -> Ending {
        ending(.rejected(status: status, reason: APNsReason(bytes: reason.utf8), time: time))
    }

    @Test func anAcceptedPushIsOkOrForced() {
        let id = PushID(high: 1, low: 2)
        #expect(ending(.accepted(apnsID: id)).reason == "ok")
        let forced = ending(.accepted(apnsID: id), isForced: true)
        #expect(forced.reason == "forced" && forced.verdict == .accepted && forced.status == 200)
        #expect(forced.apnsID?.description == id.description && forced.removal == nil)
    }

    @Test func aTokenGoesOnlyForWhatIsItsOwnFault() {
        let rows: [(Ending, RemovalBrake.Cause?)] = [
            (rejected(410, "Unregistered", .ms(1001)), .gone),
            (rejected(410, "Unregistered", .ms(1000)), nil),
            (rejected(410, "Unregistered", .ms(999)), nil),
            (rejected(410, "Unregistered", .unreadable), nil),
            (rejected(410, "ExpiredToken"), .gone),
            (rejected(400, "BadDeviceToken"), .badDeviceToken),
            (rejected(400, "DeviceTokenNotForTopic"), .notForTopic),
            (rejected(400, "BadTopic"), nil),
            (rejected(400, "PayloadEmpty"), nil),
            (rejected(405, "MethodNotAllowed"), nil),
            (rejected(413, "PayloadTooLarge"), nil),
            (rejected(400, "SomethingNew"), nil),
        ]
        for (ending, removal) in rows {
            #expect(ending.removal == removal, "\(ending.reason) \(ending.timestampMs ?? -1)")
            #expect(ending.verdict == .rejected)
        }
    }

    @Test func anUnknownReasonOfAPNsIsLoggedAndMakesNoLabel() {
        let ending = rejected(400, "SomethingNew")
        #expect(ending.reason == "SomethingNew" && ending.label == "other" && ending.status == 400)
    }

    @Test func aPushWithoutAnAnswerSaysSo() {
        #expect(ending(.expired).verdict == .expired && ending(.expired).reason == "expired")
        #expect(ending(.unknown(.timeout, apnsID: PushID(high: 1, low: 2))).reason == "Unanswered")
        #expect(ending(.unprocessed(.notSent)).reason == "Unprocessed")
    }
}

// SPDX-License-Identifier: Apache-2.0
import JSON
import Payload
import PushCore
import Testing

@testable import Worker

/// Records that tell others of state: byte by byte, since others read them.
struct RecordTests {
    @Test(
        arguments: [
            (.applied(.none), #""outcome":"applied""#), (.applied(.badge(1, before: 2)), #""outcome":"applied""#),
            (.repeated, #""outcome":"repeat""#), (.ignored(.stale), #""outcome":"stale""#),
            (.ignored(.notOwner), #""outcome":"ignored","reason":"not_owner""#),
            (.ignored(.unknownPush), #""outcome":"ignored","reason":"unknown_push""#),
        ] as [(StateOutcome, String)])
    func aStateResultReportsARecordsOutcome(outcome: StateOutcome, text: String) {
        var writer = JSONWriter()
        StateResult(app: "im", eventID: "e\"1", uid: "u", kind: "bind", outcome: outcome, atMs: 7).write(to: &writer)
        #expect(
            String(decoding: writer.bytes, as: UTF8.self)
                == #"{"v":1,"app":"im","event_id":"e\"1","uid":"u","kind":"bind",\#(text),"at_ms":7}"#)
    }

    @Test func everyKindOfUserStateHasItsName() throws {
        let reader = EventReader(apps: ["im"])
        let records = [
            "bind": BadRecordTests.bind(#""x":1"#),
            "unbind": BadRecordTests.state("unbind", #""token":{"device":"d","token":"ab","bind_ver":1}"#),
            "settings": BadRecordTests.state("settings", #""hold_s":1"#),
            "mute": BadRecordTests.state("mute", #""conv_id":"c","level":5"#),
            "read": BadRecordTests.state("read", #""conv_id":"c","up_to_seq":1"#),
            "badge_report": BadRecordTests.state("badge_report", #""device":"d","value":1,"client_ms":1700000000000"#),
            "ack": BadRecordTests.state("ack", #""device":"d","msg_ids":["m"]"#),
            "open_report": BadRecordTests.state("open_report", #""device":"d","pid":"p""#),
            "arrived_report": BadRecordTests.state("arrived_report", #""device":"d","pid":"p""#),
            "forget": BadRecordTests.state("forget", #""x":1"#),
        ]
        for (kind, record) in records {
            guard case .userState(let state) = try reader.read(Array(record.utf8), of: .userState).body else {
                Issue.record("\(kind) is no user state")
                continue
            }
            #expect(state.change.kind == kind)
        }
    }

    @Test func anSMSIsAskedForWithNumberAndText() {
        var message = Message(
            msgID: "m", expireAtMs: 1, conversation: .init(id: "c", type: .p2p), from: .init(uid: "a", nick: "Anna"),
            to: .init(uids: ["u"]))
        message.push.title = "Lunch"
        message.push.content = "At one"
        var record = SMSRecord(
            app: "im", eventID: "e", msgID: "m", uid: "u", reason: .noToken, phone: "+49 30 1",
            text: ShownText(
                message, variant: .init(language: "en"), rules: .init(profile: .nim), templates: Templates()), atMs: 7)
        func text() -> String {
            var writer = JSONWriter()
            record.write(to: &writer)
            return String(decoding: writer.bytes, as: UTF8.self)
        }
        #expect(
            text() == """
                {"v":1,"app":"im","event_id":"e","msg_id":"m","uid":"u","reason":"no_token","phone":"+49 30 1",\
                "title":"Lunch","body":"Anna: At one","at_ms":7}
                """)
        record.phone = nil
        record.reason = .allFailed
        message.push.silent = true
        record.text = ShownText(
            message, variant: .init(language: "en"), rules: .init(profile: .nim), templates: Templates())
        #expect(
            text()
                == #"{"v":1,"app":"im","event_id":"e","msg_id":"m","uid":"u","reason":"all_failed","at_ms":7}"#)
    }
}

// SPDX-License-Identifier: Apache-2.0
import PushCore
import Support
import Testing
import Worker

/// Each row is a record that breaks one rule of contract sections 0 and 2, with the header it must get.
struct BadRecordTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var topic = RecordClass.events
        var record: String
        var header: String
        /// The byte is that of the first occurrence of this; nil: it stands in `header`.
        var byteOf: String?

        var testDescription: String { header }
    }

    static let head = #"{"v":1,"app":"im","event_id":"e","sent_ms":1700000000000,"#

    /// A whole message with `extra` fields after the required ones; the last of a repeated key counts.
    static func message(_ extra: String) -> String {
        head + #""kind":"message","msg_id":"m","conv":{"id":"c","type":"p2p"},"from":{"uid":"a"},"to":{"uids":["b"]}"#
            + (extra.isEmpty ? "" : ",") + extra + "}"
    }

    static func state(_ kind: String, _ fields: String) -> String {
        head + #""kind":"\#(kind)","uid":"u","# + fields + "}"
    }

    static func bind(_ token: String) -> String {
        let whole = #""device":"d","token":"ab","env":"sandbox","topic":"t","type":"alert","bind_ver":1"#
        return state("bind", #""token":{"# + whole + "," + token + "}")
    }

    private static func row(_ record: String, _ why: String, _ path: String, at marker: String) -> Row {
        Row(record: record, header: "bad_event: \(why) at \(path)", byteOf: marker)
    }

    private static let inSeconds = "must be a Unix time in milliseconds, this one is in seconds"

    private static func stateRow(_ record: String, _ why: String, _ path: String, at marker: String) -> Row {
        Row(topic: .userState, record: record, header: "bad_event: \(why) at \(path)", byteOf: marker)
    }

    /// The required fields of a start.
    static let start =
        #""activity_id":"x","event":"start","state":{},"attributes_type":"T","attributes":{},"alert":{"title":"t"}"#

    static let update = #""activity_id":"x","event":"update","state":{}"#

    static let long65 = String(repeating: "x", count: 65)

    static let envelope: [Row] = [
        Row(record: "", header: "bad_event: empty record at $, byte 0"),
        Row(record: "{", header: "bad_event: broken JSON at $, byte 1"),
        Row(record: "\"\\ud800\"", header: "bad_event: broken string or escape at $, byte 1"),
        Row(record: "  [1]", header: "bad_event: must be an object at $, byte 2"),
        Row(record: "{}", header: "bad_event: required field is missing at $.v, byte 0"),
        Row(record: #" {"v":null}"#, header: "bad_event: required field is missing at $.v, byte 1"),
        row(#"{"v":2}"#, "unknown version, known is 1", "$.v", at: "2"),
        row(#"{"v":1.0}"#, "must be a 64-bit integer", "$.v", at: "1.0"),
        row(#"{"v":"1"}"#, "must be a 64-bit integer", "$.v", at: "\"1"),
        row(#"{"v":1,"kind":7}"#, "must be a string", "$.kind", at: "7"),
        row(head + #""kind":"dance"}"#, "unknown kind", "$.kind", at: "\"dance"),
        row(head + #""kind":"bind"}"#, "this kind belongs on the user-state topic", "$.kind", at: "\"bind"),
        stateRow(head + #""kind":"revoke"}"#, "this kind belongs on the events topic", "$.kind", at: "\"revoke"),
        row(#"{"v":1,"kind":"message","app":"xx"}"#, #"unknown app "xx", known are im"#, "$.app", at: "\"xx"),
        row(#"{"v":1,"kind":"message","app":""}"#, "required field is empty", "$.app", at: "\"\""),
        row(
            #"{"v":1,"kind":"message","app":"im","event_id":"\#(long65)"}"#, "longer than 64 bytes", "$.event_id",
            at: "\"xxx"),
        row(
            #"{"v":1,"kind":"message","app":"im","event_id":"e","sent_ms":-1}"#, "must be a Unix time in milliseconds",
            "$.sent_ms", at: "-1"),
        row(
            #"{"v":1,"kind":"message","app":"im","event_id":"e","sent_ms":98765432109876543210}"#,
            "must be a 64-bit integer", "$.sent_ms", at: "9876543210987"),
    ]

    static let messages: [Row] = [
        row(head + #""kind":"message"}"#, "required field is missing", "$.conv", at: "{"),
        row(message(#""conv":{"type":"p2p"}"#), "required field is missing", "$.conv.id", at: "{\"type"),
        row(message(#""conv":[]"#), "must be an object", "$.conv", at: "[]"),
        row(
            message(#""conv":{"id":"c","type":"duo"}"#), "must be one of p2p, group, ultra, system, custom",
            "$.conv.type", at: "\"duo"),
        row(
            message(#""conv":{"id":"\#(long65)\#(long65)","type":"p2p"}"#), "longer than 128 bytes", "$.conv.id",
            at: "\"xxx"),
        row(message(#""msg_id":null"#), "required field is missing", "$.msg_id", at: "{"),
        row(message(#""msg_id":"\#(long65)""#), "longer than 64 bytes", "$.msg_id", at: "\"xxx"),
        row(message(#""server_seq":1.0"#), "must be a 64-bit integer", "$.server_seq", at: "1.0"),
        row(message(#""server_seq":1e3"#), "must be a 64-bit integer", "$.server_seq", at: "1e3"),
        row(message(#""from":{}"#), "required field is missing", "$.from.uid", at: "{}"),
        row(message(#""to":null"#), "required field is missing", "$.to", at: "{"),
        row(message(#""to":{"exclude":[]}"#), "required field is missing", "$.to.uids", at: "{\"exclude"),
        row(message(#""to":{"uids":["b",77]}"#), "must be a string", "$.to.uids[1]", at: "77"),
        row(message(#""to":{"uids":["b",null]}"#), "must be a string", "$.to.uids[1]", at: "null"),
        row(message(#""to":{"uids":"b"}"#), "must be a list of strings", "$.to.uids", at: #""b"}"#),
        row(
            message(#""to":{"uids":["b"],"tokens":["ab"]}"#), "cannot be given with uids", "$.to.tokens",
            at: #"["ab"]"#),
        row(message(#""to":{"tokens":["ab","abc"]}"#), "must be bytes in hexadecimal", "$.to.tokens[1]", at: #""abc""#),
        row(message(#""to":{"tokens":["ab",""]}"#), "must be bytes in hexadecimal", "$.to.tokens[1]", at: #""""#),
        row(message(#""to":{"uids":["b"],"devices":["d",7]}"#), "must be a string", "$.to.devices[1]", at: "7]"),
        row(
            message(
                #""to":{"uids":["b"],"devices":[\#(Array(repeating: "\"d\"", count: 1001).joined(separator: ","))]}"#),
            "more than 1000 items", "$.to.devices", at: "[\"d"),
        row(
            head
                + #""kind":"live_activity","to":{"uids":["b"],"devices":["d"]},"la":{"activity_id":"a","event":"update","state":{}}}"#,
            "cannot be given in a live_activity", "$.to.devices", at: "[\"d"),
        row(
            head
                + #""kind":"live_activity","to":{"tokens":["ab"]},"la":{"activity_id":"a","event":"update","state":{}}}"#,
            "cannot be given in a live_activity", "$.to.tokens", at: "[\"ab"),
        row(message(#""mention":{"all":1}"#), "must be true or false", "$.mention.all", at: "1}"),
        row(message(#""custom":"true""#), "must be true or false", "$.custom", at: "\"true"),
        row(message(#""push":7"#), "must be an object", "$.push", at: "7"),
        row(message(#""push":{"content":5}"#), "must be a string", "$.push.content", at: "5"),
        row(message(#""push":{"strategy":9}"#), "must be from 1 to 4", "$.push.strategy", at: "9"),
        row(
            message(#""push":{"priority":"top"}"#), "must be one of high, normal, low", "$.push.priority", at: "\"top"),
        row(message(#""push":{"profile":"gt"}"#), "must be one of nim, rc, wps, raw", "$.push.profile", at: "\"gt"),
        row(message(#""push":{"payload":[9]}"#), "must be an object or a string", "$.push.payload", at: "[9"),
        row(
            message(#""push":{"payload":{"k":"\#(String(repeating: "中", count: 2041))"}}"#),
            "longer than 2048 characters", "$.push.payload", at: "{\"k"),
        row(
            message(#""push":{"payload":"\#(String(repeating: "中", count: 2049))"}"#), "longer than 2048 characters",
            "$.push.payload", at: "\"中"),
        row(message(#""push":{"template":{}}"#), "required field is missing", "$.push.template.id", at: "{}}"),
        row(
            message(#""push":{"template":{"id":"t","args":{"a":7}}}"#), "must hold strings only",
            "$.push.template.args", at: "{\"a\":7"),
        row(message(#""push":{"mutable":1}"#), "must be true or false", "$.push.mutable", at: "1}"),
        row(
            message(#""push":{"send_at_ms":1700604800001}"#), "must be at most 7 days after sent_ms",
            "$.push.send_at_ms", at: "1700604800001"),
        row(message(#""push":{"send_at_ms":1700000009}"#), inSeconds, "$.push.send_at_ms", at: "1700000009}"),
        row(message(#""push":{"send_at_ms":0}"#), inSeconds, "$.push.send_at_ms", at: "0}"),
        row(message(#""push":{"send_at_ms":"1"}"#), "must be a 64-bit integer", "$.push.send_at_ms", at: "\"1\"}"),
        row(
            message(#""kind":"revoke","revoke":{"target_msg_id":"t"},"push":{"send_at_ms":1700000000005}"#),
            "cannot be given in a revoke", "$.push.send_at_ms", at: "1700000000005"),
        row(
            message(#""push":{"send_at_ms":1700000000007},"x":"\#(String(repeating: "x", count: 900_000))""#),
            "a scheduled message has at most 900000 bytes", "$.push.send_at_ms", at: "1700000000007"),
        row(
            message(
                #""push":{"force":{"mode":"list","uids":[\#(Array(repeating: "\"f\"", count: 101).joined(separator: ","))]}}"#
            ),
            "more than 100 items", "$.push.force.uids", at: "[\"f"),
        row(
            head + #""kind":"revoke","msg_id":"m","conv":{"id":"c","type":"group"},"from":{"uid":"a"}}"#,
            "required field is missing", "$.revoke", at: "{"),
        row(
            head + #""kind":"live_activity","to":{"uids":["b"]},"la":{"activity_id":"x","event":"go","state":{}}}"#,
            "must be one of start, update, end", "$.la.event", at: "\"go"),
        row(
            head + #""kind":"live_activity","to":{"uids":["b"]},"la":{"activity_id":"x","event":"end"}}"#,
            "required field is missing", "$.la.state", at: #"{"activity_id"#),
        row(
            head
                + #""kind":"live_activity","to":{"uids":["b"]},"la":{\#(start),"input_push_channel":"a b"}}"#,
            "must be a channel id in base64", "$.la.input_push_channel", at: "\"a b"),
        row(
            head
                + #""kind":"live_activity","la":{\#(update),"channel":"a b"}}"#,
            "must be a channel id in base64", "$.la.channel", at: "\"a b"),
        row(
            head + #""kind":"live_activity","la":{\#(update),"channel":7}}"#, "must be a string", "$.la.channel",
            at: "7}"),
        row(
            head + #""kind":"live_activity","la":{\#(update),"channel":"\#(String(repeating: "a", count: 129))"}}"#,
            "longer than 128 bytes", "$.la.channel", at: "\"aaa"),
        row(
            head + #""kind":"live_activity","to":{"uids":["b"]},"la":{\#(update),"channel":"ab=="}}"#,
            "cannot be given together with to", "$.la.channel", at: "\"ab=="),
        row(
            head + #""kind":"live_activity","la":{\#(start),"channel":"ab=="}}"#,
            "cannot be given in a start", "$.la.channel", at: "\"ab=="),
        row(
            head
                + #""kind":"live_activity","to":{"uids":["b"]},"la":{\#(start),"input_push_token":true,"input_push_channel":"ab=="}}"#,
            "cannot be given together with input_push_token", "$.la.input_push_channel", at: "\"ab=="),
        row(
            head + #""kind":"live_activity","to":{"uids":["b"]},"la":{"activity_id":"x","event":"start","state":{}}}"#,
            "a start needs attributes_type, attributes, an alert with a title or a body", "$.la.attributes_type",
            at: #"{"activity_id"#),
        row(
            head + #""kind":"live_activity","to":{"uids":["b"]},"la":{\#(start),"alert":{"title":"\u200b"}}}"#,
            "a start needs an alert with a title or a body", "$.la.alert", at: #"{"title":"\u200b"#),
        row(
            head + #""kind":"live_activity","to":{"uids":["b"]},"la":{\#(start),"alert":{"subtitle":"s"}}}"#,
            "a start needs an alert with a title or a body", "$.la.alert", at: #"{"subtitle":"s"#),
        row(
            head + #""kind":"live_activity","to":{"uids":[]},"la":{\#(start)}}"#, "is an empty list", "$.to.uids",
            at: "[]"),
        row(message(#""from":{"uid":""}"#), "required field is empty", "$.from.uid", at: #""""#),
        row(message(#""to":{"uids":["b",""]}"#), "is empty", "$.to.uids[1]", at: #""""#),
        row(message(#""to":{"uids":["b"],"exclude":["",""]}"#), "is empty", "$.to.exclude[0]", at: #""",""#),
        row(message(#""to":{"uids":[]}"#), "is an empty list", "$.to.uids", at: "[]"),
        row(message(#""mention":{"uids":[""]}"#), "is empty", "$.mention.uids[0]", at: #""""#),
        row(message(#""push":{"force":{"uids":[""]}}"#), "is empty", "$.push.force.uids[0]", at: #""""#),
        row(
            message(#""push":{"interruption":"loud"}"#),
            "must be one of passive, active, time-sensitive, critical", "$.push.interruption", at: "\"loud"),
        row(message(#""expire_at_ms":1700000000"#), inSeconds, "$.expire_at_ms", at: "1700000000}"),
        row(message(#""expire_at_ms":0"#), inSeconds, "$.expire_at_ms", at: "0}"),
        row(head.replacing("000000000,", with: ",") + #""kind":"message"}"#, inSeconds, "$.sent_ms", at: "1700,"),
        row(head + #""kind":"live_activity"}"#, "required field is missing", "$.la", at: "{"),
        row(
            head + #""kind":"live_activity","la":{"activity_id":"x","event":"start","state":{}}}"#,
            "required field is missing", "$.to", at: "{"),
        row(
            head + #""kind":"live_activity","to":{"x":1},"la":{"activity_id":"x","event":"start","state":{}}}"#,
            "required field is missing", "$.to.uids", at: #"{"x":1"#),
        row(
            message(#""from":{"uid":"a","avatar":"\#(String(repeating: "a", count: 513))"}"#), "longer than 512 bytes",
            "$.from.avatar", at: "\"aaa"),
        row(
            message(#""push":{"force":{"lift_mute":"no"}}"#), "must be true or false", "$.push.force.lift_mute",
            at: "\"no"),
    ]

    static let states: [Row] = [
        stateRow(head + #""kind":"read","conv_id":"c"}"#, "required field is missing", "$.uid", at: "{"),
        stateRow(state("bind", #""x":1"#), "required field is missing", "$.token", at: "{"),
        stateRow(bind(#""token":"xyz0""#), "must be bytes in hexadecimal", "$.token.token", at: "\"xyz"),
        stateRow(bind(#""token":"abc""#), "must be bytes in hexadecimal", "$.token.token", at: "\"abc\""),
        stateRow(
            bind(#""token":"\#(String(repeating: "ab", count: 257))""#), "longer than 512 bytes", "$.token.token",
            at: "\"abab"),
        stateRow(bind(#""cert":"\#(long65)""#), "longer than 64 bytes", "$.token.cert", at: "\"xxx"),
        stateRow(
            bind(#""content_key":"\#(String(repeating: "汉", count: 22))""#), "longer than 64 bytes",
            "$.token.content_key", at: "\"汉"),
        stateRow(bind(#""lang":7"#), "must be a string", "$.token.lang", at: "7"),
        stateRow(bind(#""tz":"\#(long65)""#), "longer than 64 bytes", "$.token.tz", at: "\"xxx"),
        stateRow(
            bind(#""attributes_type":"\#(String(repeating: "a", count: 257))""#), "longer than 256 bytes",
            "$.token.attributes_type", at: "\"aaa"),
        stateRow(
            state("settings", #""phone":"012345678901234567890""#), "longer than 20 bytes", "$.phone", at: "\"0123"),
        stateRow(
            state("arrived_report", #""device":"d","pid":"p","msg_id":"\#(long65)""#), "longer than 64 bytes",
            "$.msg_id", at: "\"xxx"),
        stateRow(state("arrived_report", #""device":"d""#), "required field is missing", "$.pid", at: "{"),
        stateRow(bind(#""env":"test""#), "must be one of production, sandbox", "$.token.env", at: "\"test"),
        stateRow(bind(#""bind_ver":"2""#), "must be a 64-bit integer", "$.token.bind_ver", at: "\"2"),
        stateRow(bind(#""bind_ver":null"#), "required field is missing", "$.token.bind_ver", at: "{\"device"),
        stateRow(
            state("settings", #""dnd":{"start":"08:00","end":"08:00"}"#), "start and end must differ", "$.dnd.end",
            at: #""08:00"}"#),
        stateRow(
            state("settings", #""dnd":{"start":"8:00"}"#), "must be a time of day like 22:00", "$.dnd.start",
            at: "\"8:00"),
        stateRow(
            state("settings", #""dnd":{"end":"24:00"}"#), "must be a time of day like 22:00", "$.dnd.end", at: "\"24"),
        stateRow(state("settings", #""dnd":{"level":3}"#), "must be 1 or 5", "$.dnd.level", at: "3"),
        stateRow(state("settings", #""hold_s":601"#), "must be from 0 to 600", "$.hold_s", at: "601"),
        stateRow(
            state("mute", #""conv_id":"c","level":3"#), "must be one of -1, 0, 1, 2, 4, 5", "$.level", at: "3"),
        stateRow(state("settings", #""levels":5"#), "must be an object", "$.levels", at: "5}"),
        stateRow(
            state("settings", #""levels":{"group":3}"#), "must be one of -1, 0, 1, 2, 4, 5", "$.levels.group",
            at: "3}"),
        stateRow(
            state("settings", #""levels":{"p2p":"5"}"#), "must be a 64-bit integer", "$.levels.p2p", at: "\"5\"}"),
        stateRow(
            state("settings", #""levels":{"custom":1.0}"#), "must be a 64-bit integer", "$.levels.custom", at: "1.0"),
        stateRow(
            state("settings", #""snooze_until_ms":1700000000"#), inSeconds, "$.snooze_until_ms", at: "1700000000}"),
        stateRow(
            state("settings", #""snooze_until_ms":-1"#), "must be a Unix time in milliseconds", "$.snooze_until_ms",
            at: "-1"),
        stateRow(
            state("settings", #""snooze_until_ms":"soon""#), "must be a 64-bit integer", "$.snooze_until_ms",
            at: "\"soon"),
        stateRow(bind(#""alerts":0"#), "must be true or false", "$.token.alerts", at: "0"),
        stateRow(
            state("read", #""conv_id":"c""#), "one of up_to_seq and up_to_ms is required", "$.up_to_seq", at: "{"),
        stateRow(
            state("badge_report", #""device":"d","value":2"#), "required field is missing", "$.client_ms", at: "{"),
        stateRow(
            state("ack", #""device":"d","conn_epoch":1,"msg_ids":["m","\#(long65)"]"#), "longer than 64 bytes",
            "$.msg_ids[1]", at: "\"xxx"),
        stateRow(
            bind(#""type":"activity","activity_id":"""#), "required field is missing", "$.token.activity_id",
            at: #"{"device"#),
        stateRow(
            bind(#""tz":"Europe/Berlim""#),
            "is not a time zone of this system; the nearest name is Europe/Berlin", "$.token.tz",
            at: "\"Europe"),
        stateRow(
            state("settings", #""dnd":{"tz":"berlin"}"#),
            "is not a time zone of this system; the nearest name is Europe/Berlin", "$.dnd.tz", at: "\"berlin"),
        stateRow(
            state("settings", #""dnd":{"tz":"Nowhere/AtAll"}"#), "is not a time zone of this system", "$.dnd.tz",
            at: "\"Nowhere"),
        stateRow(state("settings", #""dnd":{"days":[]}"#), "is an empty list", "$.dnd.days", at: "[]"),
        stateRow(state("settings", #""dnd":{"windows":[]}"#), "is an empty list", "$.dnd.windows", at: "[]"),
        stateRow(
            state("settings", #""dnd":{"days":[1,8]}"#), "must be from 1 (Monday) to 7", "$.dnd.days[1]", at: "8"),
        stateRow(
            state("settings", #""dnd":{"start":"22:00","windows":[{"start":"01:00","end":"02:00"}]}"#),
            "cannot be given together with start, end or days", "$.dnd.windows", at: "[{"),
        stateRow(
            state("settings", #""dnd":{"windows":[{"start":"01:00","end":"02:00"},{"start":"03:00"}]}"#),
            "required field is missing", "$.dnd.windows[1].end", at: #"{"start":"03"#),
        stateRow(
            state("settings", #""dnd":{"windows":[{"start":"01:00","end":"01:00"}]}"#), "start and end must differ",
            "$.dnd.windows[0].end", at: #""01:00"}"#),
        stateRow(
            state("settings", #""dnd":{"windows":[{"start":"01:00","end":"02:00","days":[0]}]}"#),
            "must be from 1 (Monday) to 7", "$.dnd.windows[0].days[0]", at: "0]"),
        stateRow(
            state("badge_report", #""device":"d","value":2,"client_ms":1700000000"#), inSeconds, "$.client_ms",
            at: "1700000000}"),
        stateRow(state("ack", #""device":"d","msg_ids":[]"#), "is an empty list", "$.msg_ids", at: "[]"),
        stateRow(state("ack", #""device":"d","msg_ids":["m",""]"#), "is empty", "$.msg_ids[1]", at: #""""#),
        stateRow(state("open_report", #""device":"d""#), "required field is missing", "$.pid", at: "{"),
    ]

    @Test(arguments: envelope + messages + states)
    func isRefusedWithReasonPathAndByte(row: Row) throws {
        let bytes = Array(row.record.utf8)
        var header = row.header
        if let marker = row.byteOf {
            let byte = try #require(bytes.startOfLast(Array(marker.utf8)), "the row's marker is in its record")
            // A missing field names the object that lacks it, which begins before everything in it.
            header += ", byte \(marker == "{" ? 0 : byte)"
        }
        let reader = EventReader(apps: ["im"])
        #expect {
            _ = try reader.read(bytes, of: row.topic)
        } throws: { error in
            let found = (error as? BadRecord)?.header
            if found != header { Issue.record("\(found ?? "none") is not \(header)") }
            return true
        }
    }

    /// The place of broken JSON is the first byte that makes the text the beginning of no document.
    @Test(arguments: [
        (Array(#"{"v":1,"kind":message}"#.utf8), "broken JSON", 14),
        (Array(#"{"v":1 "kind":"a"}"#.utf8), "broken JSON", 7),
        (Array(#"{"v":1,}"#.utf8), "broken JSON", 7), (Array(#"{"v":"#.utf8), "broken JSON", 5),
        (Array(#"{"v":1}}"#.utf8), "broken JSON", 7), (Array(#"{"v":"a"#.utf8), "a string does not end", 7),
        (Array(#"{"v":01}"#.utf8), "broken number", 6), ([0x7B, 0x22, 0xC3, 0x28, 0x22], "broken UTF-8", 2),
        (Array(#"{"v":"\x"}"#.utf8), "broken string or escape", 7),
        ([0xEF, 0xBB, 0xBF] + Array("{}".utf8), "the text begins with a byte order mark", 0),
        ([0xFF, 0xFE, 0x7B, 0x00], "the text begins with a byte order mark", 0),
        (
            Array(repeating: UInt8(ascii: "["), count: 40) + Array(repeating: UInt8(ascii: "]"), count: 40),
            "nested too deeply", 32
        ),
        (Array(repeating: UInt8(ascii: "["), count: 40), "broken JSON", 40),
    ])
    func brokenTextNamesItsPlace(bytes: [UInt8], why: String, byte: Int) {
        #expect {
            _ = try EventReader(apps: ["im"]).read(bytes, of: .events)
        } throws: { error in
            let found = (error as? BadRecord)?.header
            if found != "bad_event: \(why) at $, byte \(byte)" { Issue.record("\(found ?? "none")") }
            return true
        }
    }

    @Test func aRecordAboveTheSizeLimitIsRefusedUnread() {
        let reader = EventReader(apps: ["im"], maxBytes: 100)
        let bytes = Array(repeating: UInt8(ascii: "x"), count: 101)
        #expect(throws: BadRecord(.tooLong, "record longer than 100 bytes")) { try reader.read(bytes, of: .events) }
    }

    @Test func mutatedRecordsNeverCrash() {
        let seed = UInt64.random(in: .min ... .max)
        var random = SeededGenerator(seed: seed)
        let rows = (Self.messages + Self.states).map { Array($0.record.utf8) }
        let alphabet = Array(#"{}[]:,"\0123456789nulltrue.-"#.utf8) + [0xE4, 0xFF, 0]
        let reader = EventReader(apps: ["im"])
        var refused = 0
        for _ in 0..<20_000 {
            var bytes = rows[Int(random.next() % UInt64(rows.count))]
            for _ in 0..<(random.next() % 4) {
                bytes[Int(random.next() % UInt64(bytes.count))] = alphabet[Int(random.next() % UInt64(alphabet.count))]
            }
            do {
                _ = try reader.read(bytes, of: random.next() % 2 == 0 ? .events : .userState)
            } catch {
                refused += 1
                #expect(error.byte <= bytes.count, "seed \(seed)")
            }
        }
        #expect(refused > 10_000, "seed \(seed)")
    }
}

extension [UInt8] {
    /// Where the last occurrence of `part` begins.
    fileprivate func startOfLast(_ part: [UInt8]) -> Int? {
        guard part.count <= count else { return nil }
        return (0...(count - part.count)).last { self[$0..<($0 + part.count)].elementsEqual(part) }
    }
}

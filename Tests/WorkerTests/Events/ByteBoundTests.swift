// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore
import Testing

@testable import Worker

/// Everything that a record names is bounded in bytes before anybody compares, hashes or cuts it (contract section 0).
struct ByteBoundTests {
    /// One letter and as many combining marks as fill so many bytes: one character, whatever its length.
    static func marked(_ bytes: Int) -> String {
        (bytes % 2 == 0 ? "aa" : "a") + String(repeating: "\u{301}", count: (bytes - 1) / 2)
    }

    /// A field, its bound in bytes, and a record that holds it.
    struct Row: CustomTestStringConvertible, Sendable {
        var path: String
        var bytes: Int
        var topic = RecordClass.events
        /// `%` stands for the text.
        var record: String

        var testDescription: String { path }

        func rule(_ text: String) -> BadRecord? {
            do {
                _ = try EventReader(apps: ["im"]).read(
                    Array(record.replacing("%", with: text).utf8), of: topic)
                return nil
            } catch {
                return error
            }
        }
    }

    private static func message(_ path: String, _ bytes: Int, _ field: String) -> Row {
        Row(path: path, bytes: bytes, record: BadRecordTests.message(field))
    }

    private static func bind(_ name: String, _ bytes: Int) -> Row {
        Row(path: "$.token.\(name)", bytes: bytes, topic: .userState, record: BadRecordTests.bind(#""\#(name)":"%""#))
    }

    private static func state(_ path: String, _ bytes: Int, _ kind: String, _ fields: String) -> Row {
        Row(path: path, bytes: bytes, topic: .userState, record: BadRecordTests.state(kind, fields))
    }

    private static func activity(_ path: String, _ bytes: Int, _ field: String) -> Row {
        Row(
            path: path, bytes: bytes,
            record: BadRecordTests.head + #""kind":"live_activity","to":{"uids":["u"]},"la":{"#
                + #"\#(BadRecordTests.start),\#(field)}}"#)
    }

    static let messages: [Row] = [
        message("$.event_id", 64, #""event_id":"%""#), message("$.msg_id", 64, #""msg_id":"%""#),
        message("$.type_name", 256, #""type_name":"%""#),
        message("$.conv.id", 128, #""conv":{"id":"%","type":"p2p"}"#),
        message("$.from.uid", 128, #""from":{"uid":"%"}"#),
        message("$.from.device", 128, #""from":{"uid":"a","device":"%"}"#),
        message("$.from.avatar", 512, #""from":{"uid":"a","avatar":"%"}"#),
        message("$.to.uids[1]", 128, #""to":{"uids":["b","%"]}"#),
        message("$.to.exclude[0]", 128, #""to":{"uids":["b"],"exclude":["%"]}"#),
        message("$.mention.uids[0]", 128, #""mention":{"uids":["%"]}"#),
        message("$.push.force.uids[0]", 128, #""push":{"force":{"mode":"list","uids":["%"]}}"#),
        message("$.push.sound", 256, #""push":{"sound":"%"}"#),
        message("$.push.thread_id", 256, #""push":{"thread_id":"%"}"#),
        message("$.push.category", 256, #""push":{"category":"%"}"#),
        message("$.push.template.id", 256, #""push":{"template":{"id":"%"}}"#),
        message("$.push.template.args", 256, #""push":{"template":{"id":"t","args":{"%":"x"}}}"#),
        message("$.push.image", 512, #""push":{"image":"%"}"#),
        message("$.push.task_id", 64, #""push":{"task_id":"%"}"#),
        message("$.push.collapse_id", 256, #""push":{"collapse_id":"%"}"#),
        message("$.push.payload", 256, #""push":{"payload":{"%":1}}"#),
        message("$.push.aps", 256, #""push":{"aps":{"a":[{"%":1}]}}"#),
    ]

    static let states: [Row] = [
        bind("device", 128), bind("cert", 64), bind("content_key", 64), bind("lang", 64),
        bind("activity_id", 256), bind("attributes_type", 256),
        state("$.uid", 128, "settings", #""uid":"%","hold_s":1"#),
        state("$.lang", 64, "settings", #""lang":"%""#),
        state("$.phone", 20, "settings", #""phone":"%""#),
        state("$.conv_id", 128, "mute", #""conv_id":"%","level":5"#),
        state("$.conv_id", 128, "read", #""conv_id":"%","up_to_seq":1"#),
        state("$.device", 128, "ack", #""device":"%","msg_ids":["m"]"#),
        state("$.msg_ids[1]", 64, "ack", #""device":"d","msg_ids":["m","%"]"#),
        state("$.device", 128, "badge_report", #""device":"%","value":1,"client_ms":1700000000000"#),
        state("$.device", 128, "open_report", #""device":"%","pid":"p""#),
        state("$.pid", 256, "open_report", #""device":"d","pid":"%""#),
        state("$.msg_id", 64, "arrived_report", #""device":"d","pid":"p","msg_id":"%""#),
        Row(
            path: "$.token.device", bytes: 128, topic: .userState,
            record: BadRecordTests.state("unbind", #""token":{"device":"%","token":"ab","bind_ver":1}"#)),
    ]

    static let activities: [Row] = [
        activity("$.la.activity_id", 256, #""activity_id":"%""#),
        activity("$.la.attributes_type", 256, #""attributes_type":"%""#),
        activity("$.la.state", 256, #""state":{"%":1}"#), activity("$.la.attributes", 256, #""attributes":{"%":1}"#),
        activity("$.la.alert", 256, #""alert":{"title":"t","%":1}"#),
        activity("$.msg_id", 64, #""attributes":{}},"msg_id":"%","x":{"#),
    ]

    @Test(arguments: messages + states + activities)
    func aNameIsTakenUpToItsBoundInBytes(row: Row) {
        for text in [String(repeating: "x", count: row.bytes), Self.marked(row.bytes)] {
            #expect(row.rule(text) == nil, "\(text.utf8.count) bytes")
        }
        for text in [String(repeating: "x", count: row.bytes + 1), Self.marked(row.bytes + 1), Self.marked(200_001)] {
            let fault = row.rule(text)
            #expect(
                fault?.rule == .longIdentifier && fault?.path == row.path,
                "\(text.utf8.count) bytes: \(fault?.header ?? "taken")")
        }
    }

    /// Words of a closed set have no bound of their own; one that is none must not be compared at any length.
    @Test(arguments: [
        ("$.kind", BadRecordTests.message(#""kind":"%""#), BadRecord.Rule.longIdentifier),
        ("$.push.profile", BadRecordTests.message(#""push":{"profile":"%"}"#), .longIdentifier),
        ("$.conv.type", BadRecordTests.message(#""conv":{"id":"c","type":"%"}"#), .longIdentifier),
    ])
    func noWordIsComparedAtAnyLength(path: String, record: String, rule: BadRecord.Rule) {
        let fault = Row(path: path, bytes: 0, record: record).rule(Self.marked(200_001))
        #expect(fault?.rule == rule && fault?.path == path)
    }

    private static func read(_ record: String, _ topic: RecordClass = .events) throws -> Event.Body {
        try EventReader(apps: ["im"]).read(Array(record.utf8), of: topic).body
    }

    /// 4 x the limit + 64 bytes, since a character has no end of its own.
    @Test(arguments: [("title", 100), ("content", 500)])
    func aTextIsCutInBytesToo(field: String, characters: Int) throws {
        let bytes = 4 * characters + 64
        for text in [Self.marked(300_001), String(repeating: Self.marked(31), count: 9_000)] {
            guard case .message(let shared) = try Self.read(BadRecordTests.message(#""push":{"\#(field)":"\#(text)"}"#))
            else {
                Issue.record("no message")
                return
            }
            let kept = try #require(field == "title" ? shared.value.push.title : shared.value.push.content)
            #expect(kept.utf8.count <= bytes && kept.hasSuffix("…"))
        }
    }

    @Test func aNickIsCutTo64Characters() throws {
        let record = BadRecordTests.message(#""from":{"uid":"a","nick":"\#(String(repeating: "中", count: 65))"}"#)
        guard case .message(let shared) = try Self.read(record) else { return }
        #expect(shared.value.from.nick == String(repeating: "中", count: 63) + "…")
    }

    private static func list(_ count: Int, _ item: String = #""u""#) -> String {
        "[" + Array(repeating: item, count: count).joined(separator: ",") + "]"
    }

    @Test(arguments: [
        ("$.to.exclude", 10_000, RecordClass.events, #""to":{"uids":["b"],"exclude":%}"#),
        ("$.mention.uids", 10_000, .events, #""mention":{"uids":%}"#),
        ("$.push.force.uids", 100, .events, #""push":{"force":{"uids":%}}"#),
        ("$.push.aps", 10_000, .events, #""push":{"aps":{"a":%}}"#),
        ("$.to.uids", 100_000, .events, #""to":{"uids":%}"#),
        ("$.msg_ids", 1_000, .userState, #""device":"d","msg_ids":%"#),
    ])
    func aListIsTakenUpToItsBound(path: String, most: Int, topic: RecordClass, field: String) {
        for (count, fits) in [(most, true), (most + 1, false)] {
            let fields = field.replacing("%", with: Self.list(count))
            let record = topic == .events ? BadRecordTests.message(fields) : BadRecordTests.state("ack", fields)
            let fault = Row(path: path, bytes: 0, topic: topic, record: record).rule("")
            if fits {
                #expect(fault == nil)
            } else {
                #expect(fault?.rule == .longList && fault?.path == path)
            }
        }
    }

    @Test func anObjectOfMoreThan10000KeysIsRefused() {
        let keys = (0...10_000).map { "\"k\($0)\":1" }.joined(separator: ",")
        let fault = Row(path: "", bytes: 0, record: BadRecordTests.message(#""push":{"aps":{\#(keys)}}"#)).rule("")
        #expect(fault?.rule == .longList && fault?.path == "$.push.aps")
    }

    /// In characters it would be ten.
    @Test func customKeysAreBoundedInBytesToo() {
        let text = String(repeating: Self.marked(2_001), count: 10)
        let fault = Row(path: "", bytes: 0, record: BadRecordTests.message(#""push":{"payload":{"k":"\#(text)"}}"#))
            .rule("")
        #expect(fault?.rule == .longPayload)
    }

    /// What may be bound is what can be pushed to.
    @Test(arguments: [64, 400, 402, 512])
    func aTokenThatIsBoundCanBePushedTo(digits: Int) throws {
        let hex = String(repeating: "ab", count: digits / 2)
        guard case .userState(let state) = try Self.read(BadRecordTests.bind(#""token":"\#(hex)""#), .userState),
            case .bind(let binding) = state.change
        else {
            Issue.record("no bind")
            return
        }
        #expect(DeviceToken(binding.token.hex) != nil)
    }
}

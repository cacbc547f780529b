// SPDX-License-Identifier: Apache-2.0
import EventLoop
import JSON
import Simulator
import Testing
import VirtualStage
import Worker

/// Rows of im.md table 1 from record to push, by records alone: what the user set, what the sender sent, what arrived.
@Suite struct FeatureRowTests {
    /// One user, his state, one message to him, and what must come of it.
    private struct Row {
        var row: String
        var uid: String
        var state: [Line] = []
        var type = "p2p"
        var push = #""content":"hi""#
        var more = ""
        var outcome: String
        /// Paths into the payload, `a.b`, each with its value as JSON; `-`: absent.
        var payload: [(String, String)] = []
        var headers: [(String, String)] = []
    }

    private static func mute(_ uid: String, _ level: Int, _ more: String = "") -> Line {
        .state("mute", uid, "\"conv_id\":\"c-\(uid)\",\"level\":\(level)\(more)")
    }

    private static func settings(_ uid: String, _ text: String) -> Line { .state("settings", uid, text) }

    /// A window around now, or one that is far from it, in a zone eight hours east.
    private static func window(_ uid: String, holds: Bool, level: Int) -> Line {
        let minute = Int(nowMs / 60_000 % 1440) + 8 * 60 + (holds ? 0 : 720)
        func text(_ minute: Int) -> String {
            let (hour, rest) = ((minute % 1440) / 60, minute % 60)
            return "\(hour < 10 ? "0" : "")\(hour):\(rest < 10 ? "0" : "")\(rest)"
        }
        let window = #""start":"\#(text(minute - 60))","end":"\#(text(minute + 60))""#
        return settings(uid, #""dnd":{"on":true,\#(window),"tz":"Asia/Shanghai","level":\#(level)}"#)
    }

    private static let forced = #""content":"hi","force":{"mode":"list","uids":["UID"],"content":"wake up"}"#

    private static var mutes: [Row] {
        [
            Row(row: "3", uid: "a1", push: #""enabled":false,"content":"x""#, outcome: "suppressed msg_push_off"),
            Row(
                row: "3", uid: "a2", push: #""title":"t""#, more: #","custom":true"#, outcome: "suppressed msg_push_off"
            ),
            Row(
                row: "4, 5", uid: "a3", state: [mute("a3", 5)], push: forced, outcome: "accepted forced 1",
                payload: [("aps.alert.body", #""Nick: wake up""#)]),
            Row(
                row: "4", uid: "a4", state: [mute("a4", 5)], push: #""content":"x","force":{"mode":"list"}"#,
                outcome: "suppressed conv_muted"),
            Row(row: "6", uid: "a5", state: [mute("a5", 1)], type: "group", outcome: "suppressed conv_muted"),
            Row(
                row: "6", uid: "a6", state: [mute("a6", 2)], type: "group", more: #","mention":{"uids":["a6"]}"#,
                outcome: "accepted ok 1"),
            Row(
                row: "6", uid: "a7", state: [mute("a7", 2)], type: "group", more: #","mention":{"all":true}"#,
                outcome: "suppressed conv_muted"),
            Row(
                row: "6", uid: "a8", state: [mute("a8", 4)], type: "ultra", more: #","mention":{"all":true}"#,
                outcome: "accepted ok 1"),
            Row(
                row: "6", uid: "a9", state: [mute("a9", 5, ",\"until_ms\":\(nowMs - 1000)")], outcome: "accepted ok 1"),
            Row(
                row: "6", uid: "a10", state: [mute("a10", 5, ",\"until_ms\":\(nowMs + 600_000)")],
                outcome: "suppressed conv_muted"),
            Row(row: "7", uid: "a11", type: "system", outcome: "suppressed conv_muted"),
            Row(row: "7", uid: "a12", state: [mute("a12", -1)], type: "system", outcome: "accepted ok 1"),
            Row(row: "8", uid: "a13", state: [window("a13", holds: true, level: 5)], outcome: "suppressed dnd"),
            Row(row: "8", uid: "a14", state: [window("a14", holds: false, level: 5)], outcome: "accepted ok 1"),
            Row(
                row: "9", uid: "a15", state: [window("a15", holds: true, level: 5)], push: forced,
                outcome: "accepted forced 1"),
            // The chain: a mention comes through the window even where the conversation is blocked.
            Row(
                row: "7", uid: "a16", state: [mute("a16", 5), window("a16", holds: true, level: 1)], type: "group",
                more: #","mention":{"uids":["a16"]}"#, outcome: "accepted ok 1"),
            Row(
                row: "15", uid: "a17", push: #""content":"x","badge":false"#, outcome: "accepted ok",
                payload: [("aps.badge", "-")]),
        ]
    }

    private static let hidden = #""show_detail":false"#

    private static var texts: [Row] {
        [
            Row(
                row: "11", uid: "b1",
                state: [.bind("b1", "phone", #","content_key":"order""#), settings("b1", hidden)],
                push: #""title":"t","content":"x","aps":{"alert":{"subtitle":"s"},"subtitle":"s"}"#,
                outcome: "accepted ok 1",
                payload: [("aps.alert", #"{"body":"There is news about your order"}"#), ("aps.subtitle", "-")]),
            Row(
                row: "11", uid: "b2",
                state: [.bind("b2", "phone", #","content_key":"none","lang":"zh-TW""#), settings("b2", hidden)],
                outcome: "accepted ok 1", payload: [("aps.alert", #"{"body":"你收到一則新訊息"}"#)]),
            Row(
                row: "12, 24", uid: "b3", state: [.bind("b3", "phone", #","lang":"ja-JP""#)], push: "",
                more: #","type_name":"RC:ImgMsg""#, outcome: "accepted ok 1",
                payload: [("aps.alert", #"{"body":"Nick: [画像]"}"#)]),
            Row(
                row: "24", uid: "b4",
                state: [.bind("b4", "phone", #","lang":null"#), settings("b4", #""lang":"en-GB""#)],
                push: #""prefix":false"#, more: #","type_name":"PICTURE""#, outcome: "accepted ok 1",
                payload: [("aps.alert", #"{"body":"[Photo]"}"#)]),
            Row(
                row: "24", uid: "b5", state: [.bind("b5", "phone", #","lang":"xx""#)], push: "",
                more: #","type_name":"none""#,
                outcome: "accepted ok 1", payload: [("aps.alert", #"{"body":"Nick: 你收到一条新消息"}"#)]),
            Row(
                row: "13", uid: "b6", push: #""content":"\#(String(repeating: "界", count: 600))""#,
                outcome: "accepted ok 1",
                payload: [("aps.alert", #"{"body":"Nick: \#(String(repeating: "界", count: 499))…"}"#)]),
            Row(
                row: "19", uid: "b7", push: #""content":"x","payload":{"apns-collapse-id":"lifted","k":1}"#,
                outcome: "accepted ok 1", payload: [("apns-collapse-id", "-"), ("k", "1")],
                headers: [("apns-collapse-id", "lifted")]),
            Row(
                row: "20", uid: "b8", push: #""content":"x","profile":"rc","payload":{"k":1}"#,
                outcome: "accepted ok 1",
                payload: [
                    ("rc", #"{"cType":"PR","fId":"sender","oName":"RC:TxtMsg","tId":"sender","id":"m-b8","rId":"b8"}"#),
                    ("appData", #""{\"k\":1}""#), ("k", "-"),
                ]),
            Row(
                row: "20", uid: "b9", type: "group", push: #""content":"x","profile":"wps","payload":{"k":1}"#,
                outcome: "accepted ok 1",
                payload: [
                    (
                        "message",
                        #"{"params":{"conv_id":"c-b9","conv_type":"group","from":"sender","msg_id":"m-b9","k":1}}"#
                    )
                ]),
            Row(
                row: "21, 22, 23", uid: "b10",
                push:
                    #""content":"x","sound":"a.caf","category":"C","interruption":"passive","thread_id":"T","aps":{"sound":"b.caf","badge":9,"relevance-score":0.5,"alert":{"subtitle":"s"}}"#,
                outcome: "accepted ok 1",
                payload: [
                    ("aps.sound", #""b.caf""#), ("aps.badge", "1"), ("aps.category", #""C""#),
                    ("aps.thread-id", #""T""#),
                    ("aps.interruption-level", #""passive""#), ("aps.relevance-score", "0.5"),
                    ("aps.alert", #"{"body":"Nick: x","subtitle":"s"}"#),
                ]),
            Row(
                row: "28", uid: "b11", push: #""content":"x","priority":"low""#,
                more: ",\"expire_at_ms\":\(nowMs + 90_000)", outcome: "accepted ok 1",
                headers: [("apns-priority", "1"), ("apns-push-type", "alert")]),
        ]
    }

    @Test func eachRowWorksFromRecordToPush() throws {
        var settings = LocalCluster.Settings()
        settings.templates = Stage.templates
        settings.appLines = """
                dnd_mode: chain
                force_overrides_dnd: true
                default_levels: { system: 5 }

            """
        try Stage.with(settings) { stage in
            let rows = Self.mutes + Self.texts
            let binds = rows.map { Line.bind($0.uid) }
            try stage.play(state: binds)
            // A later version of the same token, with other words.
            let states = rows.flatMap(\.state).map { Self.later($0) }
            let seen = try stage.play(
                state: states,
                events: rows.map { row in
                    .message(
                        "m-\(row.uid)", to: [row.uid], conv: "c-\(row.uid)", type: row.type,
                        push: row.push.split(separator: "UID", omittingEmptySubsequences: false)
                            .joined(separator: row.uid), row.more)
                })
            for row in rows {
                let device = row.outcome.hasPrefix("accepted") ? "\(row.uid)/phone" : row.uid
                #expect(seen.outcomes(of: "m-\(row.uid)") == ["\(device) \(row.outcome)"], "row \(row.row)")
                let push = seen.push(of: "m-\(row.uid)")
                for (path, value) in row.payload {
                    let found = path.split(separator: ".").reduce(push?.json) { $0?[String($1)] }
                    let wanted = value == "-" ? nil : try JSONTree(parsing: Array(value.utf8))
                    #expect(found.map(Self.sorted) == wanted.map(Self.sorted), "row \(row.row) \(row.uid): \(path)")
                }
                for (name, value) in row.headers {
                    #expect(push?.headers[name] == value, "row \(row.row) \(row.uid): \(name)")
                }
            }
        }
    }

    private static func later(_ line: Line) -> Line {
        guard line.text.contains("\"bind\"") else { return line }
        var line = line
        let text = line.text.split(separator: #""bind_ver":1"#, omittingEmptySubsequences: false)
        line.value = Array(text.joined(separator: #""bind_ver":2"#).utf8)
        return line
    }

    private static func sorted(_ tree: JSONTree) -> JSONTree {
        guard case .object(let members) = tree else { return tree }
        return .object(members.map { .init($0.key, sorted($0.value)) }.sorted { $0.key < $1.key })
    }
}

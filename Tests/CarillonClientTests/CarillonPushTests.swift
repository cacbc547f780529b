// SPDX-License-Identifier: Apache-2.0
import CarillonClient
import Foundation
import JSON
import PushCore
import Support
import Testing

@testable import Worker

/// The payloads that the worker makes, as an app reads them.
@Suite struct CarillonPushTests {
    private static let pid = "0f8fad5b-d9cb-469f-a165-70867728950e"
    private static let kinds = [
        "message", "group", "forced", "hidden", "silent", "call", "revoke", "stalerevoke", "communication", "text",
        "spelled", "picture", "sendercounts",
    ]
    private static let profiles = ["nim", "rc", "wps", "raw"]

    private static func push(_ name: String) throws -> CarillonPush {
        let text = try Cases.text("payloads/\(name).json").replacingOccurrences(of: "PID", with: pid)
        let object = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        return try #require(CarillonPush(object ?? [:]), "\(name)")
    }

    @Test(arguments: kinds, profiles) func everyPayloadIsRead(kind: String, profile: String) throws {
        let push = try Self.push("\(kind)-\(profile)")
        #expect(push.id == Self.pid && push.messageID == "m1")
        #expect(push.hasAlert == (kind != "silent"))
        #expect(push.revokedMessageID == (kind.hasSuffix("revoke") ? "m0" : nil))
        #expect(push.image == (kind == "picture" ? "https://a.example/1.png" : nil))
        #expect((push.communication != nil) == (kind == "communication"))
        if profile != "raw" { #expect(push.conversation != nil) }
    }

    @Test func theNumberIsTheServersOrTheExtensions() throws {
        #expect(try Self.push("message-wps").badge(after: 7, counting: .server) == 3)
        #expect(try Self.push("silent-wps").badge(after: 7, counting: .server) == nil)
        #expect(try Self.push("message-wps").badge(after: 7, counting: .client) == 8)
        let revoke = try Self.push("revoke-wps")
        #expect(revoke.lowersBadge && revoke.badge(after: 7, counting: .client) == 6)
        #expect(revoke.badge(after: 0, counting: .client) == 0)
        #expect(try Self.push("silent-wps").badge(after: 7, counting: .client) == nil)
        // An alert that changes no number does not go through the extension.
        #expect(try Self.push("communication-wps").badge(after: 7, counting: .client) == nil)
    }

    /// `revoke.badge: count` adds 1, as a message does.
    @Test(arguments: ["raw", "nim", "rc"]) func `a revoke that counts adds one`(profile: String) throws {
        var keys: [AnyHashable: Any] = [
            "pid": Self.pid, "aps": ["alert": ["body": "x"], "mutable-content": 1] as [String: Any],
            "revoke_msg_id": "m0",
        ]
        if profile == "rc" { keys["rc"] = ["id": "m1", "tId": "a", "cType": "PR"] }
        let lowering = try #require(CarillonPush(keys))
        #expect(lowering.lowersBadge && lowering.badge(after: 7, counting: .client) == 6)
        keys["revoke_counts"] = true
        let counting = try #require(CarillonPush(keys))
        #expect(!counting.lowersBadge && counting.badge(after: 7, counting: .client) == 8)
    }

    @Test func aPushOfSomebodyElseIsNone() {
        #expect(CarillonPush(["aps": ["alert": "hello"]]) == nil)
        #expect(CarillonPush(["pid": 7]) == nil)
    }

    @Test(arguments: [ClientReport.Kind.opened, .arrived]) func theWorkerReadsAReport(kind: ClientReport.Kind) throws {
        let push = try Self.push("message-raw")
        let hostile = "d\"\\\n\u{1}嗨"
        let report = ClientReport(kind, of: push, app: "im", uid: "ben", device: hostile, atMs: 1_700_000_000_000)
        let text = report.json(sentMs: 1_700_000_000_500)
        #expect(text == report.json(sentMs: 1_700_000_000_500), "a repeated upload is the same record")
        let event = try EventReader(apps: ["im"]).read(Array(text.utf8), of: .userState)
        guard case .userState(let state) = event.body else {
            Issue.record("no user state: \(text)")
            return
        }
        let read: UserState.PushReport
        switch state.change {
        case .openReport(let report): read = report
        case .arrivedReport(let report): read = report
        default:
            Issue.record("another kind: \(text)")
            return
        }
        #expect(read.device == hostile && read.msgID == "m1" && read.pid == Self.pid)
        #expect(state.uid == "ben")
    }
}

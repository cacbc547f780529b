// SPDX-License-Identifier: Apache-2.0
import JSON
import LocalServers
import Simulator
import Testing
import VirtualStage
import Worker

/// Who counts the number on the icon: the client's extension (`badge: none`), or the sender.
struct BadgeCounterTests {
    private static func settings(_ badge: String) -> LocalCluster.Settings {
        var settings = LocalCluster.Settings.oneShard
        settings.appLines = "    badge: \(badge)\n    profile: wps\n"
        return settings
    }

    /// The number of a device whose extension does what the guide of WPS says.
    private static func number(_ pushes: [LedgerEntry]) -> Int {
        pushes.reduce(0) { shown, push in
            let tree = push.json
            guard tree["aps"]?["mutable-content"]?.int == 1, tree["aps"]?["alert"] != nil else { return shown }
            let lowers = tree["message"]?["params"]?["corner_mark_decrease"]?.bool == true
            return max(0, shown + (lowers ? -1 : 1))
        }
    }

    /// What the revoked message got besides an alert that adds 1, and the state that makes it so.
    @Test(arguments: [
        ("dnd", #""content":"x""#), ("silent", #""silent":true"#), ("immutable", #""content":"x","mutable":false"#),
        ("unbound", #""content":"x""#), ("acked", #""content":"x""#), ("alert", #""content":"x""#),
    ])
    func `a recall takes one off only where its message added one`(_ row: (name: String, push: String)) throws {
        try Stage.with(Self.settings("none")) { stage in
            let uid = "u"
            let phone = token(uid, "phone")
            try stage.play(
                state: [.bind(uid)],
                events: (1...3).map { .message("before-\($0)", to: [uid], push: #""content":"a""#) })
            switch row.name {
            case "dnd":
                try stage.play(state: [
                    .state("settings", uid, #""dnd":{"on":true,"start":"00:00","end":"23:59","tz":"UTC"}"#)
                ])
            case "unbound":
                try stage.play(state: [
                    .state("unbind", uid, #""token":{"device":"phone","token":"\#(phone)","bind_ver":1}"#)
                ])
            case "acked":
                try stage.redis([Gateway.lease("gw-a"), Gateway.presence(uid, "phone", gateway: "gw-a")])
                try stage.writeState([.ack(uid, "phone", ["m"])])
                try stage.settle()
            default: break
            }
            try stage.play(events: [.message("m", to: [uid], push: row.push)])
            switch row.name {
            case "dnd":
                try stage.play(state: [.state("settings", uid, sentMs: nowMs, #""dnd":{"on":false}"#)])
            case "unbound": try stage.play(state: [.bind(uid, version: 2, sentMs: nowMs)])
            case "acked": try stage.redis([Gateway.off(uid, "phone")])
            default: break
            }
            let seen = try stage.play(events: [.revoke("r", of: "m", to: uid)])
            #expect(seen.push(of: "r")?.json["aps"]?["alert"] != nil)
            #expect(Self.number(seen.pushes(to: phone)) == 3)
        }
    }

    /// The recall comes while its message is on its way, or after another worker took over.
    @Test(arguments: [true, false]) func `a recall finds the alert of its message`(isClose: Bool) throws {
        try Stage.bare(Self.settings("none")) { stage in
            let phone = token("u", "phone")
            try stage.writeState([.bind("u")])
            let first = try stage.startWorker(waits: false)
            try stage.awaitState(first)
            let (message, revoke) = (Line.message("m", to: ["u"]), Line.revoke("r", of: "m", to: "u"))
            if isClose {
                stage.answerPushes(.late(500))
                try stage.writeEvents([message, revoke])
            } else {
                try stage.play(events: [message])
                #expect(try stage.stop(first))
                try stage.startWorker()
                try stage.writeEvents([revoke])
            }
            let seen = try stage.look(until: "both are pushed and recorded") { !$0.outcomes(of: "r").isEmpty }
            #expect(seen.push(of: "r")?.json["aps"]?["mutable-content"]?.int == 1)
            #expect(Self.number(seen.pushes(to: phone)) == 0)
        }
    }

    @Test func `the result has the sender's badge`() throws {
        try Stage.with(Self.settings("sender")) { stage in
            let seen = try stage.play(
                state: [.bind("u")],
                events: [
                    .message("m1", to: ["u"], push: #""content":"x","aps":{"badge":42}"#),
                    .message("m2", to: ["u"], push: #""content":"x""#),
                    .message("m3", to: ["u"], push: #""silent":true,"aps":{"badge":42}"#),
                ])
            #expect(seen.outcomes(of: "m1") == ["u/phone accepted ok 42"])
            #expect(seen.outcomes(of: "m2") == ["u/phone accepted ok"])
            #expect(seen.outcomes(of: "m3") == ["u/phone accepted ok"])
        }
    }
}

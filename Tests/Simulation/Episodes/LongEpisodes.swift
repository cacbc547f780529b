// SPDX-License-Identifier: Apache-2.0
import SimulatedFleet

extension Episode {
    /// Lives over hours or weeks. Each is quiet before the long wait, in which nobody does anything.
    static let long: [Episode] = [
        Episode("unread messages stay unread for a month", if: { app, _ in app.badge == .server }) { c in
            c.bind()
            c.wait(2)
            for _ in 0..<3 { c.message() }
            let hours = c.waitLong()
            let next = c.message()
            // A ledger that nobody touched for 40 days has expired.
            c.claim(.counts(next, device: "p", hours < 30 * 24 ? 4 : 1))
            c.wait(2)
            let last = c.message()
            c.claim(.counts(last, device: "p", hours < 30 * 24 ? 5 : 2))
        },
        Episode("a report is the base after any time", if: { app, _ in app.badge == .server }) { c in
            c.bind()
            c.wait(2)
            for _ in 0..<3 { c.message() }
            c.wait(2)
            c.change("badge_report", "\"device\":\"p\",\"value\":5,\"client_ms\":NOW")
            _ = c.waitLong()
            for number in Int64(6)...10 {
                c.claim(.counts(c.message(), device: "p", number))
                c.wait(2)
            }
        },
        Episode("a read after a month takes off what is left", if: { app, _ in app.badge == .server }) { c in
            c.bind()
            c.wait(2)
            c.message()
            c.message()
            let hours = c.waitLong()
            c.change("read", "\"conv_id\":\"\(c.conversation)\",\"up_to_seq\":1")
            c.wait(2)
            c.claim(.counts(c.message(), device: "p", hours < 30 * 24 ? 2 : 1))
        },
        Episode("a revoke after a month takes its message off", if: { app, _ in app.badge == .server }) { c in
            c.bind()
            c.wait(2)
            let first = c.message()
            c.message()
            let hours = c.waitLong()
            c.revoke(first, "decrease")
            c.wait(2)
            c.claim(.counts(c.message(), device: "p", hours < 30 * 24 ? 2 : 1))
        },
        Episode("a mute without an end stays, and one with an end ends") { c in
            c.bind()
            c.change("mute", "\"conv_id\":\"\(c.conversation)\",\"level\":5")
            c.change("mute", "\"conv_id\":\"short-\(c.uid)\",\"level\":5,\"until_ms\":NOW+3600")
            c.wait(2)
            for conversation in [c.conversation, "short-\(c.uid)"] {
                c.claim(.ends(c.message(conv: conversation), uid: c.uid, ["": "suppressed conv_muted"]))
            }
            _ = c.waitLong()
            c.claim(.ends(c.message(), uid: c.uid, ["": "suppressed conv_muted"]))
            c.claim(.ends(c.message(conv: "short-\(c.uid)"), uid: c.uid, ["p": "accepted ok"]))
        },
        Episode("settings, read marks and tokens stay, and a snooze ends") { c in
            c.bind()
            c.bind("q")
            c.settings("\"show_detail\":false,\"snooze_until_ms\":NOW+3600")
            c.change("read", "\"conv_id\":\"\(c.conversation)\",\"up_to_seq\":9")
            c.wait(2)
            let snoozed = c.message(seq: 10)
            c.claim(.ends(snoozed, uid: c.uid, ["": "suppressed dnd"]))
            _ = c.waitLong()
            let read = c.message(seq: 9)
            c.claim(.ends(read, uid: c.uid, ["": "suppressed already_read"]))
            let hidden = c.message(seq: 11)
            c.claim(.ends(hidden, uid: c.uid, ["p": "accepted ok", "q": "accepted ok"]))
            c.claim(.has(hidden, device: "p", path: "aps.alert.body", .text(c.texts.generic)))
        },
        Episode("a bind of a lower version stays stale") { c in
            let token = c.bind(version: 500)
            _ = c.waitLong()
            let stale = SentNote()
            c.bind(token: token, version: 400, note: stale)
            c.claim(.result(stale, "stale"))
            c.wait(2)
            c.claim(.ends(c.message(), uid: c.uid, ["p": "accepted ok"]))
        },
        Episode("an activity takes updates for eight hours and an end for twelve") { c in
            let id = "long-\(c.uid)"
            c.bind(type: "activity", more: ",\"activity_id\":\"\(id)\"")
            c.wait(2)
            c.claim(.ends(c.activity(id, "update"), uid: c.uid, ["p": "accepted ok"]))
            let hours = c.waitLong()
            c.claim(.ends(c.activity(id, "update"), uid: c.uid, ["": "suppressed activity_over"]))
            c.wait(2)
            let end = c.activity(id, "end")
            c.claim(.ends(end, uid: c.uid, hours < 12 ? ["p": "accepted ok"] : ["": "suppressed activity_over"]))
            c.wait(2)
            c.bind(type: "activity", more: ",\"activity_id\":\"\(id)\"")
            c.wait(2)
            c.claim(.ends(c.activity(id, "update"), uid: c.uid, ["p": "accepted ok"]))
        },
    ]
}

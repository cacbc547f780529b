// SPDX-License-Identifier: Apache-2.0
import SimulatedFleet

extension Episode {
    /// Long connections, acks, desktops, strategies.
    static let connectionEpisodes: [Episode] = [
        Episode("no ack from a phone in the foreground") { c in
            let token = c.bind()
            c.connect("p")
            c.wait(2)
            let message = c.message()
            c.claim(.delivery(message, device: "p", alerts: true))
            c.claim(.came(message, device: "p", 8...11))
            c.claim(.ends(message, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.accepted(message, token: token, 1))
            c.claim(.counts(message, device: "p", 1))
        },
        Episode("no ack from an app in the background") { c in
            c.bind()
            c.connect("p", "ipad", "bg", local: true, sinceSeconds: 60)
            c.wait(2)
            let message = c.message()
            c.claim(.delivery(message, device: "p", alerts: true))
            c.claim(.came(message, device: "p", 4...7))
        },
        Episode("an ack in time") { c in
            let token = c.bind()
            c.connect("p")
            c.wait(2)
            let message = c.message()
            c.wait(1)
            c.ack("p", message)
            c.claim(.ends(message, uid: c.uid, ["p": "online acked"]))
            c.claim(.accepted(message, token: token, 0))
            c.wait(9)
            c.connect("p", "ios", "off")
            c.wait(1)
            let next = c.message()
            c.claim(.counts(next, device: "p", 2))
        },
        Episode("an ack before its message") { c in
            c.bind()
            c.connect("p")
            let note = SentNote()
            note.messageID = "ack-\(c.uid)"
            c.ack("p", note)
            c.wait(2)
            let message = c.message(id: note)
            c.claim(.ends(message, uid: c.uid, ["p": "online acked"]))
        },
        Episode("the ack of one of two devices") { c in
            let (one, two) = (c.bind("p"), c.bind("q"))
            c.connect("p")
            c.connect("q", connection: 9)
            c.wait(2)
            let message = c.message()
            c.wait(1)
            c.ack("p", message)
            c.wait(0.5)
            c.ack("z", message)
            c.claim(.ends(message, uid: c.uid, ["p": "online acked", "q": "accepted ok"]))
            c.claim(.accepted(message, token: one, 0))
            c.claim(.accepted(message, token: two, 1))
            c.claim(.came(message, device: "q", 8...11))
        },
        Episode("an app that cannot alert, and one that is too long in the background") { c in
            c.bind("p")
            c.bind("q")
            c.bind("r")
            c.connect("p", "ios", "bg", local: false)
            c.connect("q", "ios", "bg", local: true, sinceSeconds: 125)
            c.connect("r", "android", "off")
            c.wait(2)
            let message = c.message()
            for device in ["p", "q", "r"] {
                c.claim(.came(message, device: device, Cast.atOnce))
                c.claim(.delivery(message, device: device, alerts: nil))
            }
        },
        Episode("the presence of another epoch is void") { c in
            c.bind()
            c.connect("p", epoch: 2)
            c.wait(2)
            let message = c.message()
            c.claim(.came(message, device: "p", Cast.atOnce))
            c.claim(.delivery(message, device: "p", alerts: nil))
        },
        Episode("an open conversation") { c in
            let token = c.bind()
            c.connect("p", open: c.conversation)
            c.wait(2)
            let open = c.message()
            c.claim(.ends(open, uid: c.uid, ["p": "online ok"]))
            c.claim(.delivery(open, device: "p", alerts: false))
            c.claim(.accepted(open, token: token, 0))
            c.wait(1)
            c.connect("p", "ios", "off")
            c.wait(1)
            let next = c.message()
            c.claim(.counts(next, device: "p", 1))
            c.wait(1)
            c.connect("pc", "mac", open: c.conversation)
            c.wait(1)
            let third = c.message()
            c.claim(.ends(third, uid: c.uid, ["p": "accepted ok", "pc": "online ok"]))
            c.claim(.counts(third, device: "p", 2))
        },
        Episode("a connection without a token") { c in
            c.connect("p")
            c.wait(2)
            let message = c.message()
            c.claim(.ends(message, uid: c.uid, ["": "suppressed no_token"]))
            c.claim(.delivery(message, device: "p", alerts: true))
            let second = c.message()
            c.wait(1)
            c.ack("p", second)
            c.claim(.ends(second, uid: c.uid, ["p": "online acked"]))
        },
        Episode("what is denied, and a silent message, alert no live device") { c in
            c.bind()
            c.connect("p")
            c.change("mute", "\"conv_id\":\"muted-\(c.uid)\",\"level\":5")
            c.wait(2)
            let muted = c.message(conv: "muted-\(c.uid)")
            c.claim(.ends(muted, uid: c.uid, ["": "suppressed conv_muted"]))
            c.claim(.delivery(muted, device: "p", alerts: false))
            let silent = c.message(#""content":"x","silent":true"#)
            c.claim(.ends(silent, uid: c.uid, ["p": "online ok"]))
            c.claim(.delivery(silent, device: "p", alerts: false))
        },
        Episode("phones wait for a desktop's ack") { c in
            let token = c.bind()
            c.connect("pc", "pc")
            c.settings("\"push_when_desktop_online\":false")
            c.wait(2)
            let message = c.message()
            c.wait(1)
            c.ack("pc", message)
            c.claim(.ends(message, uid: c.uid, ["p": "suppressed desktop_online", "pc": "online acked"]))
            c.claim(.accepted(message, token: token, 0))
            c.wait(1)
            let second = c.message(#""content":"x","force":{"mode":"all","content":"f"}"#)
            c.claim(.ends(second, uid: c.uid, ["p": "accepted forced", "pc": "suppressed no_token"]))
            c.claim(.came(second, device: "p", 8...11))
        },
        Episode("phones do not wait where the user does not want it") { c in
            c.bind()
            c.connect("pc", "web")
            c.settings("\"push_when_desktop_online\":false,\"hold_s\":5")
            c.wait(1)
            c.settings("\"push_when_desktop_online\":true")
            c.wait(2)
            let message = c.message()
            c.wait(1)
            c.ack("pc", message)
            c.claim(.ends(message, uid: c.uid, ["p": "accepted ok", "pc": "online acked"]))
            c.claim(.came(message, device: "p", Cast.atOnce))
        },
        Episode("a hold") { c in
            c.bind()
            c.connect("pc", "pc")
            c.settings("\"push_when_desktop_online\":false,\"hold_s\":3")
            c.wait(2)
            let pushed = c.message(conv: "one-\(c.uid)")
            c.wait(0.5)
            c.ack("pc", pushed)
            c.claim(.ends(pushed, uid: c.uid, ["p": "accepted ok", "pc": "online acked"]))
            c.claim(.came(pushed, device: "p", 3...6))
            let read = c.message(conv: "two-\(c.uid)")
            c.wait(1)
            c.ack("pc", read)
            c.change("read", "\"conv_id\":\"two-\(c.uid)\",\"up_to_seq\":1")
            c.claim(.ends(read, uid: c.uid, ["p": "suppressed already_read", "pc": "online acked"]))
            let revoked = c.message(conv: "three-\(c.uid)")
            c.wait(1)
            c.ack("pc", revoked)
            c.revoke(revoked)
            c.claim(.ends(revoked, uid: c.uid, ["p": "suppressed revoked", "pc": "online acked"]))
        },
        Episode("a hold that is too long for memory") { c in
            c.bind()
            c.connect("pc", "pc")
            c.settings("\"push_when_desktop_online\":false,\"hold_s\":7")
            c.wait(2)
            let message = c.message()
            c.wait(0.5)
            c.ack("pc", message)
            c.claim(.ends(message, uid: c.uid, ["p": "accepted ok", "pc": "online acked"]))
            c.claim(.came(message, device: "p", 7...11))
        },
        Episode("a conversation that is open on the desktop") { c in
            c.bind()
            c.connect("pc", "pc", open: c.conversation)
            c.settings("\"push_when_desktop_online\":false")
            c.wait(2)
            let message = c.message()
            c.claim(.ends(message, uid: c.uid, ["p": "suppressed desktop_online", "pc": "online ok"]))
            c.wait(1)
            let other = c.message(to: "\"uids\":[\"\(c.uid)\"],\"devices\":[\"p\"]")
            c.claim(.ends(other, uid: c.uid, ["p": "accepted ok"]))
        },
        Episode("APNs only") { c in
            c.bind()
            c.connect("p")
            c.wait(2)
            let message = c.message(#""content":"x","strategy":2"#)
            c.claim(.ends(message, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.came(message, device: "p", Cast.atOnce))
            c.claim(.delivery(message, device: "p", alerts: nil))
        },
        Episode("the long connection only") { c in
            c.bind("p")
            c.bind("q")
            c.connect("p")
            c.wait(2)
            let message = c.message(#""content":"x","strategy":3"#)
            c.wait(1)
            c.ack("p", message)
            c.claim(.ends(message, uid: c.uid, ["p": "online acked", "q": "suppressed connection_only"]))
            c.wait(1)
            let unacked = c.message(#""content":"x","strategy":3"#)
            c.claim(.ends(unacked, uid: c.uid, ["p": "suppressed connection_only", "q": "suppressed connection_only"]))
        },
        Episode("APNs first") { c in
            c.bind("p")
            c.bind("q", .tooLarge)
            c.connect("p")
            c.connect("q", connection: 8)
            c.wait(2)
            let message = c.message(#""content":"x","strategy":4"#)
            c.claim(.ends(message, uid: c.uid, ["p": "accepted ok", "q": "rejected PayloadTooLarge"]))
            c.claim(.delivery(message, device: "p", alerts: false))
            c.claim(.delivery(message, device: "q", alerts: true))
        },
        Episode("several alerts become one", if: { app, _ in app.burstTenths > 0 }) { c in
            let token = c.bind()
            c.wait(2)
            let first = c.message()
            c.wait(0.1)
            let second = c.message()
            let third = c.message()
            let other = c.message(conv: "else-\(c.uid)")
            c.claim(.ends(first, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.ends(other, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.came(first, device: "p", Cast.atOnce))
            c.claim(.came(other, device: "p", Cast.atOnce))
            c.claim(.ends(second, uid: c.uid, ["p": "suppressed coalesced"]))
            c.claim(.ends(third, uid: c.uid, ["p": "accepted ok"]))
            let seconds = Double(c.app.burstTenths) / 10
            c.claim(.came(third, device: "p", (seconds - 0.4)...(seconds + 2)))
            c.claim(.has(third, device: "p", path: "aps.alert.body", .text("2" + c.texts.merged.other)))
            c.claim(.has(third, device: "p", path: "aps.alert.title", .text("N")))
            c.claim(.counts(third, device: "p", 4))
            c.claim(.accepted(second, token: token, 0))
        },
        Episode("a read message is in no merged alert", if: { app, _ in app.burstTenths > 12 }) { c in
            c.bind()
            c.wait(2)
            c.message()
            c.wait(0.1)
            let read = c.message()
            c.wait(0.1)
            c.change("read", "\"conv_id\":\"\(c.conversation)\",\"up_to_seq\":2")
            c.wait(0.5)
            let next = c.message()
            c.claim(.ends(read, uid: c.uid, ["p": "suppressed already_read"]))
            c.claim(.ends(next, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.has(next, device: "p", path: "aps.alert.body", .text(c.prefix + "words")))
            c.claim(.counts(next, device: "p", 1))
        },
        Episode(
            "a digest after quiet hours",
            if: { app, boundary in app.sendsDigests && app.badge == .server && boundary >= 14 }
        ) { c in
            let token = c.bind()
            c.settings("\"dnd\":{\"on\":true,\"windows\":[\(c.hoursUntilBoundary)],\"tz\":\"UTC\"}")
            c.wait(1.5)
            let held = (0..<3).map { c.message(conv: "d\($0)-\(c.uid)") }
            for message in held { c.claim(.ends(message, uid: c.uid, ["": "suppressed dnd"])) }
            c.wait(1)
            c.change("read", "\"conv_id\":\"d0-\(c.uid)\",\"up_to_seq\":1")
            c.claim(.digest(token: token, 2))
            // The boundary comes in the first 40 s of a world, and the episode began after 6 s at the earliest.
            c.wait(32)
        },
        Episode(
            "a digest leaves out what a report includes",
            if: { app, boundary in app.sendsDigests && app.badge == .server && boundary >= 18 }
        ) { c in
            let token = c.bind()
            c.settings("\"dnd\":{\"on\":true,\"windows\":[\(c.hoursUntilBoundary)],\"tz\":\"UTC\"}")
            c.wait(1.5)
            let held = (0..<2).map { c.message(conv: "d\($0)-\(c.uid)") }
            for message in held { c.claim(.ends(message, uid: c.uid, ["": "suppressed dnd"])) }
            c.wait(1.5)
            c.change("badge_report", "\"device\":\"p\",\"value\":0,\"client_ms\":NOW")
            c.wait(1.5)
            for place in 2..<4 { c.message(conv: "d\(place)-\(c.uid)") }
            c.claim(.digest(token: token, 2))
            c.wait(32)
        },
    ]
}

extension Cast {
    /// Windows that end at the boundary of the world's minute, whichever it is.
    var hoursUntilBoundary: String {
        [("07:00", "08:00"), ("15:00", "16:00"), ("00:00", "01:00")]
            .map { "{\"start\":\"\($0.0)\",\"end\":\"\($0.1)\"}" }.joined(separator: ",")
    }
}

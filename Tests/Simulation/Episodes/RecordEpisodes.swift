// SPDX-License-Identifier: Apache-2.0
extension Episode {
    /// Records that nobody can use, and stale records.
    static let recordEpisodes: [Episode] = [
        Episode("bad events") { c in
            let head = "\"v\":1,\"app\":\"kit\",\"event_id\":\"EVENT\",\"sent_ms\":NOW"
            let conv = "\"conv\":{\"id\":\"c\",\"type\":\"p2p\"},\"from\":{\"uid\":\"peer\"}"
            let to = "\"to\":{\"uids\":[\"\(c.uid)\"]}"
            c.bind()
            c.wait(1)
            func message(_ words: String, _ rest: String) {
                c.bad(words, "{\(head),\"kind\":\"message\",\"msg_id\":\"EVENT\",\(rest)}")
            }
            message("$.to", "\(conv)")
            message("$.conv", "\"from\":{\"uid\":\"peer\"},\(to)")
            message("$.from.uid", "\"conv\":{\"id\":\"c\",\"type\":\"p2p\"},\"from\":{},\(to)")
            message("$.conv.type", "\"conv\":{\"id\":\"c\",\"type\":\"room\"},\"from\":{\"uid\":\"p\"},\(to)")
            message("$.to.uids", "\(conv),\"to\":{\"uids\":[]}")
            message("$.to.uids[1]", "\(conv),\"to\":{\"uids\":[\"\(c.uid)\",\"\"]}")
            message("$.to.tokens", "\(conv),\"to\":{\"uids\":[\"\(c.uid)\"],\"tokens\":[\"e000aa\"]}")
            message("$.expire_at_ms", "\(conv),\(to),\"expire_at_ms\":1700000000")
            message("$.server_seq", "\(conv),\(to),\"server_seq\":1.0")
            message("$.push.interruption", "\(conv),\(to),\"push\":{\"interruption\":\"loud\"}")
            message("$.push.strategy", "\(conv),\(to),\"push\":{\"strategy\":5}")
            message("$.push.badge", "\(conv),\(to),\"push\":{\"badge\":1}")
            message(
                "$.conv.id",
                "\"conv\":{\"id\":\"\(String(repeating: "c", count: 129))\",\"type\":\"p2p\"},\"from\":{\"uid\":\"p\"},\(to)"
            )
            message("$.mention.uids[0]", "\(conv),\(to),\"mention\":{\"uids\":[\"\"]}")
            c.bad("$.v", "{\"v\":2,\"kind\":\"message\",\"app\":\"kit\",\"event_id\":\"EVENT\",\"sent_ms\":NOW}")
            c.bad(
                "$.sent_ms",
                "{\"v\":1,\"kind\":\"message\",\"app\":\"kit\",\"event_id\":\"EVENT\",\"sent_ms\":1700000000}")
            c.bad("$.kind", "{\(head),\"kind\":\"letter\"}")
            c.bad("$.kind", "{\(head),\"kind\":\"bind\",\"uid\":\"\(c.uid)\"}")
            c.bad("$.revoke", "{\(head),\"kind\":\"revoke\",\"msg_id\":\"EVENT\",\(conv),\(to)}")
            c.bad(
                "$.la.alert",
                "{\(head),\"kind\":\"live_activity\",\(to),\"la\":{\"activity_id\":\"a\",\"event\":\"start\",\"state\":{},\"attributes_type\":\"R\",\"attributes\":{}}}"
            )
            c.bad(
                "$.to.devices",
                "{\(head),\"kind\":\"live_activity\",\"to\":{\"uids\":[\"\(c.uid)\"],\"devices\":[\"p\"]},\"la\":{\"activity_id\":\"a\",\"event\":\"end\",\"state\":{}}}"
            )
            message("$.push.send_at_ms", "\(conv),\(to),\"push\":{\"send_at_ms\":NOW+700000}")
            c.bad(
                "$.la",
                "{\(head),\"kind\":\"live_activity\",\(to),\"la\":{\"activity_id\":\"a\",\"event\":\"end\",\"state\":{},\"channel\":\"dHN0\"}}"
            )
            c.bad("byte", "{\(head),\"kind\":\"message\" \"EVENT\"}")
            c.wait(2)
            let good = c.message(more: ",\"unknown\":1,\"mention\":null,\"v\":1")
            c.claim(.ends(good, uid: c.uid, ["p": "accepted ok"]))
        },
        Episode("bad changes of user state") { c in
            let head = "\"v\":1,\"app\":\"kit\",\"event_id\":\"EVENT\",\"sent_ms\":NOW,\"uid\":\"\(c.uid)\""
            func change(_ words: String, _ rest: String) { c.bad(words, topic: "im.user-state", "{\(head),\(rest)}") }
            change("$.level", "\"kind\":\"mute\",\"conv_id\":\"c\",\"level\":3")
            change("$.hold_s", "\"kind\":\"settings\",\"hold_s\":601")
            change("$.up_to_seq", "\"kind\":\"read\",\"conv_id\":\"c\"")
            change("$.up_to_ms", "\"kind\":\"read\",\"conv_id\":\"c\",\"up_to_ms\":1700000000")
            change("$.dnd.tz", "\"kind\":\"settings\",\"dnd\":{\"tz\":\"Mars/Base\"}")
            change("$.dnd", "\"kind\":\"settings\",\"dnd\":{\"on\":true}")
            change("$.dnd", "\"kind\":\"settings\",\"dnd\":{\"start\":\"08:00\",\"end\":\"08:00\"}")
            change("$.dnd", "\"kind\":\"settings\",\"dnd\":{\"windows\":[]}")
            change("$.dnd", "\"kind\":\"settings\",\"dnd\":{\"days\":[8],\"start\":\"08:00\",\"end\":\"09:00\"}")
            change(
                "$.token.type",
                "\"kind\":\"bind\",\"token\":{\"device\":\"p\",\"token\":\"aa\",\"env\":\"production\",\"topic\":\"t\",\"type\":\"fax\",\"bind_ver\":1}"
            )
            change(
                "$.token.token",
                "\"kind\":\"bind\",\"token\":{\"device\":\"p\",\"token\":\"xyz\",\"env\":\"production\",\"topic\":\"t\",\"type\":\"alert\",\"bind_ver\":1}"
            )
            change(
                "$.token.activity_id",
                "\"kind\":\"bind\",\"token\":{\"device\":\"p\",\"token\":\"aabb\",\"env\":\"production\",\"topic\":\"t\",\"type\":\"activity\",\"bind_ver\":1}"
            )
            change("$.phone", "\"kind\":\"settings\",\"phone\":\"123456789012345678901\"")
            change("$.msg_ids", "\"kind\":\"ack\",\"device\":\"p\",\"msg_ids\":[]")
            change("$.value", "\"kind\":\"badge_report\",\"device\":\"p\",\"client_ms\":NOW")
            change("$.kind", "\"kind\":\"message\",\"msg_id\":\"m\"")
            c.bind()
            c.wait(2)
            let good = c.message()
            c.claim(.ends(good, uid: c.uid, ["p": "accepted ok"]))
        },
        Episode("settings by their own time") { c in
            c.bind()
            c.settings("\"show_detail\":false")
            c.wait(1)
            let older = c.change("settings", "\"show_detail\":true,\"lang\":\"en\"", sent: -10)
            c.claim(.result(older, "applied"))
            c.wait(2)
            let message = c.message()
            c.claim(.has(message, device: "p", path: "aps.alert.body", .text("You have a new message")))
            c.wait(1)
            let stale = c.change("settings", "\"show_detail\":true", sent: -20)
            c.claim(.result(stale, "stale"))
            let newer = c.settings("\"show_detail\":true")
            c.claim(.result(newer, "applied"))
            c.wait(2)
            let shown = c.message(#""content":"shown","prefix":false"#)
            c.claim(.has(shown, device: "p", path: "aps.alert.body", .text("shown")))
        },
        Episode("a change that is known is a repeat") { c in
            // Of two members with one name the later one counts.
            let sent = ",\"sent_ms\":1700000000000"
            for (kind, fields) in [
                ("settings", "\"show_detail\":false"), ("mute", "\"conv_id\":\"\(c.conversation)\",\"level\":5"),
                ("read", "\"conv_id\":\"\(c.conversation)\",\"up_to_seq\":3"),
                ("badge_report", "\"device\":\"p\",\"value\":3,\"client_ms\":1600000000000"),
            ] {
                c.claim(.result(c.change(kind, fields + sent), "applied"))
                c.claim(.result(c.change(kind, fields + sent), "repeat"))
            }
        },
        Episode("a read from a client whose clock is fast") { c in
            c.bind()
            c.wait(2)
            c.message()
            c.wait(1)
            c.change("read", "\"conv_id\":\"\(c.conversation)\",\"up_to_ms\":NOW+3600")
            c.wait(2)
            let next = c.message()
            c.claim(.ends(next, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.counts(next, device: "p", 1))
        },
        Episode("a message at its own time") { c in
            c.bind()
            c.wait(2)
            let later = c.message(#""content":"later","send_at_ms":NOW+8"#)
            let now = c.message()
            c.claim(.ends(now, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.came(now, device: "p", Cast.atOnce))
            c.claim(.counts(now, device: "p", 1))
            c.wait(2)
            // The message is not sent yet, so the read does not include it.
            c.change("read", "\"conv_id\":\"\(c.conversation)\",\"up_to_ms\":NOW")
            c.claim(.ends(later, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.came(later, device: "p", 8...12))
            c.claim(.counts(later, device: "p", 1))
            c.claim(.header(later, device: "p", "lives 86408"))
            c.claim(.has(later, device: "p", path: "aps.alert.body", .text(c.prefix + "later")))
        },
        Episode("a message at its own time is decided then") { c in
            let former = c.bind()
            c.wait(2)
            let later = c.message(#""content":"later","send_at_ms":NOW+8"#)
            let muted = c.message(#""content":"later","send_at_ms":NOW+8"#, conv: "else-\(c.uid)")
            let past = c.message(#""content":"at once","send_at_ms":NOW-60"#, conv: "past-\(c.uid)")
            c.claim(.ends(past, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.came(past, device: "p", Cast.atOnce))
            c.wait(2)
            let token = c.bind()
            c.change("mute", "\"conv_id\":\"else-\(c.uid)\",\"level\":5")
            c.claim(.accepted(later, token: former, 0))
            c.claim(.accepted(later, token: token, 1))
            c.claim(.ends(muted, uid: c.uid, ["": "suppressed conv_muted"]))
            c.claim(.counts(later, device: "p", 2))
        },
        Episode("a revoke before the time of its message") { c in
            let token = c.bind()
            c.wait(2)
            let later = c.message(#""content":"later","send_at_ms":NOW+8"#)
            c.wait(2)
            let revoke = c.revoke(later)
            c.claim(.accepted(later, token: token, 0))
            c.claim(.accepted(revoke, token: token, 0))
            c.claim(.ends(later, uid: c.uid, ["p": "suppressed revoked"]))
            c.claim(.ends(revoke, uid: c.uid, ["": "suppressed revoked"]))
            c.wait(8)
            let next = c.message()
            c.claim(.counts(next, device: "p", 1))
        },
        Episode("reports of a push") { c in
            c.bind()
            c.wait(2)
            c.message()
            c.wait(1)
            let unknown = c.change(
                "open_report",
                "\"device\":\"p\",\"pid\":\"00000000-0000-0000-0000-000000000000\",\"msg_id\":\"none\",\"opened_ms\":NOW"
            )
            c.claim(.result(unknown, "ignored"))
        },
        Episode("messages in order in a conversation") { c in
            let token = c.bind()
            c.wait(2)
            let all = (0..<6).map { _ in c.message() }
            c.claim(.order(all, token: token))
            c.claim(.rises(all, device: "p"))
        },
    ]
}

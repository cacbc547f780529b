// SPDX-License-Identifier: Apache-2.0
extension Episode {
    /// Mutes, quiet hours, mentions, force.
    static let decisionEpisodes: [Episode] = [
        Episode("levels between two persons") { c in
            c.bind()
            for (place, level) in [1, 2, 4, 5].enumerated() {
                c.change("mute", "\"conv_id\":\"m\(place)-\(c.uid)\",\"level\":\(level)")
            }
            c.change("mute", "\"conv_id\":\"all-\(c.uid)\",\"level\":-1")
            c.wait(2)
            for place in 0..<4 {
                let message = c.message(
                    conv: "m\(place)-\(c.uid)", more: ",\"mention\":{\"all\":true,\"uids\":[\"\(c.uid)\"]}")
                c.claim(.ends(message, uid: c.uid, ["": "suppressed conv_muted"]))
            }
            c.wait(1)
            let message = c.message(conv: "all-\(c.uid)")
            c.claim(.ends(message, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.counts(message, device: "p", 1))
        },
        Episode("levels in a group") { c in
            let (all, me, either) = (c.other("a"), c.other("m"), c.other("e"))
            for user in [all, me, either] { c.bind(of: user) }
            let group = "g-\(c.uid)"
            c.group(group, [(c.uid, 5), (all, 4), (me, 2), (either, 1), ("peer", 0)])
            c.wait(2)
            let members = [c.uid, all, me, either]
            func outcomes(_ message: SentNote, _ passing: [String]) {
                c.claim(.ends(message, uid: c.uid, ["": "suppressed conv_muted"]))
                for user in [all, me, either] {
                    c.claim(
                        .ends(
                            message, uid: user,
                            passing.contains(user) ? ["p": "accepted ok"] : ["": "suppressed conv_muted"]))
                }
            }
            outcomes(c.message(conv: group, type: "group"), [])
            c.wait(1)
            let toAll = c.message(conv: group, type: "group", more: ",\"mention\":{\"all\":true}")
            outcomes(toAll, [all, either])
            c.wait(1)
            let toMe = c.message(
                conv: group, type: "group", more: ",\"mention\":{\"uids\":[\"\(me)\",\"\(c.uid)\"]}")
            outcomes(toMe, [me])
            c.wait(1)
            let toEach = c.message(
                conv: group, type: "ultra", more: ",\"mention\":{\"uids\":[\"\(either)\",\"\(all)\"]}")
            outcomes(toEach, [either])
        },
        Episode("a user's level wins over the group's") { c in
            c.bind()
            let group = "h-\(c.uid)"
            c.group(group, [(c.uid, 5)])
            c.change("mute", "\"conv_id\":\"\(group)\",\"level\":-1")
            c.wait(2)
            let message = c.message(conv: group, type: "group")
            c.claim(.ends(message, uid: c.uid, ["p": "accepted ok"]))
            c.wait(1)
            c.change("mute", "\"conv_id\":\"\(group)\",\"level\":0")
            c.wait(2)
            let muted = c.message(conv: group, type: "group")
            c.claim(.ends(muted, uid: c.uid, ["": "suppressed conv_muted"]))
            c.wait(1)
            let named = c.message(
                #""content":"x","force":{"mode":"list","uids":["\#(c.uid)"],"content":"forced words"}"#,
                conv: group, type: "group")
            c.claim(.ends(named, uid: c.uid, ["p": "accepted forced"]))
            c.claim(.has(named, device: "p", path: "aps.alert.body", .text(c.prefix + "forced words")))
            c.claim(.counts(named, device: "p", 2))
            c.wait(1)
            let kept = c.message(
                #""content":"x","force":{"mode":"all","content":"f","lift_mute":false}"#, conv: group, type: "group")
            c.claim(.ends(kept, uid: c.uid, ["": "suppressed conv_muted"]))
            let none = c.message(
                #""content":"x","force":{"mode":"list","uids":[],"content":"f"}"#, conv: group, type: "group")
            c.claim(.ends(none, uid: c.uid, ["": "suppressed conv_muted"]))
            let off = c.message(
                #""content":"x","force":{"mode":"none","uids":["\#(c.uid)"],"content":"f"}"#, conv: group, type: "group"
            )
            c.claim(.ends(off, uid: c.uid, ["": "suppressed conv_muted"]))
        },
        Episode("the group's level wins over the user's for the type") { c in
            c.bind()
            c.group("l-\(c.uid)", [(c.uid, -1)])
            c.group("u-\(c.uid)", [(c.uid, 0)])
            c.settings("\"levels\":{\"group\":5}")
            c.wait(2)
            let heard = c.message(conv: "l-\(c.uid)", type: "group")
            c.claim(.ends(heard, uid: c.uid, ["p": "accepted ok"]))
            let muted = c.message(conv: "u-\(c.uid)", type: "group")
            c.claim(.ends(muted, uid: c.uid, ["": "suppressed conv_muted"]))
            let other = c.message(conv: "u-\(c.uid)", type: "ultra", uids: [c.uid])
            c.claim(.ends(other, uid: c.uid, ["p": "accepted ok"]))
        },
        Episode("a mute ends, and a newer one replaces it") { c in
            c.bind()
            c.change("mute", "\"conv_id\":\"\(c.conversation)\",\"level\":5,\"until_ms\":NOW+4")
            c.wait(2)
            let muted = c.message()
            c.claim(.ends(muted, uid: c.uid, ["": "suppressed conv_muted"]))
            c.wait(3)
            let heard = c.message()
            c.claim(.ends(heard, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.counts(heard, device: "p", 1))
            c.wait(1)
            c.change("mute", "\"conv_id\":\"\(c.conversation)\",\"level\":5")
            c.wait(1)
            let older = c.change("mute", "\"conv_id\":\"\(c.conversation)\",\"level\":0", sent: -5)
            c.claim(.result(older, "stale"))
            c.wait(2)
            let again = c.message()
            c.claim(.ends(again, uid: c.uid, ["": "suppressed conv_muted"]))
        },
        Episode("quiet hours of level 5") { c in
            c.bind()
            c.settings("\"dnd\":{\"on\":true,\"start\":\"00:00\",\"end\":\"23:59\",\"tz\":\"UTC\"}")
            c.wait(2)
            let held = c.message()
            c.claim(.ends(held, uid: c.uid, ["": "suppressed dnd"]))
            let forced = c.message(#""content":"x","force":{"mode":"all","content":"f"}"#)
            c.claim(
                .ends(
                    forced, uid: c.uid,
                    c.app.forceOverridesDND ? ["p": "accepted forced"] : ["": "suppressed dnd"]))
            c.wait(1)
            c.settings("\"dnd\":{\"on\":false}")
            c.wait(2)
            let next = c.message()
            c.claim(.ends(next, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.counts(next, device: "p", 3))
            c.wait(1)
            c.settings("\"dnd\":{\"on\":true}")
            c.wait(2)
            let again = c.message()
            c.claim(.ends(again, uid: c.uid, ["": "suppressed dnd"]))
        },
        Episode("quiet hours of level 1") { c in
            c.bind()
            let group = "q-\(c.uid)"
            c.group(group, [(c.uid, 5)])
            c.settings("\"dnd\":{\"on\":true,\"level\":1,\"start\":\"00:00\",\"end\":\"23:59\",\"tz\":\"UTC\"}")
            c.change("mute", "\"conv_id\":\"free-\(c.uid)\",\"level\":-1")
            c.wait(2)
            let person = c.message(more: ",\"mention\":{\"uids\":[\"\(c.uid)\"]}")
            c.claim(.ends(person, uid: c.uid, ["": "suppressed dnd"]))
            let plain = c.message(conv: "free-\(c.uid)", type: "group", uids: [c.uid])
            c.claim(.ends(plain, uid: c.uid, ["": "suppressed dnd"]))
            c.wait(1)
            let all = c.message(
                conv: "free-\(c.uid)", type: "group", uids: [c.uid], more: ",\"mention\":{\"all\":true}")
            c.claim(.ends(all, uid: c.uid, ["p": "accepted ok"]))
            c.wait(1)
            let blocked = c.message(
                conv: group, type: "group", more: ",\"mention\":{\"uids\":[\"\(c.uid)\"]}")
            c.claim(
                .ends(
                    blocked, uid: c.uid,
                    c.app.windowDecides ? ["p": "accepted ok"] : ["": "suppressed conv_muted"]))
            let unmentioned = c.message(conv: group, type: "group")
            c.claim(
                .ends(
                    unmentioned, uid: c.uid,
                    ["": "suppressed \(c.app.windowDecides ? "dnd" : "conv_muted")"]))
        },
        Episode("a snooze denies mentions too") { c in
            c.bind()
            c.settings(
                "\"dnd\":{\"on\":true,\"level\":1,\"start\":\"00:00\",\"end\":\"23:59\",\"tz\":\"UTC\"},"
                    + "\"snooze_until_ms\":NOW+600")
            c.wait(2)
            let mention = ",\"mention\":{\"all\":true}"
            let held = c.message(conv: "s-\(c.uid)", type: "group", uids: [c.uid], more: mention)
            c.claim(.ends(held, uid: c.uid, ["": "suppressed dnd"]))
            c.wait(1)
            c.settings("\"snooze_until_ms\":0")
            c.wait(2)
            let free = c.message(conv: "s-\(c.uid)", type: "group", uids: [c.uid], more: mention)
            c.claim(.ends(free, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.counts(free, device: "p", 2))
        },
        Episode("windows of quiet hours in a list") { c in
            c.bind()
            c.settings(
                "\"dnd\":{\"on\":true,\"tz\":\"UTC\",\"windows\":[{\"start\":\"00:00\",\"end\":\"00:01\",\"days\":[1]},"
                    + "{\"start\":\"00:01\",\"end\":\"00:00\"},{\"start\":\"23:58\",\"end\":\"00:02\"}]}")
            c.wait(2)
            let held = c.message()
            c.claim(.ends(held, uid: c.uid, ["": "suppressed dnd"]))
            c.wait(1)
            c.settings("\"dnd\":{\"start\":\"00:00\",\"end\":\"23:59\",\"days\":[2]}")
            c.wait(2)
            // No world is on a Tuesday.
            let free = c.message()
            c.claim(.ends(free, uid: c.uid, ["p": "accepted ok"]))
        },
        Episode("a window has the day on which it began") { c in
            c.bind()
            // All worlds are on a Friday or a Sunday of UTC, hours from its midnight.
            c.settings("\"dnd\":{\"on\":true,\"start\":\"23:59\",\"end\":\"23:58\",\"days\":[4,6],\"tz\":\"UTC\"}")
            c.wait(2)
            let held = c.message()
            c.claim(.ends(held, uid: c.uid, ["": "suppressed dnd"]))
            c.wait(1)
            c.settings("\"dnd\":{\"start\":\"23:59\",\"end\":\"23:58\",\"days\":[5,7]}")
            c.wait(2)
            let free = c.message()
            c.claim(.ends(free, uid: c.uid, ["p": "accepted ok"]))
        },
        Episode("the zone of the newest token") { c in
            c.bind("q", more: ",\"tz\":\"Asia/Kolkata\"")
            c.wait(1)
            c.bind(more: ",\"tz\":\"UTC\"")
            // 16:00 in Shanghai is 08:00 UTC; midnight there is 16:00; the third boundary is 01:00 UTC.
            c.settings("\"dnd\":{\"on\":true,\"windows\":[\(c.hours(of: "UTC"))]}")
            c.wait(2)
            let held = c.message()
            c.claim(.ends(held, uid: c.uid, ["": "suppressed dnd"]))
            c.wait(1)
            c.settings("\"dnd\":{\"tz\":\"Asia/Kolkata\"}")
            c.wait(2)
            let free = c.message()
            c.claim(.ends(free, uid: c.uid, ["p": "accepted ok", "q": "accepted ok"]))
            c.wait(1)
            c.settings("\"dnd\":{\"tz\":\"\"}")
            c.wait(2)
            let again = c.message()
            c.claim(.ends(again, uid: c.uid, ["": "suppressed dnd"]))
        },
        Episode("the app's zone") { c in
            c.bind()
            c.settings("\"dnd\":{\"on\":true,\"windows\":[\(c.hours(of: "Asia/Shanghai"))]}")
            c.wait(2)
            let held = c.message()
            c.claim(.ends(held, uid: c.uid, ["": "suppressed dnd"]))
        },
        Episode("a held message counts, and a read of it does not alert") { c in
            c.bind()
            c.settings("\"dnd\":{\"on\":true,\"start\":\"00:00\",\"end\":\"23:59\",\"tz\":\"UTC\"}")
            c.wait(2)
            c.message()
            c.message()
            c.wait(2)
            c.change("read", "\"conv_id\":\"\(c.conversation)\",\"up_to_seq\":1")
            c.settings("\"dnd\":{\"on\":false}")
            c.wait(2)
            let next = c.message()
            c.claim(.counts(next, device: "p", 2))
        },
        Episode("sender and excluded users get nothing") { c in
            let (sender, out) = (c.other("s"), c.other("o"))
            for user in [c.uid, sender, out] { c.bind(of: user) }
            let group = "x-\(c.uid)"
            c.group(group, [(c.uid, 0), (sender, 0), (out, 0)])
            c.wait(2)
            let message = c.message(
                conv: group, type: "group", to: "\"exclude\":[\"\(out)\"]",
                from: "\"uid\":\"\(sender)\",\"nick\":\"N\"")
            c.claim(.ends(message, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.ends(message, uid: sender, [:]))
            c.claim(.ends(message, uid: out, [:]))
            let nobody = c.message(
                #""content":"x","force":{"mode":"all","content":"f"}"#, uids: [sender],
                from: "\"uid\":\"\(sender)\",\"nick\":\"N\"")
            c.claim(.ends(nobody, uid: "", ["": "suppressed no_recipients"]))
            let unknown = c.message(conv: "unknown-\(c.uid)", type: "ultra")
            c.claim(.ends(unknown, uid: "", ["": "suppressed no_recipients"]))
        },
        Episode("a custom type alerts only with content") { c in
            c.bind()
            c.wait(2)
            let none = c.message("", more: ",\"custom\":true")
            c.claim(.ends(none, uid: c.uid, ["": "suppressed msg_push_off"]))
            let blank = c.message(#""content":" \u200b ""#, more: ",\"custom\":true")
            c.claim(.ends(blank, uid: c.uid, ["": "suppressed msg_push_off"]))
            let template = c.message(
                #""template":{"id":"hello","args":{"name":"Bo","what":"hi"}}"#, more: ",\"custom\":true")
            c.claim(.ends(template, uid: c.uid, ["p": "accepted ok"]))
            c.wait(1)
            let vetoed = c.message(
                #""content":"x","enabled":false,"force":{"mode":"all","content":"f"}"#)
            c.claim(.ends(vetoed, uid: c.uid, ["": "suppressed msg_push_off"]))
        },
    ]
}

extension Cast {
    /// A window around the hours of all worlds in that zone, and in no other one of them.
    func hours(of zone: String) -> String {
        let hours = zone == "UTC" ? [(7, 9), (15, 17), (0, 2)] : [(15, 17), (23, 1), (8, 10)]
        return hours.map { "{\"start\":\"\(two($0.0)):30\",\"end\":\"\(two($0.1)):30\"}" }.joined(separator: ",")
    }

    private func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}

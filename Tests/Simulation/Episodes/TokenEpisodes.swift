// SPDX-License-Identifier: Apache-2.0
import SimulatedFleet

extension Episode {
    /// Binds, unbinds and account switches.
    static let tokenEpisodes: [Episode] = [
        Episode("an older bind of the device changes nothing") { c in
            let token = c.bind(version: 9)
            c.wait(1)
            let older = SentNote()
            let other = c.bind(version: 5, note: older)
            c.wait(2)
            let message = c.message()
            c.claim(.ends(message, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.accepted(message, token: token, 1))
            c.claim(.accepted(message, token: other, 0))
            c.claim(.result(older, "stale"))
        },
        Episode("a newer token of the device takes the place of the older one") { c in
            let first = c.bind()
            c.wait(1)
            let token = c.bind()
            c.wait(2)
            let message = c.message()
            c.claim(.ends(message, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.accepted(message, token: token, 1))
            c.claim(.accepted(message, token: first, 0))
            let owned = c.message(to: "\"tokens\":[\"\(first)\"]")
            c.claim(.ends(owned, uid: "", ["": "suppressed no_token"]))
        },
        Episode("an unbind before its bind") { c in
            let token = Episode.Token.plain.rawValue + "aa0bad"
            c.unbind("p", token: token, version: 50)
            c.wait(2)
            c.bind(token: token, version: 50)
            c.wait(2)
            let message = c.message()
            c.claim(.ends(message, uid: c.uid, ["": "suppressed no_token"]))
        },
        Episode("an unbind of another version changes nothing") { c in
            let token = c.bind(version: 20)
            c.wait(1)
            let wrong = c.unbind("p", token: token, version: 19)
            c.wait(2)
            let message = c.message()
            c.claim(.ends(message, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.accepted(message, token: token, 1))
            c.wait(2)
            let right = c.unbind("p", token: token, version: 20)
            c.wait(2)
            let last = c.message()
            c.claim(.ends(last, uid: c.uid, ["": "suppressed no_token"]))
            c.claim(.result(right, "applied"))
            c.claim(.result(wrong, "!applied"))
        },
        Episode("another user's unbind changes nothing") { c in
            let token = c.bind(version: 20)
            c.wait(1)
            c.unbind("p", token: token, version: 20, of: c.other("x"))
            c.wait(2)
            let message = c.message()
            c.claim(.ends(message, uid: c.uid, ["p": "accepted ok"]))
        },
        Episode("a bind keeps what it does not say, and clears what is empty") { c in
            let token = c.bind(more: ",\"lang\":\"en\",\"content_key\":\"secret\"")
            c.wait(1)
            c.settings("\"show_detail\":false")
            c.bind(token: token)
            c.wait(2)
            let kept = c.message()
            c.claim(.has(kept, device: "p", path: "aps.alert.body", .text("Something new")))
            c.wait(2)
            let next = c.bind(more: ",\"content_key\":\"\"")
            c.wait(2)
            let cleared = c.message()
            c.claim(.has(cleared, device: "p", path: "aps.alert.body", .text("You have a new message")))
            c.claim(.accepted(cleared, token: next, 1))
        },
        Episode("a token that moves keeps nothing of its former user") { c in
            let token = c.bind(
                of: c.other("a"), more: ",\"lang\":\"\(c.app.defaultLanguage == "en" ? "zh-Hans" : "en")\"")
            c.wait(1)
            c.bind(token: token)
            c.wait(2)
            let message = c.message(#""template":{"id":"hello","args":{"name":"Bo","what":"hi"}}"#)
            c.claim(.ends(message, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.has(message, device: "p", path: "aps.alert.title", .text(c.texts.title(name: "Bo"))))
            let other = c.message(uids: [c.other("a")])
            c.claim(.ends(other, uid: c.other("a"), ["": "suppressed no_token"]))
        },
        Episode("the topic of a bind may end in the suffix of its type") { c in
            let token = c.bind(type: "voip", more: ",\"topic\":\"com.example.kit.voip\"")
            c.wait(2)
            let message = c.message(#""content":"x","voip":true"#)
            c.claim(.ends(message, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.accepted(message, token: token, 1))
            c.claim(.header(message, device: "p", "topic com.example.kit.voip"))
        },
        Episode("a bind for another topic is ignored") { c in
            let note = SentNote()
            c.bind(note: note, more: ",\"topic\":\"com.example.none\"")
            c.wait(2)
            let message = c.message()
            c.claim(.ends(message, uid: c.uid, ["": "suppressed no_token"]))
            c.claim(.result(note, "ignored"))
        },
        Episode("an account switch ends the tokens of the phone") { c in
            let other = c.other("b")
            let (alert, voip) = (c.bind(), c.bind(type: "voip"))
            c.bind("second")
            c.wait(2)
            c.bind("mine", token: alert, of: other)
            c.wait(2)
            let call = c.message(#""content":"x","voip":true"#)
            c.claim(.ends(call, uid: c.uid, ["": "suppressed no_token"]))
            c.claim(.accepted(call, token: voip, 0))
            let message = c.message()
            c.claim(.ends(message, uid: c.uid, ["second": "accepted ok"]))
            let theirs = c.message(uids: [other])
            c.claim(.ends(theirs, uid: other, ["mine": "accepted ok"]))
            c.claim(.accepted(theirs, token: alert, 1))
        },
        Episode("an equal version of another user does not take a token") { c in
            let token = c.bind(version: 30)
            c.wait(2)
            let late = SentNote()
            c.bind("q", token: token, version: 30, of: c.other("b"), note: late)
            c.wait(2)
            let message = c.message()
            c.claim(.ends(message, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.result(late, "!applied"))
        },
        Episode("the owners of tokens are the recipients") { c in
            let first = c.bind("p")
            c.bind("q")
            c.bind("t", type: "voip")
            c.wait(2)
            let one = c.message(to: "\"tokens\":[\"\(first)\"]")
            c.claim(.ends(one, uid: c.uid, ["p": "accepted ok"]))
            c.wait(2)
            let none = c.message(to: "\"tokens\":[\"e000dead\"]")
            c.claim(.ends(none, uid: "", ["": "suppressed no_token"]))
            let both = c.message(to: "\"tokens\":[\"\(first)\",\"e000dead\"]")
            c.claim(.ends(both, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.ends(both, uid: "", ["": "suppressed no_token"]))
            c.wait(2)
            let all = c.message()
            c.claim(.ends(all, uid: c.uid, ["p": "accepted ok", "q": "accepted ok"]))
            c.claim(.counts(all, device: "q", 3))
        },
        Episode("a message to one device counts on all") { c in
            c.bind("p")
            c.bind("q")
            c.wait(2)
            let one = c.message(to: "\"uids\":[\"\(c.uid)\"],\"devices\":[\"q\"]")
            c.claim(.ends(one, uid: c.uid, ["q": "accepted ok"]))
            c.claim(.counts(one, device: "q", 1))
            c.wait(2)
            let two = c.message()
            c.claim(.ends(two, uid: c.uid, ["p": "accepted ok", "q": "accepted ok"]))
            c.claim(.counts(two, device: "p", 2))
            let none = c.message(to: "\"uids\":[\"\(c.uid)\"],\"devices\":[\"z\"]")
            c.claim(.ends(none, uid: c.uid, ["": "suppressed no_token"]))
        },
        Episode("a call goes to voip tokens, and nothing else does") { c in
            let (alert, voip) = (c.bind(), c.bind(type: "voip"))
            c.wait(2)
            let call = c.message(#""content":"x","voip":true"#)
            c.claim(.ends(call, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.accepted(call, token: voip, 1))
            c.claim(.accepted(call, token: alert, 0))
            c.claim(.header(call, device: "p", "expiration 0"))
            c.wait(2)
            let message = c.message()
            c.claim(.accepted(message, token: alert, 1))
            c.claim(.accepted(message, token: voip, 0))
            c.claim(.counts(message, device: "p", 2))
        },
        Episode("a bind names the credentials") { c in
            c.bind("p", more: ",\"cert\":\"second\"")
            c.bind("q")
            c.wait(2)
            let message = c.message()
            c.claim(.credential(message, device: "p", "second"))
            c.claim(.credential(message, device: "q", "main"))
            c.wait(1)
            c.bind("p")
            c.wait(2)
            let kept = c.message()
            c.claim(.credential(kept, device: "p", "second"))
            c.wait(1)
            c.bind("p", more: ",\"cert\":\"\"")
            c.wait(2)
            let cleared = c.message()
            c.claim(.credential(cleared, device: "p", "main"))
        },
        Episode("forget removes a user") { c in
            c.bind()
            c.settings("\"show_detail\":false")
            c.change("mute", "\"conv_id\":\"muted-\(c.uid)\",\"level\":5")
            c.wait(2)
            c.message()
            c.wait(2)
            let note = c.change("forget", "\"x\":1")
            c.claim(.result(note, "applied"))
            c.wait(1)
            // They were made before, and come later.
            c.claim(.result(c.change("settings", "\"show_detail\":false", sent: -3), "stale"))
            c.claim(.result(c.change("mute", "\"conv_id\":\"\(c.conversation)\",\"level\":5", sent: -3), "stale"))
            c.wait(3)
            let message = c.message()
            c.claim(.ends(message, uid: c.uid, ["": "suppressed no_token"]))
            c.wait(1)
            c.bind()
            c.wait(2)
            let later = c.message(#""content":"new words","prefix":false"#)
            c.claim(.ends(later, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.has(later, device: "p", path: "aps.alert.body", .text("new words")))
            c.claim(.counts(later, device: "p", 2))
            c.wait(1)
            let heard = c.message(conv: "muted-\(c.uid)")
            c.claim(.ends(heard, uid: c.uid, ["p": "accepted ok"]))
        },
    ]

    /// Live Activities.
    static let laterEpisodes: [Episode] = [
        Episode("an activity begins, changes and ends") { c in
            c.bind(type: "start", more: ",\"attributes_type\":\"Ride\"")
            let any = c.bind("q", type: "start")
            let wrong = c.bind("r", type: "start", more: ",\"attributes_type\":\"Order\"")
            c.wait(2)
            let id = "ride-\(c.uid)"
            let start = c.activity(
                id, "start", more: ",\"stale_ms\":1900000000000,\"relevance\":0.5,\"input_push_token\":true")
            c.claim(.ends(start, uid: c.uid, ["p": "accepted ok", "q": "accepted ok"]))
            c.claim(.accepted(start, token: wrong, 0))
            c.claim(.accepted(start, token: any, 1))
            c.claim(.has(start, device: "p", path: "aps.attributes-type", .text("Ride")))
            c.claim(.has(start, device: "p", path: "aps.stale-date", .number(1_900_000_000)))
            c.claim(.has(start, device: "p", path: "aps.input-push-token", .number(1)))
            c.claim(.has(start, device: "p", path: "aps.relevance-score", .other("0.5")))
            c.wait(1)
            let bound = SentNote()
            let token = c.bind(type: "activity", note: bound, more: ",\"activity_id\":\"\(id)\"")
            let repeated = SentNote()
            c.wait(2)
            c.bind(type: "activity", token: token, note: repeated, more: ",\"activity_id\":\"\(id)\"")
            c.claim(.result(bound, "applied"))
            c.claim(.result(repeated, "repeat"))
            let update = c.activity(id, "update", more: ",\"priority\":\"normal\"", isToAll: true)
            c.claim(.ends(update, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.header(update, device: "p", "priority 5"))
            c.wait(2)
            let end = c.activity(id, "end", more: ",\"dismissal_ms\":1900000000000")
            c.claim(.ends(end, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.has(end, device: "p", path: "aps.dismissal-date", .number(1_900_000_000)))
            c.claim(.header(end, device: "p", "priority 10"))
            c.wait(2)
            let late = c.activity(id, "update")
            c.claim(.ends(late, uid: c.uid, ["": "suppressed activity_over"]))
            c.wait(2)
            let again = c.activity(id, "start")
            c.claim(.ends(again, uid: c.uid, ["p": "accepted ok", "q": "accepted ok"]))
            c.wait(2)
            let next = c.activity(id, "update")
            c.claim(.ends(next, uid: c.uid, ["p": "accepted ok"]))
        },
        Episode("a bind of another token begins an activity again") { c in
            let id = "again-\(c.uid)"
            c.bind(type: "activity", more: ",\"activity_id\":\"\(id)\"")
            c.wait(2)
            c.activity(id, "end")
            c.wait(2)
            let over = c.activity(id, "update")
            c.claim(.ends(over, uid: c.uid, ["": "suppressed activity_over"]))
            c.wait(1)
            c.bind(type: "activity", more: ",\"activity_id\":\"\(id)\"")
            c.wait(2)
            let update = c.activity(id, "update")
            c.claim(.ends(update, uid: c.uid, ["p": "accepted ok"]))
        },
        Episode("an event to a broadcast channel") { c in
            let token = c.bind(type: "activity", more: ",\"activity_id\":\"match-\(c.uid)\"")
            c.wait(2)
            let channel = ",\"channel\":\"\(c.channel)\""
            let update = c.activity("match-\(c.uid)", "update", more: channel, isToAll: true)
            c.claim(.ends(update, uid: "", ["": "accepted ok"]))
            c.claim(.broadcasts(channel: c.channel, 3))
            c.claim(.accepted(update, token: token, 0))
            c.wait(1)
            let end = c.activity("match-\(c.uid)", "end", more: channel, isToAll: true)
            c.claim(.ends(end, uid: "", ["": "accepted ok"]))
            c.wait(2)
            // The end went to the channel. It ends no activity of a user.
            let next = c.activity("match-\(c.uid)", "update")
            c.claim(.ends(next, uid: c.uid, ["p": "accepted ok"]))
            let late = c.activity("match-\(c.uid)", "update", more: channel, isToAll: true)
            c.claim(.ends(late, uid: "", ["": "accepted ok"]))
            let unknown = c.activity(
                "match-\(c.uid)", "update", more: ",\"channel\":\"dW5rbm93bg==\"", isToAll: true)
            c.claim(.ends(unknown, uid: "", ["": "rejected ChannelNotRegistered"]))
        },
        Episode("nobody bound the activity") { c in
            let update = c.activity("none-\(c.uid)", "update", uids: [""], isToAll: true)
            c.claim(.ends(update, uid: "", ["": "suppressed no_recipients"]))
        },
        Episode("an activity that began long ago takes no updates") { c in
            let id = "old-\(c.uid)"
            c.bind(type: "activity", more: ",\"activity_id\":\"\(id)\"", sent: -9 * 3600)
            c.wait(2)
            let update = c.activity(id, "update")
            c.claim(.ends(update, uid: c.uid, ["": "suppressed activity_over"]))
            c.wait(1)
            let end = c.activity(id, "end")
            c.claim(.ends(end, uid: c.uid, ["p": "accepted ok"]))
        },
        Episode("an activity of half a day ago takes no end") { c in
            let id = "older-\(c.uid)"
            c.bind(type: "activity", more: ",\"activity_id\":\"\(id)\"", sent: -13 * 3600)
            c.wait(2)
            let end = c.activity(id, "end")
            c.claim(.ends(end, uid: c.uid, ["": "suppressed activity_over"]))
        },
        Episode("of two tokens of an activity one's end ends both", if: { app, _ in app.removalsMinimum == 0 }) { c in
            let id = "two-\(c.uid)"
            c.bind("p", type: "activity", more: ",\"activity_id\":\"\(id)\"")
            c.bind("q", .bad, type: "activity", more: ",\"activity_id\":\"\(id)\"")
            c.wait(2)
            let end = c.activity(id, "end")
            c.claim(.ends(end, uid: c.uid, ["p": "accepted ok", "q": "rejected BadDeviceToken"]))
            c.wait(2)
            let update = c.activity(id, "update")
            c.claim(.ends(update, uid: c.uid, ["": "suppressed activity_over"]))
        },
    ]
}

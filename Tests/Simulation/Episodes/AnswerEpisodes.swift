// SPDX-License-Identifier: Apache-2.0
import SimulatedFleet

extension Episode {
    /// What APNs answers.
    static let answerEpisodes: [Episode] = [
        ends("a 410 after the bind", .goneLater, "rejected Unregistered", isRemoved: true),
        ends("a 410 without a time", .gone, "rejected Unregistered", isRemoved: true),
        ends("a 410 before the bind", .goneBefore, "rejected Unregistered", isRemoved: false),
        ends("an expired token", .expiredToken, "rejected ExpiredToken", isRemoved: true),
        ends("a bad token", .bad, "rejected BadDeviceToken", isRemoved: true),
        ends("a token for another topic", .notForTopic, "rejected DeviceTokenNotForTopic", isRemoved: true),
        ends("a payload that is too large", .tooLarge, "rejected PayloadTooLarge", isRemoved: false),
        ends("another 400", .strange, "rejected BadCollapseId", isRemoved: false),
        Episode("a 429 with Retry-After") { c in
            let token = c.bind("p", .waits2s)
            c.bind("q")
            c.wait(2)
            let one = c.message()
            c.wait(0.2)
            let two = c.message()
            let three = c.message(conv: "else-\(c.uid)")
            c.claim(.ends(one, uid: c.uid, ["p": "accepted ok", "q": "accepted ok"]))
            c.claim(.came(one, device: "p", 2...6))
            c.claim(.came(one, device: "q", Cast.atOnce))
            c.claim(.came(two, device: "q", Cast.atOnce))
            c.claim(.came(two, device: "p", 1.8...8))
            c.claim(.attempts(one, device: "p", 2))
            c.claim(.order([one, two], token: token))
            c.claim(.accepted(three, token: token, 1))
        },
        Episode("a 429 without Retry-After") { c in
            let token = c.bind("p", .waits)
            c.wait(2)
            let one = c.message()
            c.wait(0.1)
            let two = c.message()
            c.claim(.ends(one, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.ends(two, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.attempts(one, device: "p", 2))
            c.claim(.order([one, two], token: token))
        },
        Episode("a Retry-After that is a date") { c in
            c.bind("p", .waitsUntil)
            c.bind("q")
            c.wait(2)
            let one = c.message()
            c.claim(.ends(one, uid: c.uid, ["p": "accepted ok", "q": "accepted ok"]))
            // A date has whole seconds.
            c.claim(.came(one, device: "p", 4...9))
            c.claim(.came(one, device: "q", Cast.atOnce))
            c.claim(.attempts(one, device: "p", 2))
        },
        Episode("a credential that APNs refuses") { c in
            let token = c.bind("p", .forbidden, more: ",\"cert\":\"third\"")
            c.bind("q")
            c.wait(2)
            let one = c.message()
            c.wait(1)
            let two = c.message()
            for message in [one, two] {
                c.claim(.ends(message, uid: c.uid, ["p": "accepted ok", "q": "accepted ok"]))
                c.claim(.credential(message, device: "p", "third"))
                c.claim(.came(message, device: "q", Cast.atOnce))
                // The shard parks the pushes after some seconds. Another shard does not know of the refusal and may begin them.
                c.claim(.came(message, device: "p", 3...150))
            }
            c.claim(.order([one, two], token: token))
            c.claim(.feedback(token: token, false))
        },
        Episode("a long Retry-After") { c in
            c.bind("p", .waits12s)
            c.bind("q")
            c.wait(2)
            let one = c.message()
            c.claim(.ends(one, uid: c.uid, ["p": "accepted ok", "q": "accepted ok"]))
            c.claim(.came(one, device: "p", 12...28))
            c.claim(.came(one, device: "q", Cast.atOnce))
            c.wait(5)
            let two = c.message()
            c.claim(.ends(two, uid: c.uid, ["p": "accepted ok", "q": "accepted ok"]))
            c.claim(.came(two, device: "p", 6...24))
            c.claim(.counts(two, device: "q", 2))
        },
        Episode("a 500") { c in
            let token = c.bind("p", .fails500)
            c.wait(2)
            let one = c.message()
            c.claim(.ends(one, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.attempts(one, device: "p", 2))
            c.claim(.accepted(one, token: token, 1))
        },
        Episode("a 503") { c in
            c.bind("p", .unavailable)
            c.wait(2)
            let one = c.message()
            c.claim(.ends(one, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.attempts(one, device: "p", 2))
        },
        Episode("no answer once") { c in
            let token = c.bind("p", .silentOnce)
            c.wait(2)
            let one = c.message()
            c.claim(.ends(one, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.accepted(one, token: token, 1))
            c.claim(.came(one, device: "p", 4.9...9))
            c.claim(.attempts(one, device: "p", 2))
        },
        Episode("never an answer") { c in
            let token = c.bind("p", .silent)
            c.bind("q")
            c.wait(2)
            let one = c.message()
            c.claim(.ends(one, uid: c.uid, ["p": "rejected Unanswered", "q": "accepted ok"]))
            c.claim(.came(one, device: "q", Cast.atOnce))
            c.claim(.attempts(one, device: "p", 3))
            c.claim(.accepted(one, token: token, 0))
        },
        Episode("a refused stream") { c in
            c.bind("p", .refusedOnce)
            c.wait(2)
            let one = c.message()
            c.claim(.ends(one, uid: c.uid, ["p": "accepted ok"]))
            c.claim(.came(one, device: "p", 0...2))
        },
        Episode("one push of a device is in flight") { c in
            let token = c.bind("p", .slow)
            c.bind("q")
            c.wait(2)
            var all: [SentNote] = []
            for _ in 0..<3 {
                all.append(c.message())
                c.wait(0.1)
            }
            c.claim(.apart(all, token: token, 1.4))
            c.claim(.order(all, token: token))
            for message in all { c.claim(.came(message, device: "q", Cast.atOnce)) }
        },
        Episode("a spike of dead tokens", if: { app, _ in app.removalsMinimum > 0 }) { c in
            let tokens = (0..<8).map { c.bind("d\($0)", .bad) }
            c.bind("p")
            c.wait(2)
            let one = c.message()
            c.wait(3)
            let two = c.message()
            c.claim(.feedbacks(tokens, 1...4))
            c.claim(.came(one, device: "p", Cast.atOnce))
            c.claim(.came(two, device: "p", Cast.atOnce))
        },
        Episode("a provider token that is too old") { c in
            c.bind("p", .tooOld)
            c.wait(2)
            let one = c.message()
            c.claim(.ends(one, uid: c.uid, ["p": "accepted ok"]))
        },
        Episode("no SMS where a push reached the user", if: { app, _ in app.removalsMinimum == 0 }) { c in
            c.bind("p", .bad)
            c.bind("q")
            c.wait(2)
            let message = c.message(#""content":"x","sms":true"#)
            c.claim(.ends(message, uid: c.uid, ["p": "rejected BadDeviceToken", "q": "accepted ok"]))
            c.claim(.sms(message, phone: nil, reason: nil, body: nil))
        },
        Episode("background pushes beyond the limit of an hour", if: { app, _ in app.backgroundPerHour > 0 }) { c in
            let token = c.bind()
            c.wait(2)
            let silent = #""content":"x","silent":true"#
            for _ in 0..<c.app.backgroundPerHour {
                c.claim(.ends(c.message(silent), uid: c.uid, ["p": "accepted ok"]))
                c.wait(0.5)
            }
            let late = c.message(silent, more: ",\"expire_at_ms\":NOW+10")
            c.claim(.ends(late, uid: c.uid, ["p": "expired expired"]))
            c.claim(.accepted(late, token: token, 0))
            let alert = c.message()
            c.claim(.came(alert, device: "p", Cast.atOnce))
        },
        Episode("an SMS in place of a push", if: { app, _ in app.removalsMinimum == 0 }) { c in
            c.bind("p", .gone)
            c.settings("\"phone\":\"+4930\"")
            c.wait(2)
            let failed = c.message(#""content":"x","sms":true"#)
            c.claim(.sms(failed, phone: "+4930", reason: "all_failed", body: c.prefix + "x"))
            c.wait(3)
            let none = c.message(#""content":"y","sms":true,"title":"T""#)
            c.claim(.sms(none, phone: "+4930", reason: "no_token", body: c.prefix + "y"))
            c.claim(.ends(none, uid: c.uid, ["": "suppressed no_token"]))
            let unwanted = c.message(#""content":"z""#)
            c.claim(.sms(unwanted, phone: nil, reason: nil, body: nil))
            c.wait(1)
            c.settings("\"show_detail\":false,\"phone\":\"\"")
            c.bind("q", of: c.other("b"))
            c.wait(2)
            let hidden = c.message(#""content":"y","sms":true,"title":"T""#)
            c.claim(.sms(hidden, phone: nil, reason: "no_token", body: c.texts.generic))
            let reached = c.message(
                #""content":"y","sms":true"#, uids: [c.other("b")])
            c.claim(.sms(reached, phone: nil, reason: nil, body: nil))
            let silent = c.message(#""content":"y","sms":true,"enabled":false"#)
            c.claim(.sms(silent, phone: nil, reason: nil, body: nil))
        },
    ]

    private static func ends(_ name: String, _ answer: Token, _ outcome: String, isRemoved: Bool) -> Episode {
        Episode(name, if: { app, _ in app.removalsMinimum == 0 || !isRemoved }) { c in
            let token = c.bind("p", answer)
            c.bind("q")
            c.wait(2)
            let one = c.message()
            c.claim(.ends(one, uid: c.uid, ["p": outcome, "q": "accepted ok"]))
            c.claim(.attempts(one, device: "p", 1))
            c.claim(.feedback(token: token, isRemoved))
            c.wait(3)
            let two = c.message()
            c.claim(
                .ends(two, uid: c.uid, isRemoved ? ["q": "accepted ok"] : ["p": outcome, "q": "accepted ok"]))
            c.claim(.counts(two, device: "q", 2))
        }
    }
}

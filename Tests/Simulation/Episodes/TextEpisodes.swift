// SPDX-License-Identifier: Apache-2.0
import Crypto
import SimulatedFleet

extension Episode {
    /// What pushes say.
    static let textEpisodes: [Episode] = [
        Episode("long texts are cut, and blank ones are absent") { c in
            c.bind()
            c.wait(2)
            let long = c.message(
                "\"title\":\"\(repeated("t", 120))\",\"content\":\"\(repeated("c", 600))\",\"subtitle\":\"\(repeated("s", 101))\""
            )
            c.claim(.has(long, device: "p", path: "aps.alert.title", .text(repeated("t", 99) + "…")))
            c.claim(.has(long, device: "p", path: "aps.alert.subtitle", .text(repeated("s", 99) + "…")))
            c.claim(.has(long, device: "p", path: "aps.alert.body", .text(c.prefix + repeated("c", 499) + "…")))
            c.wait(2)
            let exact = c.message("\"title\":\"\(repeated("t", 100))\",\"content\":\"\(repeated("c", 500))\"")
            c.claim(.has(exact, device: "p", path: "aps.alert.title", .text(repeated("t", 100))))
            c.claim(.has(exact, device: "p", path: "aps.alert.body", .text(c.prefix + repeated("c", 500))))
            c.wait(2)
            let blank = c.message(#""title":"  ","subtitle":"\u200b","content":" \u0007 ""#)
            c.claim(.has(blank, device: "p", path: "aps.alert.title", nil))
            c.claim(.has(blank, device: "p", path: "aps.alert.subtitle", nil))
            c.claim(.has(blank, device: "p", path: "aps.alert.body", .text(c.prefix + c.texts.generic)))
            c.wait(2)
            let nameless = c.message(#""content":"x""#, from: "\"uid\":\"peer\"")
            c.claim(.has(nameless, device: "p", path: "aps.alert.body", .text("x")))
            c.wait(2)
            let named = c.message(#""content":"x""#, from: "\"uid\":\"peer\",\"nick\":\"\(repeated("n", 70))\"")
            let prefix = c.app.prefix.0 + repeated("n", 63) + "…" + c.app.prefix.1
            c.claim(.has(named, device: "p", path: "aps.alert.body", .text(prefix + "x")))
        },
        Episode("which text is shown") { c in
            c.bind()
            c.wait(2)
            let both = c.message(
                #""content":"content","template":{"id":"hello","args":{"name":"{what}","what":"hi"}},"title":"own""#)
            c.claim(.has(both, device: "p", path: "aps.alert.title", .text(c.texts.title(name: "{what}"))))
            c.claim(
                .has(
                    both, device: "p", path: "aps.alert.body",
                    .text(c.prefix + c.texts.content(name: "{what}", what: "hi"))))
            c.wait(1)
            let missing = c.message(#""template":{"id":"hello","args":{"name":"Bo"}}"#)
            c.claim(
                .has(
                    missing, device: "p", path: "aps.alert.body",
                    .text(c.prefix + c.texts.content(name: "Bo", what: ""))))
            c.wait(1)
            let unknown = c.message(#""content":"content","template":{"id":"nothing"}"#)
            c.claim(.has(unknown, device: "p", path: "aps.alert.body", .text(c.prefix + "content")))
            c.wait(1)
            let typed = c.message("", more: ",\"type_name\":\"PICTURE\"")
            c.claim(.has(typed, device: "p", path: "aps.alert.body", .text(c.prefix + c.texts.picture)))
            c.wait(1)
            let other = c.message("", more: ",\"type_name\":\"OTHER\"")
            c.claim(.has(other, device: "p", path: "aps.alert.body", .text(c.prefix + c.texts.generic)))
            c.wait(1)
            let forced = c.message(
                #""template":{"id":"hello","args":{"name":"Bo"}},"content":"x","prefix":false,"force":{"mode":"all","content":"forced"}"#
            )
            c.claim(.has(forced, device: "p", path: "aps.alert.body", .text("forced")))
            c.claim(.ends(forced, uid: c.uid, ["p": "accepted forced"]))
            c.wait(1)
            let revoke = c.revoke(forced, push: #""content":"gone","prefix":false"#)
            c.claim(.has(revoke, device: "p", path: "aps.alert.body", .text("gone")))
        },
        Episode("hidden details") { c in
            c.bind("p", more: ",\"content_key\":\"secret\"")
            c.bind("q", more: ",\"content_key\":\"unknown\"")
            c.bind("r", more: ",\"lang\":\"\(c.app.defaultLanguage == "en" ? "zh-Hans" : "en")\"")
            c.settings("\"show_detail\":false")
            c.wait(2)
            let message = c.message(
                #""content":"private","title":"t","subtitle":"s","image":"https://x/y","payload":{"k":"v"},"aps":{"alert":{"title":"A","body":"B"}}"#
            )
            for (device, text) in [("p", c.texts.secret), ("q", c.texts.generic), ("r", c.otherTexts.generic)] {
                c.claim(.has(message, device: device, path: "aps.alert.body", .text(text)))
                c.claim(.has(message, device: device, path: "aps.alert.title", nil))
                c.claim(.has(message, device: device, path: "image", nil))
                c.claim(.has(message, device: device, path: "im", nil))
                c.claim(.custom(message, device: device, key: "k", .text("v")))
            }
            c.wait(2)
            let shown = c.message(#""content":"shown","force_detail":true,"prefix":false"#)
            c.claim(.has(shown, device: "p", path: "aps.alert.body", .text("shown")))
            c.wait(2)
            let revoke = c.revoke(shown)
            c.claim(.has(revoke, device: "p", path: "aps.alert.body", .text(c.texts.namelessRevoke)))
        },
        Episode("the language of the device, the user and the app") { c in
            let (other, texts) = (c.app.defaultLanguage == "en" ? "zh-Hans" : "en", c.otherTexts)
            c.bind("p")
            c.bind("q", more: ",\"lang\":\"\(c.app.defaultLanguage)\"")
            c.settings("\"lang\":\"\(other)\"")
            c.wait(2)
            let message = c.message(#""prefix":false"#)
            c.claim(.has(message, device: "p", path: "aps.alert.body", .text(texts.generic)))
            c.claim(.has(message, device: "q", path: "aps.alert.body", .text(c.texts.generic)))
            c.wait(1)
            c.settings("\"lang\":\"\"")
            c.wait(2)
            let later = c.message(#""prefix":false"#)
            c.claim(.has(later, device: "p", path: "aps.alert.body", .text(c.texts.generic)))
        },
        Episode("push.aps is merged") { c in
            c.bind()
            c.wait(2)
            let message = c.message(
                #""content":"x","aps":{"alert":{"title":"A","body":"B"},"badge":77,"own":{"a":1},"mutable-content":1},"mutable":false,"interruption":"time-sensitive","category":"c","thread_id":"t""#
            )
            c.claim(.has(message, device: "p", path: "aps.alert.title", .text("A")))
            c.claim(.has(message, device: "p", path: "aps.alert.body", .text("B")))
            c.claim(.has(message, device: "p", path: "aps.own", .object(["a": .number(1)])))
            c.claim(.has(message, device: "p", path: "aps.mutable-content", nil))
            c.claim(.has(message, device: "p", path: "aps.interruption-level", .text("time-sensitive")))
            c.claim(.has(message, device: "p", path: "aps.category", .text("c")))
            c.claim(.has(message, device: "p", path: "aps.thread-id", .text("t")))
            c.claim(.has(message, device: "p", path: "aps.sound", .text("default")))
            c.claim(.counts(message, device: "p", c.app.badge == .sender ? 77 : 1))
            c.wait(4)
            let blank = c.message(
                #""content":"x","prefix":false,"aps":{"alert":{"title":" ","body":""}},"sound":"ding""#)
            c.claim(.has(blank, device: "p", path: "aps.alert.body", .text("x")))
            c.claim(.has(blank, device: "p", path: "aps.sound", .text("ding")))
            c.claim(
                .has(blank, device: "p", path: "aps.mutable-content", .number(1)))
        },
        Episode("custom keys") { c in
            c.bind()
            c.wait(2)
            let message = c.message(
                #""content":"x","payload":{"aps":1,"pid":"no","k":{"deep":[1,"2"]},"apns-collapse-id":"mine-\#(c.uid)"}"#
            )
            c.claim(.custom(message, device: "p", key: "k", .object(["deep": .list([.number(1), .text("2")])])))
            c.claim(.custom(message, device: "p", key: "apns-collapse-id", nil))
            c.claim(.header(message, device: "p", "collapse mine-\(c.uid)"))
            c.wait(1)
            let lifted = c.message(
                #""content":"x","payload":{"sound":"ding","pushTitle":"PT","apsField":{"own":"o"},"z":true}"#)
            let isLifted = c.app.profile == "nim"
            c.claim(.has(lifted, device: "p", path: "aps.sound", .text(isLifted ? "ding" : "default")))
            c.claim(.has(lifted, device: "p", path: "aps.alert.title", isLifted ? .text("PT") : nil))
            c.claim(.has(lifted, device: "p", path: "aps.own", isLifted ? .text("o") : nil))
            c.claim(.custom(lifted, device: "p", key: "sound", isLifted ? nil : .text("ding")))
            c.claim(.custom(lifted, device: "p", key: "z", .flag(true)))
            c.wait(1)
            let given = c.message(
                #""content":"x","sound":"own","title":"T","payload":{"sound":"ding","pushTitle":"PT"}"#)
            c.claim(.has(given, device: "p", path: "aps.sound", .text("own")))
            c.claim(.has(given, device: "p", path: "aps.alert.title", .text("T")))
        },
        Episode("keys of the profiles") { c in
            c.bind()
            c.wait(2)
            let nim = c.message(#""content":"x","profile":"nim","payload":"{\"j\":5}""#)
            c.claim(.has(nim, device: "p", path: "j", .number(5)))
            c.claim(.has(nim, device: "p", path: "sessionid", .text("peer")))
            c.claim(.has(nim, device: "p", path: "sessiontype", .text("p2p")))
            c.wait(1)
            let given = c.message(
                #""content":"x","profile":"nim","payload":{"sessionid":"s","sessiontype":null,"mid":"no"}"#,
                type: "system")
            c.claim(.has(given, device: "p", path: "sessionid", .text("s")))
            c.claim(.has(given, device: "p", path: "sessiontype", .text("system")))
            c.wait(1)
            let rc = c.message(#""content":"x","profile":"rc","payload":{"cType":"DS","a":1}"#, type: "custom")
            c.claim(.has(rc, device: "p", path: "rc.cType", .text("DS")))
            c.claim(.has(rc, device: "p", path: "rc.tId", .text(c.conversation)))
            c.wait(1)
            let target = c.message(#""content":"x","profile":"rc","payload":{"tId":"me","b":2}"#, type: "custom")
            c.claim(.has(target, device: "p", path: "rc.cType", .text("CS")))
            c.claim(.has(target, device: "p", path: "rc.tId", .text("me")))
            c.claim(.has(target, device: "p", path: "rc.fId", .text("peer")))
            c.claim(.has(target, device: "p", path: "rc.rId", .text(c.uid)))
            c.wait(1)
            let group = c.message(#""content":"x","profile":"rc","payload":"t""#, type: "ultra", uids: [c.uid])
            c.claim(.has(group, device: "p", path: "rc.cType", .text("GRP")))
            c.claim(.has(group, device: "p", path: "rc.tId", .text(c.conversation)))
            c.claim(.has(group, device: "p", path: "appData", .text("t")))
            c.wait(1)
            let text = c.message(#""content":"x","profile":"raw","payload":"t""#)
            c.claim(.has(text, device: "p", path: "payload", .text("t")))
            c.wait(1)
            let wps = c.message(#""content":"x","profile":"wps","payload":{"w":1}"#, type: "group", uids: [c.uid])
            c.claim(.has(wps, device: "p", path: "message.params.w", .number(1)))
            c.claim(.has(wps, device: "p", path: "message.params.conv_type", .text("group")))
            c.claim(.has(wps, device: "p", path: "message.params.from", .text("peer")))
        },
        Episode("a communication notification", if: { app, _ in app.isCommunication }) { c in
            c.bind()
            c.wait(2)
            let message = c.message(
                type: "group", uids: [c.uid],
                from: "\"uid\":\"peer\",\"nick\":\"N\",\"avatar\":\"https://a/b\"",
                more: ",\"conv\":{\"id\":\"\(c.conversation)\",\"type\":\"group\",\"name\":\"Team\"}")
            c.claim(.has(message, device: "p", path: "im.sender.avatar", .text("https://a/b")))
            c.claim(.has(message, device: "p", path: "im.sender.id", .text("peer")))
            c.claim(.has(message, device: "p", path: "im.conv.name", .text("Team")))
            c.claim(.has(message, device: "p", path: "im.conv.group", .flag(true)))
        },
        Episode("collapse ids that are no header") { c in
            c.bind()
            c.wait(2)
            for (place, id) in [repeated("i", 65), " \(c.uid)", "é\(c.uid)", repeated("j", 64)].enumerated() {
                let message = c.message("\"content\":\"x\",\"collapse_id\":\"\(id)\"")
                let wanted = place < 3 ? SHA256.hex(Array(id.utf8)) : id
                c.claim(.header(message, device: "p", "collapse \(wanted)"))
                c.wait(1)
            }
            let own = c.message(#""content":"x","collapse_id":"chosen-\#(c.uid)""#)
            c.wait(2)
            let revoke = c.revoke(own, push: #""collapse_id":"other""#)
            c.claim(.header(revoke, device: "p", "collapse chosen-\(c.uid)"))
            let unknown = SentNote()
            (unknown.messageID, unknown.conversation) = ("unknown-\(c.uid)", c.conversation)
            let stray = c.revoke(unknown, push: #""collapse_id":"stray-\#(c.uid)""#)
            c.claim(.header(stray, device: "p", "collapse stray-\(c.uid)"))
        },
        Episode("times of a message") { c in
            c.bind()
            c.wait(2)
            let usual = c.message()
            c.claim(.header(usual, device: "p", "lives 86400"))
            c.wait(1)
            let given = c.message(more: ",\"expire_at_ms\":NOW+600")
            c.claim(.header(given, device: "p", "lives 600"))
            c.wait(1)
            let future = c.message(sent: 7200)
            c.claim(.header(future, device: "p", "lives 86400"))
            c.wait(1)
            let past = c.message(sent: -3600)
            c.claim(.header(past, device: "p", "lives 82800"))
        },
        Episode("a payload near its limit") { c in
            c.bind()
            c.bind(type: "voip")
            c.wait(2)
            // The body has 500 characters of 3 bytes. Custom keys take the rest: some bodies fit, and some are cut.
            for count in [600, 700, 780, 860] {
                let message = c.message(
                    "\"content\":\"\(repeated("字", 500))\",\"payload\":{\"k\":\"\(repeated("字", count))\"}")
                c.claim(.header(message, device: "p", "full \(1500 + 3 * count)"))
                c.wait(1)
            }
            let large = c.message("\"content\":\"x\",\"payload\":{\"k\":\"\(repeated("字", 1340))\"}")
            c.claim(.ends(large, uid: c.uid, ["p": "suppressed payload_too_large"]))
            let call = c.message("\"content\":\"x\",\"voip\":true,\"payload\":{\"k\":\"\(repeated("字", 1400))\"}")
            c.claim(.ends(call, uid: c.uid, ["p": "accepted ok"]))
        },
    ]

    private static func repeated(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }
}

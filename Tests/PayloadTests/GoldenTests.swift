// SPDX-License-Identifier: Apache-2.0
import JSON
import Payload
import PushCore
import Testing

/// Payloads byte by byte; a change here is a change that apps see.
@Suite struct GoldenTests {
    @Test func nim() throws {
        let text = try PayloadWorld.text(PayloadWorld.message(), profile: .nim, badge: 3)
        #expect(
            text == """
                {"aps":{"alert":{"body":"Anna: hello"},"sound":"default","thread-id":"anna-ben","mutable-content":1,\
                "badge":3},"pid":"PID","mid":"m1","sessionid":"anna","sessiontype":"p2p"}
                """)
    }

    @Test func nimKeepsTheSendersSession() throws {
        let message = PayloadWorld.message {
            $0.conversation = .init(id: "g1", type: .group)
            $0.push.payload = .object([
                .init("sessionid", .string("own")), .init("sessiontype", .null), .init("n", .number("1.50")),
            ])
        }
        let text = try PayloadWorld.text(message, profile: .nim)
        #expect(text.hasSuffix(#""pid":"PID","mid":"m1","sessionid":"own","n":1.50,"sessiontype":"group"}"#))
    }

    @Test func nimsSoundAndTitleAreLiftedOutOfThePayload() throws {
        let message = PayloadWorld.message {
            $0.push.payload = .object([
                .init("sound", .string("ping.caf")), .init("pushTitle", .string("Team")), .init("n", .number("1")),
            ])
        }
        let text = try PayloadWorld.text(message, profile: .nim)
        #expect(
            text == """
                {"aps":{"alert":{"title":"Team","body":"Anna: hello"},"sound":"ping.caf","thread-id":"anna-ben",\
                "mutable-content":1},"pid":"PID","mid":"m1","n":1,"sessionid":"anna","sessiontype":"p2p"}
                """)
    }

    @Test func fieldsOfThePushWinOverLiftedOnes() throws {
        let message = PayloadWorld.message {
            $0.push.sound = "own.caf"
            $0.push.title = "Own"
            $0.push.payload = .object([.init("sound", .string("ping.caf")), .init("pushTitle", .string("Team"))])
        }
        let tree = try PayloadWorld.tree(message, profile: .nim)
        #expect(tree["aps"]?["sound"]?.string == "own.caf" && tree["sound"] == nil)
        #expect(tree["aps"]?["alert"]?["title"]?.string == "Own" && tree["pushTitle"] == nil)
    }

    /// Of other profiles they are custom keys; what is no text has no meaning of ours; a title is cut like `push.title`.
    @Test func onlyNIMsTextsAreLifted() throws {
        let payload = CustomPayload.object([.init("sound", .string("ping.caf")), .init("pushTitle", .string("Team"))])
        let raw = try PayloadWorld.tree(PayloadWorld.message { $0.push.payload = payload })
        #expect(raw["sound"]?.string == "ping.caf" && raw["pushTitle"]?.string == "Team")
        #expect(raw["aps"]?["sound"]?.string == "default" && raw["aps"]?["alert"]?["title"] == nil)
        let odd = try PayloadWorld.tree(
            PayloadWorld.message {
                $0.push.payload = .object([.init("sound", .null), .init("pushTitle", .number("7"))])
            }, profile: .nim)
        #expect(odd["aps"]?["sound"]?.string == "default" && odd["aps"]?["alert"]?["title"] == nil)
        let long = try PayloadWorld.tree(
            PayloadWorld.message {
                $0.push.payload = .object([.init("pushTitle", .string(String(repeating: "汉", count: 101)))])
            }, profile: .nim)
        #expect(
            long["aps"]?["alert"]?["title"]?.string == String(repeating: "汉", count: 99) + "…"
                && long["pushTitle"] == nil)
    }

    /// NIM's own example: `apsField` is a part of the payload there.
    @Test func nimsApsFieldIsLiftedOutOfThePayload() throws {
        let field = JSONValue.object([
            .init("mutable-content", .number("1")), .init("sound", .string("abc.wav")),
            .init("alert", .object([.init("title", .string("T")), .init("body", .string("B"))])),
            .init("key2", .string("value2")), .init("badge", .number("9")),
        ])
        let payload = CustomPayload.object([.init("key1", .string("value1")), .init("apsField", field)])
        let tree = try PayloadWorld.tree(PayloadWorld.message { $0.push.payload = payload }, profile: .nim, badge: 2)
        #expect(tree["key1"]?.string == "value1" && tree["apsField"] == nil)
        let aps = tree["aps"]
        #expect(aps?["sound"]?.string == "abc.wav" && aps?["key2"]?.string == "value2" && aps?["badge"]?.int == 2)
        #expect(aps?["alert"]?["title"]?.string == "T" && aps?["alert"]?["body"]?.string == "B")
        // The push's own field takes its place, and the other profiles have no such key.
        let own = try PayloadWorld.tree(
            PayloadWorld.message {
                $0.push.payload = payload
                $0.push.aps = .object([.init("key3", .number("3"))])
            }, profile: .nim)
        #expect(own["apsField"] == nil && own["aps"]?["key2"] == nil && own["aps"]?["key3"]?.int == 3)
        let raw = try PayloadWorld.tree(PayloadWorld.message { $0.push.payload = payload })
        #expect(raw["apsField"]?["key2"]?.string == "value2" && raw["aps"]?["key2"] == nil)
        let odd = try PayloadWorld.tree(
            PayloadWorld.message { $0.push.payload = .object([.init("apsField", .string("x"))]) }, profile: .nim)
        #expect(odd["apsField"] == nil && odd["aps"]?["alert"]?["body"]?.string == "Anna: hello")
    }

    @Test func aLiftedAlertIsHiddenAsAnyOther() throws {
        let message = PayloadWorld.message {
            $0.push.payload = .object([
                .init("apsField", .object([.init("alert", .string("SECRET")), .init("k", .number("1"))]))
            ])
        }
        let text = try PayloadWorld.text(message, .init(language: "en", isHidden: true), profile: .nim)
        #expect(!text.contains("SECRET") && text.contains(#""k":1"#))
    }

    @Test(arguments: [PayloadProfile.nim, .rc, .wps, .raw])
    func thePayloadCannotSetTheKeysOfTheServer(_ profile: PayloadProfile) throws {
        let message = PayloadWorld.message {
            $0.push.payload = .object(["aps", "pid", "mid"].map { .init($0, .string("forged")) })
        }
        let text = try PayloadWorld.text(message, profile: profile)
        // Profiles that do not have a `mid` do not reserve it.
        let isReserved = profile == .nim || profile == .raw
        #expect(
            text.split(separator: "forged", omittingEmptySubsequences: false).count == (isReserved ? 1 : 2), "\(text)")
        #expect(try PayloadWorld.tree(message, profile: profile)["mid"]?.string == (isReserved ? "m1" : nil))
    }

    @Test(arguments: [PayloadProfile.nim, .rc, .wps, .raw])
    func anImageIsShownOnlyWithAVisibleAlert(_ profile: PayloadProfile) throws {
        func tree(_ variant: PayloadVariant = PayloadWorld.english, _ change: (inout Message) -> Void = { _ in }) throws
            -> JSONTree
        {
            try PayloadWorld.tree(
                PayloadWorld.message {
                    $0.push.image = "https://a.example/1.png"
                    $0.push.payload = .object([.init("image", .string("own"))])
                    change(&$0)
                }, variant, profile: profile)
        }
        let isTop = profile == .nim || profile == .raw
        #expect(try tree()["image"]?.string == "https://a.example/1.png")
        #expect(try tree { $0.push.silent = true }["image"]?.string == (isTop ? "own" : nil))
        #expect(try tree { $0.push.voip = true }["image"]?.string == (isTop ? "own" : nil))
        #expect(try tree(.init(language: "en", isHidden: true))["image"]?.string == (isTop ? "own" : nil))
    }

    @Test func aPushThatMayNotBeChangedHasNoMutableContentWhateverTheSenderSays() throws {
        let message = PayloadWorld.message {
            $0.push.isMutable = false
            $0.push.aps = .object([.init("mutable-content", .number("1"))])
        }
        #expect(try PayloadWorld.tree(message)["aps"]?["mutable-content"] == nil)
    }

    /// `badge: none`: the extension adds 1 for each alert that it sees, and takes 1 off for a revoke. A revoke of a message that it
    /// did not see may have lowered the server's number, and takes nothing off here.
    @Test(arguments: [
        (false, false, false, false), (true, false, false, true), (false, true, false, false),
        (false, true, true, true),
    ])
    func theExtensionSeesOnlyWhatChangesTheNumber(
        _ row: (adds: Bool, lowers: Bool, undoes: Bool, isMutable: Bool)
    ) throws {
        var policy = AppPolicy(id: "im", topic: "t")
        var variant = PayloadWorld.english
        variant.addsToBadge = row.adds
        variant.lowersBadge = row.lowers
        variant.undoesAlert = row.undoes
        let message = PayloadWorld.message { $0.push.aps = .object([.init("mutable-content", .number("1"))]) }
        for badge in [AppPolicy.BadgeCounter.server, .client, .sender] {
            policy.badge = badge
            // Not the first one of its event, so that the variant is looked for among the others.
            var payloads = EventPayloads(message, policy: policy)
            _ = payloads.template(.init(language: "fr"), of: message, templates: PayloadWorld.templates)
            let template = payloads.template(variant, of: message, templates: PayloadWorld.templates)
            let bytes = try #require(template?.render(badge: 3, pid: PayloadWorld.pid, receiver: "ben"))
            let aps = try JSONTree(parsing: bytes)["aps"]
            #expect((aps?["mutable-content"]?.int == 1) == (badge != .client || row.isMutable))
            #expect(aps?["badge"]?.int == (badge == .server ? 3 : nil))
        }
    }

    /// A revoke's own text says nothing of its message, so it needs no hiding; the name does.
    @Test(arguments: [(nil, nil), ("doc", nil), (nil, "Secret recalled")] as [(String?, String?)])
    func `a revoke under hidden details shows the revoke text without the nick`(
        _ row: (contentKey: String?, content: String?)
    ) throws {
        let message = PayloadWorld.message {
            $0.kind = .revoke
            $0.revoke = .init(targetMsgID: "m0", badge: .decrease)
            $0.push.content = row.content
            $0.push.title = "Secret"
        }
        let variant = PayloadVariant(language: "en", isHidden: true, contentKey: row.contentKey)
        let alert = try PayloadWorld.tree(message, variant)["aps"]?["alert"]
        #expect(alert?["body"]?.string == "A message was recalled" && alert?["title"] == nil)
    }

    /// A critical alert has an object as its sound. Of other types, and empty, it is none.
    @Test func `a payload's sound that is an object is kept under nim`() throws {
        let critical = JSONValue.object([.init("critical", .number("1")), .init("name", .string("a.caf"))])
        let shown = try JSONTree(parsing: Array(#"{"critical":1,"name":"a.caf"}"#.utf8))
        let rows: [(payload: JSONValue, own: String?, aps: JSONValue?, sound: JSONTree)] = [
            (critical, nil, nil, shown), (critical, "own.caf", nil, .string("own.caf")),
            (critical, nil, .object([.init("sound", .string("aps.caf"))]), .string("aps.caf")),
            (critical, nil, .object([.init("sound", .null), .init("x", .number("1"))]), shown),
            (.object([]), nil, nil, .string("default")), (.number("7"), nil, nil, .string("default")),
            (.string("b.caf"), nil, nil, .string("b.caf")),
        ]
        for row in rows {
            let message = PayloadWorld.message {
                $0.push.payload = .object([.init("sound", row.payload), .init("key", .number("1"))])
                $0.push.sound = row.own
                $0.push.aps = row.aps
            }
            let tree = try PayloadWorld.tree(message, PayloadWorld.english, profile: .nim)
            #expect(tree["aps"]?["sound"] == row.sound, "\(row)")
            #expect(tree["sound"] == nil && tree["key"]?.int == 1)
        }
    }

    /// The client of these profiles takes 1 off for every other revoke.
    @Test(arguments: [PayloadProfile.nim, .rc, .raw, .wps], [true, false])
    func `a revoke that counts says so to a client that counts`(profile: PayloadProfile, counts: Bool) throws {
        let message = PayloadWorld.message {
            $0.kind = .revoke
            $0.revoke = .init(targetMsgID: "m0", badge: counts ? .count : .decrease)
        }
        var variant = PayloadWorld.english
        variant.addsToBadge = counts
        variant.undoesAlert = !counts
        var rules = PayloadRules(profile: profile)
        rules.badge = .client
        let bytes = try #require(
            PayloadTemplate.payload(
                message, variant: variant, rules: rules, templates: PayloadWorld.templates, badge: nil,
                pid: PayloadWorld.pid, receiver: "ben"))
        let tree = try JSONTree(parsing: bytes)
        #expect(tree["aps"]?["mutable-content"]?.int == 1)
        #expect(tree["revoke_counts"] == (counts && profile != .wps ? .bool(true) : nil))
    }

    @Test(arguments: [
        (#"7"#, 7), ("0", 0), ("-3", -3), ("7.0", nil), ("1e3", nil), ("99999999999999999999", nil),
    ])
    func aSendersOwnBadgeIsSentAsGiven(number: String, wanted: Int64?) throws {
        var rules = PayloadRules(profile: .raw)
        rules.badge = .sender
        func badge(_ value: JSONValue, _ change: (inout PayloadVariant) -> Void = { _ in }) throws -> JSONTree? {
            var variant = PayloadWorld.english
            change(&variant)
            let message = PayloadWorld.message { $0.push.aps = .object([.init("badge", value)]) }
            let template = PayloadTemplate(
                message, variant: variant, rules: rules, templates: PayloadWorld.templates)
            let bytes = try #require(template?.render(badge: 5, pid: PayloadWorld.pid, receiver: "ben"))
            return try JSONTree(parsing: bytes)["aps"]?["badge"]
        }
        #expect(try badge(.number(number))?.int == wanted)
        #expect(try badge(.number(number)) { $0.isHidden = true }?.int == wanted)
        #expect(try badge(.number(number)) { $0.isDigest = true } == nil)
        #expect(try badge(.string(number)) == nil)
    }

    @Test(arguments: [PayloadProfile.nim, .rc, .wps, .raw])
    func aRevokeNamesItsTargetWhereCustomKeysGo(_ profile: PayloadProfile) throws {
        let message = PayloadWorld.message {
            $0.kind = .revoke
            $0.revoke = .init(targetMsgID: "m0")
            // Not the sender's word.
            $0.push.payload = .object([.init("revoke_msg_id", .string("m9")), .init("k", .number("1"))])
        }
        let tree = try PayloadWorld.tree(message, profile: profile)
        let appData = try tree["appData"]?.string.map { try JSONTree(parsing: Array($0.utf8)) }
        let keys = profile == .rc ? appData : profile == .wps ? tree["message"]?["params"] : tree
        // In `rc` it is next to `appData`, which belongs to the sender.
        #expect((profile == .wps ? keys : tree)?["revoke_msg_id"]?.string == "m0" && keys?["k"] == .number("1"))
        let text = try PayloadWorld.text(message, profile: profile)
        #expect(text.split(separator: "revoke_msg_id", omittingEmptySubsequences: false).count == 2, "\(text)")
        let ordinary = try PayloadWorld.text(PayloadWorld.message(), profile: profile)
        #expect(!ordinary.contains("revoke_msg_id") && !ordinary.contains("appData"))
    }

    @Test func rongCloud() throws {
        let message = PayloadWorld.message {
            $0.push.payload = .object([.init("k", .array([.bool(true), .null, .string("x")]))])
        }
        let text = try PayloadWorld.text(message, profile: .rc, badge: 12)
        #expect(
            text == """
                {"aps":{"alert":{"body":"Anna: hello"},"sound":"default","thread-id":"anna-ben","mutable-content":1,\
                "badge":12},"pid":"PID","rc":{"cType":"PR","fId":"anna","oName":"RC:TxtMsg","tId":"anna","id":"m1",\
                "rId":"ben"},"appData":"{\\"k\\":[true,null,\\"x\\"]}"}
                """)
    }

    @Test(arguments: [
        (Conversation.Kind.p2p, nil, "PR"), (.group, nil, "GRP"), (.ultra, nil, "GRP"), (.system, nil, "SYS"),
        (.custom, nil, "CS"), (.custom, "DS", "DS"), (.system, "MC", "MC"), (.custom, "MP", "MP"),
        (.group, "XX", "GRP"),
    ])
    func rongCloudsConversationTypes(type: Conversation.Kind, given: String?, expected: String) throws {
        let message = PayloadWorld.message { message in
            message.conversation = .init(id: "c9", type: type)
            message.push.payload = given.map { .object([.init("cType", .string($0))]) }
        }
        let rc = try PayloadWorld.tree(message, profile: .rc)["rc"]
        #expect(rc?["cType"]?.string == expected)
        // The sender where an answer goes to a person, else the conversation.
        #expect(rc?["tId"]?.string == (["PR", "CS", "MC", "MP"].contains(expected) ? "anna" : "c9"))
    }

    @Test func rongCloudsTargetIsTheSendersWhereGivenAndRemainsInThePayload() throws {
        for (given, wanted) in [
            (JSONValue.string("u9"), "u9"), (.number("12"), "12"), (.string(""), "anna"), (.null, "anna"),
        ] {
            let message = PayloadWorld.message {
                $0.push.payload = .object([.init("tId", given), .init("cType", .string("MC"))])
            }
            let tree = try PayloadWorld.tree(message, profile: .rc)
            #expect(tree["rc"]?["tId"]?.string == wanted && tree["rc"]?["cType"]?.string == "MC")
            let text = try #require(tree["appData"]?.string)
            let appData = try JSONTree(parsing: Array(text.utf8))
            #expect(appData["cType"]?.string == "MC" && appData["tId"] != nil)
        }
    }

    @Test func wps() throws {
        let message = PayloadWorld.message {
            $0.push.payload = .object([.init("from", .string("mallory")), .init("doc", .number("7"))])
        }
        let text = try PayloadWorld.text(message, profile: .wps)
        #expect(
            text == """
                {"aps":{"alert":{"body":"Anna: hello"},"sound":"default","thread-id":"anna-ben","mutable-content":1},\
                "pid":"PID","message":{"params":{"conv_id":"anna-ben","conv_type":"p2p","from":"anna","msg_id":"m1",\
                "doc":7}}}
                """)
    }

    @Test(arguments: [(Message.Revoke.Badge.decrease, true), (.keep, false), (.count, false)], [false, true])
    func wpsShowsARevokeThatLoweredThisReceiversBadge(_ row: (Message.Revoke.Badge, Bool), lowered: Bool) throws {
        let (badge, decreases) = row
        var variant = PayloadWorld.english
        variant.lowersBadge = lowered
        let message = PayloadWorld.message {
            $0.kind = .revoke
            $0.revoke = .init(targetMsgID: "m0", badge: badge)
        }
        let params = try PayloadWorld.tree(message, variant, profile: .wps)["message"]?["params"]
        #expect(params?["corner_mark_decrease"] == (decreases && lowered ? .bool(true) : nil))
    }

    @Test func raw() throws {
        let message = PayloadWorld.message {
            $0.push.title = "Team \"A\""
            $0.push.prefix = false
            $0.push.sound = ""
            $0.push.threadID = "t"
            $0.push.category = "reply"
            $0.push.interruption = "time-sensitive"
            $0.push.payload = .object([
                .init("aps", .object([.init("badge", .number("99"))])), .init("pid", .string("forged")),
                .init("apns-collapse-id", .string("x")), .init("a\"b", .object([.init("c", .number("-1e3"))])),
            ])
        }
        let text = try PayloadWorld.text(message)
        #expect(
            text == """
                {"aps":{"alert":{"title":"Team \\"A\\"","body":"hello"},"thread-id":"t","category":"reply",\
                "interruption-level":"time-sensitive","mutable-content":1},"pid":"PID","mid":"m1","a\\"b":{"c":-1e3}}
                """)
    }

    @Test func aSilentPushShowsNothing() throws {
        let message = PayloadWorld.message {
            $0.push.silent = true
            $0.push.title = "t"
            $0.push.sound = "ping"
            $0.push.aps = .object([.init("alert", .string("x")), .init("sound", .string("y")), .init("k", .bool(true))])
        }
        #expect(try PayloadWorld.text(message, badge: 4) == #"{"aps":{"content-available":1},"pid":"PID","mid":"m1"}"#)
    }

    @Test func aBadgeAlone() {
        #expect(String(decoding: PayloadTemplate.badgeAlone(0), as: UTF8.self) == #"{"aps":{"badge":0}}"#)
    }

    @Test func aLiveActivity() throws {
        let activity = LiveActivity(
            uids: ["ben"], activityID: "a1", action: .start, state: .object([.init("eta", .number("7"))]),
            attributesType: "Ride", attributes: .object([.init("car", .string("B 1"))]), alert: .string("It comes"),
            staleMs: 5000, dismissalMs: 9000, relevance: "0.5")
        let bytes = try #require(ActivityPayload.encode(activity, sentMs: 1_700_000_000_999))
        #expect(
            String(decoding: bytes, as: UTF8.self) == """
                {"aps":{"timestamp":1700000000,"event":"start","content-state":{"eta":7},"attributes-type":"Ride",\
                "attributes":{"car":"B 1"},"alert":"It comes","stale-date":5,"relevance-score":0.5}}
                """)
        var end = activity
        end.action = .end
        end.alert = nil
        let ending = try #require(ActivityPayload.encode(end, sentMs: 0))
        #expect(
            String(decoding: ending, as: UTF8.self) == """
                {"aps":{"timestamp":0,"event":"end","content-state":{"eta":7},"stale-date":5,"dismissal-date":9,\
                "relevance-score":0.5}}
                """)
        end.state = .object([.init("x", .string(String(repeating: "y", count: 4096)))])
        #expect(ActivityPayload.encode(end, sentMs: 0) == nil)
    }
}

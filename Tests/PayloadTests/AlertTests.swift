// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import Payload
import PushCore
import Testing

/// What stands in `aps.alert`, and who wins where several want to say it.
@Suite struct AlertTests {
    static let forced = PayloadVariant(language: "en", isForced: true)

    @Test func theOrderOfTexts() throws {
        let all = PayloadWorld.message {
            $0.push.force.content = "wake up"
            $0.typeName = "RC:ImgMsg"
        }
        #expect(try PayloadWorld.body(all, Self.forced) == "Anna: wake up")
        #expect(try PayloadWorld.body(all) == "Anna: hello")
        let builtIn = PayloadWorld.message {
            $0.push.content = nil
            $0.typeName = "RC:ImgMsg"
        }
        #expect(try PayloadWorld.body(builtIn, Self.forced) == "Anna: [Photo]")
        let unknown = PayloadWorld.message { $0.push.content = "" }
        #expect(try PayloadWorld.body(unknown) == "Anna: You have a message")
    }

    @Test(arguments: [
        "\u{61c}", "\u{200e}", "\u{200f}", "\u{202a}", "\u{202e}", "\u{2066}", "\u{2069}", "\u{2028}", "\u{7}",
    ])
    func aNameLosesControlsAndDirectionMarks(mark: String) throws {
        for nick in ["An\(mark)na", "\(mark)Anna", "Anna\(mark)"] {
            #expect(try PayloadWorld.body(PayloadWorld.message { $0.from.nick = nick }) == "Anna: hello")
        }
        // Joiners are part of letters and of emoji, and Arabic letters begin with the same byte as a mark.
        for nick in ["👩‍👩‍👧", "نَسرین‌زاده"] {
            #expect(try PayloadWorld.body(PayloadWorld.message { $0.from.nick = nick }) == "\(nick): hello")
        }
    }

    @Test func aGivenAlertLosesControlsInAllItsTexts() throws {
        let alert = JSONValue.object([
            .init("title", .string("a\u{0}b")), .init("body", .string("c\u{7f}d\n\te")),
            .init("loc-args", .array([.string("f\u{1b}g")])), .init("x", .number("1")),
        ])
        let message = PayloadWorld.message { $0.push.aps = .object([.init("alert", alert)]) }
        #expect(try PayloadWorld.body(message) == "cd\n\te")
        let plain = PayloadWorld.message { $0.push.aps = .object([.init("alert", .string("a\u{9b}b"))]) }
        #expect(try PayloadWorld.tree(plain)["aps"]?["alert"]?.string == "ab")
    }

    @Test(arguments: [
        ("en", "[Photo]"), ("en-GB", "[Photo]"), ("zh-Hans", "[图片]"), ("zh-Hans-CN", "[图片]"), ("fr", "[图片]"),
        ("", "[图片]"), ("-", "[图片]"),
    ])
    func theNearestLanguageSpeaks(language: String, text: String) {
        #expect(PayloadWorld.templates.text(ofType: "RC:ImgMsg", language: language) == text)
    }

    @Test func aTypeUnknownInALanguageSpeaksTheDefaultOne() {
        #expect(PayloadWorld.templates.text(ofType: "RC:VcMsg", language: "en") == "[语音]")
        #expect(PayloadWorld.templates.text(ofType: "RC:None", language: "en") == nil)
        #expect(Templates().generic(language: "en") == "你收到一条新消息")
    }

    @Test func theNameComesFirstUnlessUnwanted() throws {
        #expect(try PayloadWorld.body(PayloadWorld.message { $0.push.prefix = false }) == "hello")
        #expect(try PayloadWorld.body(PayloadWorld.message { $0.from.nick = nil }) == "hello")
        #expect(try PayloadWorld.body(PayloadWorld.message { $0.from.nick = "" }) == "hello")
    }

    private static let team = Conversation(id: "team", type: .group, name: "Team\u{202e} 7")
    private static let blank = JSONValue.object([.init("alert", .object([.init("body", .string(" "))]))])

    /// An app's `title`, a message, and `title|body` of its alert.
    private struct Titled: Sendable {
        var title: AppPolicy.AlertTitle
        var expected: String
        var change: @Sendable (inout Message) -> Void

        init(
            _ title: AppPolicy.AlertTitle, _ expected: String,
            _ change: @escaping @Sendable (inout Message) -> Void = { _ in }
        ) {
            (self.title, self.expected, self.change) = (title, expected, change)
        }
    }

    private static let order = PushOptions.Template(
        id: "order", args: [UTF8Key("no"): "7", UTF8Key("name"): "Ben", UTF8Key("place"): "A"])
    private static let titled: [Titled] = [
        Titled(.absent, "-|Anna: hello"),
        Titled(.nick, "Anna|Anna: hello"),
        Titled(.nick, "Mine|Anna: hello") { $0.push.title = "Mine" },
        Titled(.nick, "Order 7|Anna: Ben, your order 7 left A.") { $0.push.template = order },
        Titled(.nick, "-|hello") { $0.from.nick = nil },
        Titled(.nick, "Anna|Anna: hello") { $0.conversation = team },
        Titled(.conversation, "Team 7|Anna: hello") { $0.conversation = team },
        Titled(.conversation, "Anna|Anna: hello"),
        Titled(.conversation, "Anna|Anna: hello") { $0.conversation.name = "\u{202e}" },
        Titled(.conversation, "-|hello") { $0.from.nick = nil },
        Titled(.conversation, "Anna|Anna recalled a message") {
            $0.kind = .revoke
            $0.push.content = nil
        },
        Titled(.nick, "Given|Anna: hello") {
            $0.push.aps = .object([.init("alert", .object([.init("title", .string("Given"))]))])
        },
        // An alert that shows nothing is none, whatever the app's title is.
        Titled(.nick, "Anna|Anna: hello") { $0.push.aps = blank },
        Titled(.nick, "-|-") { $0.push.aps = .object([.init("alert", .string("as given"))]) },
    ]

    @Test func `the app's title is that of an alert without one, and of its SMS`() throws {
        for row in Self.titled {
            #expect(try PayloadWorld.alert(rules: { $0.title = row.title }, row.change) == row.expected)
            var rules = PayloadRules(profile: .raw)
            rules.title = row.title
            let shown = ShownText(
                PayloadWorld.message(row.change), variant: PayloadWorld.english, rules: rules,
                templates: PayloadWorld.templates)
            let text = "\(shown.title ?? "-")|\(shown.body ?? "-")"
            #expect(text == (row.expected == "-|-" ? "-|as given" : row.expected))
        }
    }

    @Test(arguments: [AppPolicy.AlertTitle.nick, .conversation], ["work", "none"])
    func `hidden details have no title`(title: AppPolicy.AlertTitle, key: String) throws {
        let variant = PayloadVariant(language: "en", isHidden: true, contentKey: key)
        let text = key == "work" ? "-|Work is calling" : "-|You have a message"
        #expect(try PayloadWorld.alert(variant, rules: { $0.title = title }) { $0.conversation = Self.team } == text)
    }

    /// The messages of a group have several senders; those of a digest have none.
    @Test(arguments: [
        (AppPolicy.AlertTitle.nick, Conversation.Kind.p2p, "Anna"), (.nick, .group, "-"),
        (.conversation, .group, "Team 7"),
        (.absent, .p2p, "-"),
    ])
    func `a merged alert has a name as its title only where it holds for all`(
        title: AppPolicy.AlertTitle, type: Conversation.Kind, expected: String
    ) throws {
        var variant = PayloadWorld.english
        variant.mergedCount = 3
        let text = try PayloadWorld.alert(variant, rules: { $0.title = title }) {
            $0.conversation = type == .p2p ? $0.conversation : Self.team
            $0.push.prefix = false
        }
        #expect(text.hasPrefix("\(expected)|"), "\(text)")
    }

    @Test func theVariantOfAToken() {
        var settings = UserSettings()
        let policy = AppPolicy(id: "im", topic: "t")
        let message = PayloadWorld.message()
        func variant(_ message: Message, language: String? = nil) -> PayloadVariant {
            let token = TokenRecord(
                hex: "aa", environment: .production, topic: "t", type: .alert, contentKey: "work", language: language,
                boundMs: 1)
            return PayloadVariant(
                message, token: token, settings: settings, isForced: false, defaultLanguage: policy.defaultLanguage)
        }
        #expect(variant(message) == .init(language: "zh-Hans"))
        settings.language = "en"
        #expect(variant(message) == .init(language: "en"))
        settings.showDetail = false
        #expect(variant(message, language: "fr") == .init(language: "fr", isHidden: true, contentKey: "work"))
        #expect(variant(PayloadWorld.message { $0.push.forceDetail = true }, language: "fr") == .init(language: "fr"))
    }

    /// Title, name, content, forced text and the sender's alert are secrets here; nothing of them may be left.
    @Test(arguments: [PayloadProfile.nim, .rc, .wps, .raw], [false, true])
    func hiddenDetailsLeakNothing(profile: PayloadProfile, isForced: Bool) throws {
        let message = PayloadWorld.message {
            $0.from.nick = "SECRET nick"
            $0.push.title = "SECRET title"
            $0.push.content = "SECRET content"
            $0.push.force = .init(mode: .all, content: "SECRET force")
            $0.push.aps = .object([
                .init(
                    "alert",
                    .object([
                        .init("title", .string("SECRET")), .init("subtitle", .string("SECRET")),
                        .init("body", .string("SECRET")), .init("loc-args", .array([.string("SECRET")])),
                    ]))
            ])
        }
        for (key, body) in [("work", "Work is calling"), ("none", "You have a message"), (nil, "You have a message")] {
            let variant = PayloadVariant(language: "en", isHidden: true, contentKey: key, isForced: isForced)
            let text = try PayloadWorld.text(message, variant, profile: profile)
            #expect(!text.contains("SECRET"))
            #expect(text.contains(#""alert":{"body":"\#(body)"}"#))
        }
    }

    @Test func theSendersApsIsMergedAndTheServersKeysStay() throws {
        let message = PayloadWorld.message {
            $0.push.title = "mine"
            $0.push.sound = "ping"
            $0.push.aps = .object([
                .init("badge", .number("77")), .init("mutable-content", .number("0")),
                .init("content-available", .number("1")),
                .init("sound", .object([.init("critical", .number("1"))])), .init("thread-id", .string("other")),
                .init("category", .string("C")), .init("interruption-level", .string("passive")),
                .init("relevance-score", .number("0.7")), .init("gone", .null),
                .init("alert", .object([.init("title", .string("theirs")), .init("subtitle", .string("sub"))])),
            ])
        }
        let aps = try PayloadWorld.tree(message, badge: 5)["aps"]
        #expect(aps?["badge"]?.int == 5)
        #expect(aps?["mutable-content"]?.int == 1)
        #expect(aps?["content-available"]?.int == 1)
        #expect(aps?["sound"]?["critical"]?.int == 1)
        #expect(aps?["thread-id"]?.string == "other")
        #expect(aps?["category"]?.string == "C")
        #expect(aps?["interruption-level"]?.string == "passive")
        #expect(aps?["relevance-score"]?.double == 0.7)
        #expect(aps?["gone"] == nil)
        #expect(aps?["alert"]?["title"]?.string == "theirs")
        #expect(aps?["alert"]?["subtitle"]?.string == "sub")
        #expect(aps?["alert"]?["body"]?.string == "Anna: hello")
    }

    @Test func withoutABadgeTheSendersIsNotTakenEither() throws {
        let message = PayloadWorld.message { $0.push.aps = .object([.init("badge", .number("77"))]) }
        #expect(try PayloadWorld.tree(message)["aps"]?["badge"] == nil)
    }

    @Test func theSendersAlertIsUnchanged() throws {
        func given(_ alert: JSONValue) -> Message {
            PayloadWorld.message {
                $0.push.force.content = "wake up"
                $0.push.aps = .object([.init("alert", alert)])
            }
        }
        #expect(try PayloadWorld.tree(given(.string("as is")))["aps"]?["alert"]?.string == "as is")
        #expect(try PayloadWorld.body(given(.object([.init("body", .string("as is"))]))) == "as is")
        let localised = given(.object([.init("loc-key", .string("K")), .init("title-loc-key", .string("T"))]))
        #expect(
            try PayloadWorld.tree(localised)["aps"]?["alert"]
                == .object([.init("loc-key", .string("K")), .init("title-loc-key", .string("T"))]))
        // What is no alert at all is passed over.
        for alert in [JSONValue.null, .number("4"), .array([]), .bool(false)] {
            #expect(try PayloadWorld.body(given(alert)) == "Anna: hello")
        }
    }

    /// White space, controls and default-ignorable code points show nothing.
    @Test func anAlertOfTheSenderThatShowsNothingIsAbsent() throws {
        func given(_ alert: JSONValue, title: String? = nil) throws -> JSONTree? {
            let message = PayloadWorld.message {
                $0.push.title = title
                $0.push.aps = .object([.init("alert", alert)])
            }
            return try PayloadWorld.tree(message)["aps"]?["alert"]
        }
        for alert in [
            JSONValue.string(""), .string("\u{200B}\u{200F} "), .object([.init("body", .string(" "))]),
            .object([.init("body", .string("")), .init("title", .string("\u{2060}"))]),
        ] {
            #expect(try given(alert)?["body"]?.string == "Anna: hello", "\(alert)")
        }
        // Our title is a part of the merged alert.
        let merged = try given(.object([.init("body", .string(""))]), title: "T")
        #expect(merged?["title"]?.string == "T" && merged?["body"]?.string == "")
    }

    @Test func theForcedReadTheForcedText() throws {
        for alert in [JSONValue.string("as is"), .object([.init("loc-key", .string("K"))])] {
            let message = PayloadWorld.message {
                $0.push.force.content = "wake up"
                $0.push.aps = .object([.init("alert", alert)])
            }
            #expect(try PayloadWorld.body(message, Self.forced) == "Anna: wake up")
        }
    }

    @Test func controlsAreTakenOutOfWhatIsShown() throws {
        let message = PayloadWorld.message {
            $0.from.nick = "A\u{202E}nna\r\n\u{2066}\u{0}"
            $0.push.title = "ti\u{7}tle\u{85}"
            $0.push.content = "a\r\nb\u{0}c\td\u{1b}[31m\u{FFFD}"
        }
        let alert = try PayloadWorld.tree(message)["aps"]?["alert"]
        #expect(alert?["body"]?.string == "Anna: a\nbc\td[31m\u{FFFD}")
        #expect(alert?["title"]?.string == "title")
        // Arabic text with its own marks is left as it is.
        let arabic = "\u{200F}مرحبا\u{200E} \u{202B}x\u{202C}"
        #expect(try PayloadWorld.body(PayloadWorld.message { $0.push.content = arabic }) == "Anna: " + arabic)
    }

    @Test func aControlIsFoundAtEveryPlaceOfATextOfEveryLength() throws {
        for harm in ["\u{0}", "\u{1F}", "\u{7F}", "\u{80}", "\u{9F}", "\u{202E}", "\u{2066}", "\u{2028}"] {
            for length in [1, 7, 8, 9, 17] {
                for place in 0..<length {
                    let rest = String(repeating: "文", count: place) + String(repeating: "x", count: length - place - 1)
                    let text = String(repeating: "文", count: place) + harm + rest.suffix(length - place - 1)
                    let message = PayloadWorld.message {
                        $0.from.nick = text
                        $0.push.content = text
                    }
                    let shown = rest + ": "
                    let isFormatting = harm.unicodeScalars.allSatisfy { $0.value > 0x2000 }
                    // A text of the mark alone shows nothing, and is treated as absent.
                    if !rest.isEmpty {
                        #expect(
                            try PayloadWorld.body(message, .init(language: "en")) == shown
                                + (isFormatting ? text : rest))
                    }
                }
            }
        }
    }

    @Test func everyByteOfCustomKeysIsEscaped() throws {
        let nasty = String(String.UnicodeScalarView((0...0x2100).compactMap(Unicode.Scalar.init)))
        let message = PayloadWorld.message {
            $0.push.voip = true
            $0.push.payload = .object([
                .init(String(nasty.unicodeScalars.prefix(300)), .string(String(nasty.unicodeScalars.prefix(300))))
            ])
        }
        let tree = try PayloadWorld.tree(message)
        let key = String(nasty.unicodeScalars.prefix(300))
        #expect(tree[key]?.string == key)
    }
}

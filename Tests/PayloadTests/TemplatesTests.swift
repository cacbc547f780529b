// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import Payload
import PushCore
import Testing

/// Texts by language: which one is asked, and which form a number takes in it (im.md row 24).
@Suite struct TemplatesTests {
    @Test func aTemplateThatALanguageLacksAndAnArgumentOfOneLanguageAreFound() {
        func language(_ texts: [String: String]) -> Templates.Language {
            Templates.Language(
                templates: Dictionary(
                    uniqueKeysWithValues: texts.map { (UTF8Key($0.key), Templates.Template(content: $0.value)) }))
        }
        let templates = Templates(languages: [
            "en": language(["order": "{name}, {number} is ready", "only": "{x}"]),
            "en-GB": language([:]), "de": language(["order": "{name}, {nummer} ist da"]), "zh-Hans": language([:]),
        ])
        #expect(
            templates.templateGaps == [
                TemplateGap(language: "de", id: "only", kind: .missing(inOthers: ["en"])),
                TemplateGap(language: "zh-Hans", id: "only", kind: .missing(inOthers: ["en"])),
                TemplateGap(language: "zh-Hans", id: "order", kind: .missing(inOthers: ["de", "en"])),
                TemplateGap(language: "de", id: "order", kind: .argument("nummer")),
                TemplateGap(language: "en", id: "order", kind: .argument("number")),
            ])
        #expect(Templates(languages: ["en": language(["a": "{x}"])]).templateGaps.isEmpty)
    }

    /// As `carillon explain` tells it.
    @Test func howATemplateFitsALanguage() {
        let order = Templates.Template(content: "{name}, {number} is ready")
        let templates = Templates(
            languages: ["en": Templates.Language(templates: [UTF8Key("order"): order])], defaultLanguage: "en")
        func words(_ id: String, _ args: [String: String]) -> String {
            let args = Dictionary(uniqueKeysWithValues: args.map { (UTF8Key($0.key), $0.value) })
            return templates.words(for: PushOptions.Template(id: id, args: args), language: "de")
        }
        #expect(words("order", ["name": "Ann", "number": "7"]) == "in en")
        #expect(words("order", ["nick": "Ann"]) == "in en, without its arguments name, number")
        #expect(words("ordre", [:]) == "unknown, so another text is shown")
    }

    /// Each language with numbers and their categories, from the samples of CLDR's plural rules.
    static let categories: [(String, String)] = [
        ("zh-Hans", "0 other, 1 other, 2 other, 100 other"), ("ja", "1 other"), ("ko", "1 other"), ("th", "1 other"),
        ("en", "0 other, 1 one, 2 other, 11 other, 21 other"), ("de", "0 other, 1 one, 2 other"),
        ("xx", "1 one, 2 other"),
        ("", "1 one, 0 other"), ("tr", "1 one, 2 other"), ("hu", "1 one, 5 other"), ("sv-SE", "1 one, 0 other"),
        ("fr", "0 one, 1 one, 2 other, 1000000 many, 1000001 other"), ("fr-CA", "0 one"),
        ("pt-BR", "0 one, 1 one, 2 other"),
        ("pt-PT", "0 other, 1 one, 2 other, 2000000 many"), ("PT_pt", "0 other"),
        ("es", "0 other, 1 one, 1000000 many"),
        ("it", "1 one, 2 other, 1000000 many"), ("hi", "0 one, 1 one, 2 other"), ("fa", "0 one, 2 other"),
        (
            "ru",
            "0 many, 1 one, 2 few, 4 few, 5 many, 11 many, 12 many, 14 many, 21 one, 22 few, 25 many, 111 many, 112 many, 121 one"
        ),
        ("uk", "1 one, 3 few, 13 many, 101 one"), ("sr", "1 one, 2 few, 5 other, 11 other, 21 one"),
        ("hr", "0 other, 3 few"),
        ("pl", "0 many, 1 one, 2 few, 4 few, 5 many, 12 many, 21 many, 22 few, 25 many, 112 many"),
        ("cs", "0 other, 1 one, 2 few, 4 few, 5 other, 22 other"), ("sk", "3 few"),
        ("sl", "0 other, 1 one, 2 two, 3 few, 4 few, 5 other, 101 one, 102 two, 104 few"),
        ("lt", "0 other, 1 one, 2 few, 9 few, 10 other, 11 other, 19 other, 21 one, 22 few, 111 other"),
        ("lv", "0 zero, 1 one, 2 other, 10 zero, 11 zero, 19 zero, 21 one, 22 other, 111 zero"),
        ("ro", "0 few, 1 one, 2 few, 19 few, 20 other, 100 other, 101 few, 119 few, 120 other"),
        ("is", "1 one, 11 other, 21 one"),
        ("mk", "1 one, 11 other, 31 one"),
        ("ar", "0 zero, 1 one, 2 two, 3 few, 10 few, 11 many, 99 many, 100 other, 102 other, 103 few, 111 many"),
        ("he", "1 one, 2 two, 3 other, 20 other"), ("iw", "2 two"),
        ("mt", "0 few, 1 one, 2 two, 3 few, 10 few, 11 many, 19 many, 20 other, 103 few, 111 many"),
        ("ga", "1 one, 2 two, 3 few, 6 few, 7 many, 10 many, 11 other"),
        ("gd", "1 one, 11 one, 2 two, 12 two, 3 few, 19 few, 20 other"),
        ("cy", "0 zero, 1 one, 2 two, 3 few, 6 many, 4 other"),
        (
            "br",
            "1 one, 11 other, 21 one, 71 other, 2 two, 12 other, 3 few, 4 few, 9 few, 13 other, 1000000 many, 0 other"
        ),
        ("fil", "0 one, 1 one, 3 one, 4 other, 5 one, 6 other, 9 other, 10 one, 14 other"),
        ("tzm", "0 one, 1 one, 2 other, 11 one"),
    ]

    @Test(arguments: categories)
    func aNumberTakesItsLanguagesForm(language: String, samples: String) throws {
        for sample in samples.split(separator: ", ") {
            let parts = sample.split(separator: " ")
            let count = try #require(Int(parts[0]))
            #expect(PluralCategory.of(count, language: language).rawValue == parts[1], "\(language) \(count)")
        }
    }

    static let texts = Templates(
        languages: [
            "en": .init(merged: ["one": "a new message", "other": "{count} new messages"]),
            "ru": .init(merged: ["one": "{count} сообщение", "few": "{count} сообщения", "other": "{count} сообщений"]),
            "zh-Hans": .init(generic: "新消息", merged: ["other": "{count}条新消息"]),
            "zh-Hant": .init(generic: "新訊息"),
            "de": .init(generic: "Neu"),
            "odd": .init(merged: ["other": "{{count}} {count {count}"]),
        ], defaultLanguage: "zh-Hans-CN")

    @Test(arguments: [
        (1, "en", "a new message"), (2, "en-GB", "2 new messages"), (0, "en", "0 new messages"),
        (1, "ru", "1 сообщение"), (3, "ru-RU", "3 сообщения"), (5, "ru", "5 сообщений"), (1, "zh-Hans", "1条新消息"),
        // No text of its own: the default language's, in the default language's form.
        (1, "de", "1条新消息"), (7, "fr", "7条新消息"), (1, "", "1条新消息"), (4, "odd", "{4} {count 4"),
    ])
    func mergedMessagesAreCounted(count: Int, language: String, text: String) {
        #expect(Self.texts.merged(count, language: language) == text)
    }

    @Test func withoutTemplatesMergedMessagesAreCountedToo() {
        #expect(Templates().merged(12, language: "en") == "你收到12条新消息")
    }

    @Test(arguments: [
        ("zh-Hans-CN", "新消息"), ("ZH-hans", "新消息"), ("zh_Hant_HK", "新訊息"), ("zh-TW", "新訊息"), ("zh-HK", "新訊息"),
        ("zh-CN", "新消息"), ("de-AT", "Neu"), ("DE", "Neu"), ("fr", "新消息"), ("", "新消息"), ("-", "新消息"),
    ])
    func aLanguageIsFoundWhateverItsSpelling(language: String, text: String) {
        #expect(Self.texts.generic(language: language) == text)
    }

    @Test func languagesMayBeGivenLater() {
        var templates = Templates(defaultLanguage: "en")
        templates.languages["EN"] = .init(generic: "New")
        #expect(templates.generic(language: "en-US") == "New")
    }
}

/// Texts with places: templates, the text of a revoke, the prefix.
@Suite struct FilledTextTests {
    // MARK: push.template

    private static func order(_ args: [String: String], _ change: (inout Message) -> Void = { _ in }) throws -> String {
        try PayloadWorld.alert { message in
            let pairs = args.map { (UTF8Key($0.key), $0.value) }
            message.push.template = .init(id: "order", args: Dictionary(uniqueKeysWithValues: pairs))
            change(&message)
        }
    }

    @Test func aTemplateGivesTitleAndContentAndAMissingArgumentNothing() throws {
        #expect(
            try Self.order(["name": "Ben", "no": "7", "place": "Bonn"]) == "Order 7|Anna: Ben, your order 7 left Bonn.")
        #expect(try Self.order([:]) == "Order |Anna: , your order  left .")
    }

    @Test func aPlaceIsFilledOnce() throws {
        #expect(
            try Self.order(["name": "{no}", "no": "{name}"]) == "Order {name}|Anna: {no}, your order {name} left .")
    }

    @Test func filledInValuesAreCutToTheLimits() throws {
        let long = String(repeating: "汉", count: 500)
        let text = try Self.order(["name": long, "no": long, "place": long]) { $0.push.prefix = false }
        #expect(text == "Order " + long.prefix(93) + "…|" + long.prefix(499) + "…")
    }

    @Test func forcedTextThenTemplateThenContent() throws {
        #expect(
            try PayloadWorld.alert(.init(language: "en", isForced: true)) {
                $0.push.force.content = "wake up"
                $0.push.template = .init(id: "order")
            } == "Order |Anna: wake up")
        #expect(
            try PayloadWorld.alert {
                $0.push.title = "mine"
                $0.push.template = .init(id: "unknown")
            } == "mine|Anna: hello")
        #expect(try PayloadWorld.alert { $0.push.template = .init(id: "title") } == "Only a title|Anna: hello")
        // A result that shows nothing is absent.
        #expect(try PayloadWorld.alert { $0.push.template = .init(id: "blank") } == "-|Anna: hello")
    }

    @Test(arguments: [("en-GB", "Order "), ("zh-CN", "订单"), ("fr", "订单")])
    func aTemplateIsInTheRecipientsLanguageElseTheDefaultOne(language: String, title: String) throws {
        let alert = try PayloadWorld.alert(.init(language: language)) { $0.push.template = .init(id: "order") }
        #expect(alert.hasPrefix(title + "|"))
    }

    // MARK: The text of a revoke

    /// Recipients of one revoke share payloads by language, also where only built-in texts differ.
    @Test(arguments: [["zh-Hans", "en-GB", "zh-TW"], ["en", "zh-Hant", "zh-CN"]])
    func eachRecipientOfARevokeReadsTheOwnLanguage(languages: [String]) throws {
        let message = PayloadWorld.message {
            $0.kind = .revoke
            $0.revoke = .init(targetMsgID: "m0")
            $0.push.content = nil
        }
        let templates = Templates(defaultLanguage: "zh-Hans")
        var payloads = EventPayloads(message, policy: AppPolicy(id: "im", topic: "t"))
        for language in languages {
            let shared = payloads.template(PayloadVariant(language: language), of: message, templates: templates)
            let template = try #require(shared)
            let bytes = try #require(template.render(badge: nil, pid: PayloadWorld.pid, receiver: "ben"))
            let body = try JSONTree(parsing: bytes)["aps"]?["alert"]?["body"]?.string
            #expect(body == (language.hasPrefix("en") ? "Anna recalled a message" : "Anna撤回了一条消息"), "\(language)")
        }
    }

    @Test(arguments: [
        ("zh-Hans", "Anna", "Anna撤回了一条消息"), ("zh-TW", nil, "对方撤回了一条消息"), ("en-GB", "Anna", "Anna recalled a message"),
        ("en", nil, "A message was recalled"), ("fr", "Anna", "Anna撤回了一条消息"), ("", nil, "对方撤回了一条消息"),
    ])
    func aRevokeWithoutATextHasTheBuiltInOne(language: String, nick: String?, text: String) throws {
        let alert = try PayloadWorld.alert(.init(language: language)) {
            $0.kind = .revoke
            $0.revoke = .init(targetMsgID: "m0")
            $0.push.content = nil
            $0.typeName = "RC:ImgMsg"
            $0.from.nick = nick
        }
        #expect(alert == "-|" + text)
    }

    @Test func aRevokeIsInEnglishWhereNeitherLanguageHasAText() throws {
        let templates = Templates(languages: ["fr": .init(generic: "Message")], defaultLanguage: "fr")
        let alert = try PayloadWorld.alert(.init(language: "it"), templates: templates) {
            $0.kind = .revoke
            $0.push.content = nil
        }
        #expect(alert == "-|Anna recalled a message")
    }

    @Test(arguments: [
        ("de", "Anna", "Anna hat etwas {gelöscht}"), ("de", nil, "hat etwas {gelöscht}"), ("en", "Anna", "Gone: Anna"),
        ("en", nil, "A message was recalled"), ("nl", nil, "Weg"),
    ])
    func anAppsOwnTextOfARevokeComesFirst(language: String, nick: String?, text: String) throws {
        let templates = Templates(
            languages: [
                "de": .init(revoke: "{nick} hat etwas {gelöscht}"), "en": .init(revoke: "Gone: {nick}"),
                "nl": .init(revoke: "Weg"),
            ], defaultLanguage: "en")
        let alert = try PayloadWorld.alert(.init(language: language), templates: templates) {
            $0.kind = .revoke
            $0.push.content = nil
            $0.from.nick = nick
        }
        #expect(alert == "-|" + text)
    }

    @Test func aRevokesOwnTextHasThePrefix() throws {
        #expect(try PayloadWorld.alert { $0.kind = .revoke } == "-|Anna: hello")
    }

    @Test func hiddenDetailsReplaceTheTextOfARevoke() throws {
        let alert = try PayloadWorld.alert(.init(language: "en", isHidden: true)) {
            $0.kind = .revoke
            $0.push.content = nil
            $0.push.subtitle = "secret"
        }
        #expect(alert == "-|A message was recalled")
    }

    // MARK: The prefix

    @Test(arguments: [
        ("{nick}: ", "Anna", "Anna: hello"), ("{nick}: ", nil, "hello"), ("[{nick}] ", "Anna", "[Anna] hello"),
        ("{nick}{nick}|", "A", "AA|hello"), ("", "Anna", "hello"), ("App: ", "Anna", "App: hello"),
        ("App: ", nil, "App: hello"),
        ("{Nick} {nick}: ", "Anna", "{Nick} Anna: hello"),
    ])
    func thePrefixIsTheApps(format: String, nick: String?, text: String) throws {
        let rules = { (rules: inout PayloadRules) in rules.prefix = PrefixFormat(format) }
        #expect(try PayloadWorld.alert(rules: rules) { $0.from.nick = nick } == "-|" + text)
        #expect(
            try PayloadWorld.alert(rules: rules) {
                $0.from.nick = nick
                $0.push.prefix = false
            } == "-|hello")
    }
}

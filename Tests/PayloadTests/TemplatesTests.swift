import Payload
import Testing

/// Texts by language: which one is asked, and which form a number takes in it (im.md row 24).
@Suite struct TemplatesTests {
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

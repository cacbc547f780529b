// SPDX-License-Identifier: Apache-2.0
import Payload
import PushCore
import Testing

/// What an SMS says in place of an alert.
@Suite struct ShownTextTests {
    private static func shown(
        _ variant: PayloadVariant = PayloadWorld.english, _ change: (inout Message) -> Void = { _ in }
    ) -> [String?] {
        let text = ShownText(
            PayloadWorld.message(change), variant: variant, rules: PayloadRules(profile: .nim),
            templates: PayloadWorld.templates)
        return [text.title, text.body]
    }

    private static func alert(_ members: [JSONValue.Member]) -> JSONValue {
        .object([.init("alert", .object(members))])
    }

    @Test func itIsTheTextOfTheAlert() {
        #expect(Self.shown() == [nil, "Anna: hello"])
        #expect(Self.shown { $0.push.title = "Team" } == ["Team", "Anna: hello"])
        #expect(
            Self.shown { $0.push.payload = .object([.init("pushTitle", .string("NIM"))]) } == ["NIM", "Anna: hello"])
        let forced = PayloadVariant(language: "en", isForced: true)
        #expect(Self.shown(forced) { $0.push.force.content = "Wake up" } == [nil, "Anna: Wake up"])
        #expect(
            Self.shown {
                $0.push.content = nil
                $0.typeName = "RC:ImgMsg"
            } == [nil, "Anna: [Photo]"])
        #expect(Self.shown { $0.push.silent = true } == [nil, nil])
    }

    @Test func usersWhoHideDetailsReadTheGenericText() {
        let hidden = PayloadVariant(language: "en", isHidden: true)
        let keyed = PayloadVariant(language: "en", isHidden: true, contentKey: "work")
        func secret(_ message: inout Message) {
            message.push.title = "Secret"
            message.push.aps = Self.alert([.init("body", .string("secret"))])
        }
        #expect(Self.shown(hidden, secret) == [nil, "You have a message"])
        #expect(Self.shown(keyed, secret) == [nil, "Work is calling"])
    }

    @Test func theSendersOwnAlertIsUnchanged() {
        #expect(
            Self.shown {
                $0.push.title = "Title"
                $0.push.aps = .object([.init("alert", .string("own\u{0}"))])
            } == [nil, "own"])
        #expect(Self.shown { $0.push.aps = Self.alert([.init("title", .string("T"))]) } == ["T", "Anna: hello"])
        #expect(Self.shown { $0.push.aps = Self.alert([.init("body", .string("B"))]) } == [nil, "B"])
        // Only the device has the words of a key.
        #expect(
            Self.shown {
                $0.push.title = "Title"
                $0.push.aps = Self.alert([.init("title-loc-key", .string("K")), .init("loc-key", .string("K"))])
            } == [nil, nil])
        let forced = PayloadVariant(language: "en", isForced: true)
        #expect(
            Self.shown(forced) {
                $0.push.force.content = "Wake up"
                $0.push.aps = Self.alert([.init("body", .string("B"))])
            } == [nil, "Anna: Wake up"])
    }

    /// A character is a grapheme cluster, and has no end of its own: both are bounded, in time too.
    @Test(.timeLimit(.minutes(1))) func itIsBounded() {
        let long = Self.shown {
            $0.push.prefix = false
            $0.push.title = String(repeating: "汉", count: 101)
            $0.push.aps = Self.alert([.init("body", .string(String(repeating: "y", count: 1 << 20)))])
        }
        #expect(long == [String(repeating: "汉", count: 99) + "…", String(repeating: "y", count: 499) + "…"])
        let stack = "a" + String(repeating: "\u{301}", count: 1 << 19)
        let bounded = Self.shown { $0.push.aps = Self.alert([.init("body", .string("ok" + stack))]) }
        #expect(bounded == [nil, "o…"] || bounded == [nil, "ok…"])
    }

    @Test func aUsersWordsAreThoseOfTheTokenThatHeBoundLast() {
        var settings = UserSettings()
        func variant(_ tokens: [BoundToken]) -> PayloadVariant {
            PayloadVariant(
                PayloadWorld.message(), tokens: tokens, settings: settings, isForced: true, defaultLanguage: "ja")
        }
        func token(_ language: String?, type: TokenRecord.Kind = .alert, boundMs: Int64) -> BoundToken {
            let record = TokenRecord(
                hex: "aa", environment: .production, topic: "t", type: type, contentKey: "work", language: language,
                boundMs: boundMs)
            return BoundToken(device: "d", record: record, version: 1)
        }
        #expect(variant([]) == PayloadVariant(language: "ja", isForced: true))
        settings.language = "de"
        #expect(variant([token(nil, boundMs: 1)]).language == "de")
        #expect(
            variant([token("en", boundMs: 3), token("fr", boundMs: 2), token("it", type: .voip, boundMs: 9)]).language
                == "en")
        settings.showDetail = false
        #expect(variant([token("en", boundMs: 3)]).contentKey == "work" && variant([]).isHidden)
    }

    /// Some ranges are answered without the tables.
    @Test func theBlankScalarsAreThoseOfUnicode() {
        var wrong: [UInt32] = []
        for scalar in (UInt32(0)...0x10FFFF).lazy.compactMap(Unicode.Scalar.init) {
            let properties = scalar.properties
            let isBlank =
                properties.isWhitespace || properties.isDefaultIgnorableCodePoint
                || properties.generalCategory == .control
            if BlankText.isBlank(scalar) != isBlank { wrong.append(scalar.value) }
        }
        #expect(wrong.isEmpty)
    }
}

// SPDX-License-Identifier: Apache-2.0
/// The plural form of a text for a number (Unicode CLDR, plural rules for cardinals).
public enum PluralCategory: String, Sendable, CaseIterable {
    case zero, one, two, few, many, other

    /// The category of an integer in a language. For an unknown language: `one` for 1, else `other`.
    ///
    /// - Parameter language: BCP 47, in any case. Only `pt-PT` differs from its base language.
    public static func of(_ count: Int, language: String) -> PluralCategory {
        let number = count.magnitude
        let tag = LanguageTag.folded(language)
        if tag == "pt-pt" || tag.hasPrefix("pt-pt-") { return romance(number, oneUpTo: 1, from: 1) }
        switch tag.prefix(while: { $0 != "-" }) {
        case "zh", "yue", "ja", "ko", "vi", "th", "id", "in", "ms", "lo", "my", "km", "bo", "dz", "ig", "ii", "jv",
            "jw", "su", "to", "wo", "yo", "sg", "sah", "nqo":
            return .other
        case "hi", "bn", "gu", "kn", "fa", "am", "as", "zu", "ak", "ln", "mg", "pa", "ti", "wa", "si", "hy", "ff",
            "kab",
            "pcm", "doi":
            return number <= 1 ? .one : .other
        case "fr", "pt": return romance(number, oneUpTo: 1, from: 0)
        case "es", "it", "ca", "vec", "scn", "lld": return romance(number, oneUpTo: 1, from: 1)
        case "ru", "uk", "be": return eastSlavic(number)
        case "sr", "hr", "bs", "sh": return eastSlavic(number) == .many ? .other : eastSlavic(number)
        case "pl": return number == 1 ? .one : eastSlavic(number) == .few ? .few : .many
        case "cs", "sk": return number == 1 ? .one : (2...4).contains(number) ? .few : .other
        case "sl", "hsb", "dsb": return slovenian(number)
        case "mk", "is": return number % 10 == 1 && number % 100 != 11 ? .one : .other
        case "lt": return lithuanian(number)
        case "lv", "prg": return latvian(number)
        case "ro", "mo": return number == 1 ? .one : number == 0 || (1...19).contains(number % 100) ? .few : .other
        case "ar", "ars": return arabic(number)
        case "he", "iw", "iu", "naq", "sat", "se", "sma", "smi", "smj", "smn", "sms":
            return number == 1 ? .one : number == 2 ? .two : .other
        case "mt": return maltese(number)
        case "ga": return irish(number)
        case "gd": return scottish(number)
        case "cy": return welsh(number)
        case "br": return breton(number)
        case "fil", "tl", "ceb": return (1...3).contains(number) || ![4, 6, 9].contains(number % 10) ? .one : .other
        case "tzm": return number <= 1 || (11...99).contains(number) ? .one : .other
        default: return number == 1 ? .one : .other
        }
    }

    /// Whole millions have their own form: un million *de* messages.
    private static func romance(_ number: UInt, oneUpTo last: UInt, from first: UInt) -> PluralCategory {
        if number >= first, number <= last { return .one }
        return number != 0 && number % 1_000_000 == 0 ? .many : .other
    }

    private static func eastSlavic(_ number: UInt) -> PluralCategory {
        switch (number % 10, number % 100) {
        case (_, 11...14): .many
        case (1, _): .one
        case (2...4, _): .few
        default: .many
        }
    }

    private static func slovenian(_ number: UInt) -> PluralCategory {
        switch number % 100 {
        case 1: .one
        case 2: .two
        case 3, 4: .few
        default: .other
        }
    }

    private static func lithuanian(_ number: UInt) -> PluralCategory {
        switch (number % 10, number % 100) {
        case (_, 11...19), (0, _): .other
        case (1, _): .one
        default: .few
        }
    }

    private static func latvian(_ number: UInt) -> PluralCategory {
        switch (number % 10, number % 100) {
        case (0, _), (_, 11...19): .zero
        case (1, _): .one
        default: .other
        }
    }

    private static func arabic(_ number: UInt) -> PluralCategory {
        switch (number, number % 100) {
        case (0, _): .zero
        case (1, _): .one
        case (2, _): .two
        case (_, 3...10): .few
        case (_, 11...99): .many
        default: .other
        }
    }

    private static func maltese(_ number: UInt) -> PluralCategory {
        switch (number, number % 100) {
        case (1, _): .one
        case (2, _): .two
        case (0, _), (_, 3...10): .few
        case (_, 11...19): .many
        default: .other
        }
    }

    private static func irish(_ number: UInt) -> PluralCategory {
        switch number {
        case 1: .one
        case 2: .two
        case 3...6: .few
        case 7...10: .many
        default: .other
        }
    }

    private static func scottish(_ number: UInt) -> PluralCategory {
        switch number {
        case 1, 11: .one
        case 2, 12: .two
        case 3...10, 13...19: .few
        default: .other
        }
    }

    private static func welsh(_ number: UInt) -> PluralCategory {
        switch number {
        case 0: .zero
        case 1: .one
        case 2: .two
        case 3: .few
        case 6: .many
        default: .other
        }
    }

    private static func breton(_ number: UInt) -> PluralCategory {
        let tens = number % 100 / 10
        let isOdd = tens == 1 || tens == 7 || tens == 9
        switch number % 10 {
        case 1 where !isOdd: return .one
        case 2 where !isOdd: return .two
        case 3, 4, 9:
            if !isOdd { return .few }
        default: break
        }
        return number != 0 && number % 1_000_000 == 0 ? .many : .other
    }
}

// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import Payload

/// A language is looked for in at most a few steps, however it is written (contract section 0).
@Suite struct LanguageStepsTests {
    @Test(arguments: [
        ("zh-Hans-CN", ["zh-hans-cn", "zh-hans", "zh-cn", "zh"]),
        ("zh_TW", ["zh-tw", "zh-hant-tw", "zh-hant", "zh"]),
        ("zh", ["zh", "zh-hans", "zh-hans-cn", "zh-cn"]),
        ("zh-HK", ["zh-hk", "zh-hant-hk", "zh-hant", "zh-hant-tw", "zh-tw", "zh"]),
        ("sr", ["sr", "sr-cyrl", "sr-cyrl-rs", "sr-rs", "sh", "sr-latn"]),
        ("sr-ME", ["sr-me", "sr-latn-me", "sr-latn", "sr", "sh"]),
        ("pt", ["pt", "pt-latn", "pt-latn-br", "pt-br"]),
        ("pt-PT", ["pt-pt", "pt-latn-pt", "pt-latn", "pt", "pt-latn-br", "pt-br"]),
        ("no", ["no", "no-latn", "no-latn-no", "no-no", "nb", "nn"]), ("xx", ["xx"]), ("xx-YY", ["xx-yy", "xx"]),
        ("", []), ("-", ["-"]),
    ])
    func theNearestComesFirst(tag: String, chain: [String]) {
        #expect(LanguageTag.chain(of: tag) == chain)
    }

    @Test(arguments: [8, 60, 240_000]) func manySubtagsMakeFewSteps(count: Int) {
        let chain = LanguageTag.chain(of: "de" + String(repeating: "-a", count: count))
        #expect(chain.count <= 8 && chain.contains("de"))
        #expect(chain.allSatisfy { $0.utf8.count <= 64 })
    }
}

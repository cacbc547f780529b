import Testing

@testable import Payload

/// A language is looked for in at most a few steps, however it is written (contract section 0).
@Suite struct LanguageStepsTests {
    @Test(arguments: [
        ("zh-Hans-CN", ["zh-hans-cn", "zh-hans", "zh"]), ("zh_TW", ["zh-tw", "zh-hant", "zh"]), ("de", ["de"]),
        ("", []),
        ("-", ["-"]), ("en--x", ["en--x", "en-", "en"]),
    ])
    func theNearestComesFirst(tag: String, chain: [String]) {
        #expect(LanguageTag.chain(of: tag) == chain)
    }

    @Test(arguments: [8, 60, 240_000]) func manySubtagsMakeFewSteps(count: Int) {
        let chain = LanguageTag.chain(of: "de" + String(repeating: "-a", count: count))
        #expect(chain.count <= 5 && chain.last == "de")
        #expect(chain.allSatisfy { $0.utf8.count <= 64 })
    }
}

/// Names of languages as they come from devices, settings and template files (BCP 47).
enum LanguageTag {
    /// Lower case, with hyphens: tags are the same whatever their case, and some systems write `zh_CN`.
    static func folded(_ tag: String) -> String {
        var bytes = Array(tag.utf8)
        for index in bytes.indices {
            switch bytes[index] {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): bytes[index] |= 0x20
            case UInt8(ascii: "_"): bytes[index] = UInt8(ascii: "-")
            default: break
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Bytes of a tag that are looked at, as many as records and configuration may name (contract section 0).
    private static let bytesMax = 64
    /// Language, script, region, variant (RFC 5646): beyond them only the whole tag is asked.
    private static let subtagsMax = 4

    /// The tags to ask, nearest first: `zh-hans-cn`, `zh-hans`, `zh`. Chinese with a place but without a script is asked
    /// for with the script of that place (CLDR, likely subtags): `zh-TW` is `zh-hant-tw`.
    static func chain(of tag: String) -> [String] {
        let name = Array(folded(tag).utf8.prefix(bytesMax))
        var ends = name.indices.filter { name[$0] == UInt8(ascii: "-") && $0 > 0 }.prefix(subtagsMax)
        if !name.isEmpty { ends.append(name.count) }
        var chain = ends.reversed().map { String(decoding: name[..<$0], as: UTF8.self) }
        let script: String?
        switch chain.first {
        case "zh-tw", "zh-hk", "zh-mo": script = "zh-hant"
        case "zh-cn", "zh-sg", "zh-my": script = "zh-hans"
        default: script = nil
        }
        if let script { chain.insert(script, at: 1) }
        return chain
    }
}

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

    /// The tags to ask, nearest first: `zh-hans-cn`, `zh-hans`, `zh`. Chinese with a place but without a script is asked
    /// for with the script of that place (CLDR, likely subtags): `zh-TW` is `zh-hant-tw`.
    static func chain(of tag: String) -> [String] {
        var name = Substring(folded(tag))
        var chain: [String] = []
        while !name.isEmpty {
            chain.append(String(name))
            guard let dash = name.lastIndex(of: "-") else { break }
            name = name[..<dash]
        }
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

// SPDX-License-Identifier: Apache-2.0
import Digits

/// Language tags (BCP 47) from devices, settings and template files.
enum LanguageTag {
    /// Lower case with hyphens, because tags ignore case and some systems write `zh_CN`.
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

    /// Bytes of a tag that are examined: the contract's limit for records and configuration (section 0).
    private static let bytesMax = 64
    /// Language, script, region, variant (RFC 5646). A tag with more subtags is looked up only whole.
    private static let subtagsMax = 4

    /// The tags to ask, nearest first: the tag and its beginnings, then what CLDR's likely subtags make of it. `zh` also asks
    /// `zh-hans` and `zh-hans-cn`, `zh-tw` asks `zh-hant` and `zh-hant-tw`, `no` asks `nb`.
    ///
    /// A text in another script comes last: `zh-tw` asks `zh` after all that is in traditional characters.
    static func chain(of tag: String) -> [String] {
        let name = Array(folded(tag).utf8.prefix(bytesMax))
        var ends = name.indices.filter { name[$0] == UInt8(ascii: "-") && $0 > 0 }.prefix(subtagsMax)
        if !name.isEmpty { ends.append(name.count) }
        var chain = ends.reversed().map { String(decoding: name[..<$0], as: UTF8.self) }
        guard let language = chain.last, let likely = LikelySubtags.of(language) else { return chain }
        let (script, region) = parts(chain[0])
        let written = script ?? region.flatMap { likely.script(in: $0) } ?? likely.script
        let isUsual = written.isSame(as: likely.script)
        if chain.count > 1 { chain.removeLast() }
        func add(_ subtags: String?...) {
            let tag = ([language] + subtags.compactMap(\.self)).joined(separator: "-")
            if subtags.allSatisfy({ $0 != nil }), !chain.containsSame(tag) { chain.append(tag) }
        }
        add(written, region)
        add(region)
        add(written)
        if isUsual { add() }
        let home = isUsual ? likely.region : likely.region(of: written)
        add(written, home)
        add(home)
        add()
        for other in likely.others where !chain.containsSame(other) { chain.append(other) }
        return chain
    }

    /// Script and region of a folded tag.
    private static func parts(_ tag: String) -> (script: String?, region: String?) {
        let subtags = tag.split(separator: "-").dropFirst()
        let script = subtags.first { $0.utf8.count == 4 && $0.utf8.allSatisfy { $0 >= UInt8(ascii: "a") } }
        let region = subtags.first { $0.utf8.count == 2 || ($0.utf8.count == 3 && $0.utf8.allSatisfy { $0 < 0x3A }) }
        return (script.map(String.init), region.map(String.init))
    }
}

// SPDX-License-Identifier: Apache-2.0
internal import Digits
internal import JSON

/// Removes private data from records, so that a recording can leave production. Tokens become replacements (the same
/// token always the same one), texts become texts of equal length, telephone numbers and URLs are overwritten.
///
/// The tables are in ``ScrubRule``. Identifiers remain unless `scrubsIDs` is set; they are then replaced consistently,
/// like tokens. Field names, times, counts and protocol words remain.
public struct Scrubber {
    /// Replaced values, repeats included.
    public private(set) var tokens = 0
    public private(set) var texts = 0
    public private(set) var ids = 0

    private let key: ScrubKey
    private let scrubsIDs: Bool
    /// Topics with a device token as the key.
    private let tokenKeyed: Set<UTF8Key>
    private let parser = JSONParser(maxBytes: RecordLine.bytesMax)

    /// A text of this many hexadecimal digits counts as a token anywhere. APNs tokens have at least 64.
    private static let tokenDigitsMin = 64
    /// Dead letters' headers, which contain no part of the record.
    private static let ownHeaders = Set(DeadLetterNote.headerNames.map { UTF8Key($0) })

    public init(key: ScrubKey, scrubsIDs: Bool = false, tokenKeyedTopics: [String] = []) {
        self.key = key
        self.scrubsIDs = scrubsIDs
        tokenKeyed = Set(tokenKeyedTopics.map { UTF8Key($0) })
    }

    /// - Returns: the scrubbed record. Its times remain.
    public mutating func scrub(_ record: RecordLine) -> RecordLine {
        var record = record
        record.value = record.value.map { scrub(value: $0) }
        let isToken = record.topic.map { tokenKeyed.contains(UTF8Key($0)) } ?? false
        record.key = record.key.map { scrub(key: $0, isToken: isToken) }
        record.headers = record.headers.map { header in
            Self.ownHeaders.contains(UTF8Key(header.name))
                ? header : RecordLine.Header(name: header.name, value: header.value.map { bytes($0) })
        }
        return record
    }

    /// A value that is not JSON counts as one text.
    public mutating func scrub(value: [UInt8]) -> [UInt8] {
        guard case .read(let tree) = parser.parse(value, { (root) throws(Never) in JSONTree(root) }) else {
            return bytes(value)
        }
        return scrub(tree, by: tree.members == nil ? .free : .part(.root)).bytes
    }

    private mutating func scrub(key bytes: [UInt8], isToken: Bool) -> [UInt8] {
        guard let text = String(validating: bytes, as: UTF8.self) else { return self.bytes(bytes) }
        return Array(string(text, by: isToken ? .token : .id).utf8)
    }

    // MARK: JSON

    /// The parser's depth limit bounds the recursion.
    private mutating func scrub(_ tree: JSONTree, by rule: ScrubRule) -> JSONTree {
        switch tree {
        case .null, .bool: return tree
        case .number(let text):
            if case .word = rule { return tree }
            return .number(ScrubText.number(text))
        case .string(let text): return .string(string(text, by: rule))
        case .array(let elements): return .array(elements.map { scrub($0, by: rule) })
        case .object(let members):
            return .object(
                members.map { member in
                    let inner: ScrubRule
                    // The contract has no object in the place of a value.
                    if case .part(let part) = rule { inner = part.rule(for: member.key) } else { inner = .free }
                    return JSONTree.Member(name(member.key), scrub(member.value, by: inner))
                })
        }
    }

    private mutating func string(_ text: String, by rule: ScrubRule) -> String {
        let utf8 = text.utf8
        if utf8.count >= Self.tokenDigitsMin, utf8.allSatisfy({ Hex.value(of: $0) != nil }) { return token(text) }
        switch rule {
        case .word: return ScrubText.isWord(text) ? text : stand(ScrubText.text(text))
        case .id:
            guard scrubsIDs, !text.isEmpty else { return text }
            ids += 1
            return key.id(utf8)
        // In `push.feedback` the token is a string; in a bind it is an object.
        case .token, .part(.token):
            return !utf8.isEmpty && utf8.allSatisfy({ Hex.value(of: $0) != nil })
                ? token(text) : stand(ScrubText.text(text))
        case .phone: return stand(ScrubText.phone(text))
        case .url: return stand(ScrubText.url(text))
        case .text, .free, .part: return stand(ScrubText.text(text))
        }
    }

    /// Names remain, unless the name itself is a token.
    private mutating func name(_ name: String) -> String {
        let isToken = name.utf8.count >= Self.tokenDigitsMin && name.utf8.allSatisfy { Hex.value(of: $0) != nil }
        return isToken ? token(name) : name
    }

    private mutating func bytes(_ bytes: [UInt8]) -> [UInt8] {
        if bytes.count >= Self.tokenDigitsMin, bytes.allSatisfy({ Hex.value(of: $0) != nil }) {
            tokens += 1
            return Array(key.token(bytes).utf8)
        }
        texts += 1
        return ScrubText.bytes(bytes)
    }

    private mutating func token(_ text: String) -> String {
        tokens += 1
        return key.token(text.utf8)
    }

    private mutating func stand(_ text: String) -> String {
        texts += 1
        return text
    }
}

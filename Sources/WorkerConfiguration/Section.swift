// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore
import YAML

/// A mapping being read: takes known keys, reports unknown ones and values of the wrong form, and continues.
///
/// Absent and null keys leave the default. Nothing is thrown, so that all problems are reported together.
struct Section {
    let path: String
    let mark: YAMLNode.Mark
    let problems: ProblemList
    private let entries: [String: YAMLNode.Entry]

    /// By path: keys of earlier versions, and the reason why they have no effect. A file with them is still usable.
    static let removed = [
        "redis": ["group_marks": "one key has the marks of a group's members, except on a cluster"]
    ]

    /// - Parameters:
    ///   - path: for example `kafka.topics`; empty for the whole file.
    ///   - keys: all allowed keys; nil for any.
    init(_ node: YAMLNode, path: String, keys: [String]?, problems: ProblemList) {
        self.path = path
        self.problems = problems
        mark = node.mark
        var entries: [String: YAMLNode.Entry] = [:]
        if case .mapping(let list) = node.value {
            for entry in list {
                if let keys, !keys.contains(entry.key) {
                    if let reason = Self.removed[path]?[entry.key] {
                        problems.warn(entry.keyMark, "\(path).\(entry.key) has no effect any more: \(reason)")
                        continue
                    }
                    problems.add(entry.keyMark, Self.unknown(entry.key, keys))
                } else {
                    entries[entry.key] = entry
                }
            }
        } else if !node.isNull {
            problems.add(node.mark, "\(path.isEmpty ? "the file" : path) must be a mapping of keys to values")
        }
        self.entries = entries
    }

    /// The value of a key; nil if absent or null.
    subscript(key: String) -> YAMLNode? {
        guard let node = entries[key]?.value, !node.isNull else { return nil }
        return node
    }

    /// All entries, by key.
    var all: [YAMLNode.Entry] {
        entries.values.sorted { ($0.keyMark.line, $0.key) < ($1.keyMark.line, $1.key) }
    }

    func name(_ key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }

    func section(_ key: String, keys: [String]?) -> Section? {
        self[key].map { Section($0, path: name(key), keys: keys, problems: problems) }
    }

    /// A section with defaults for all keys: an absent one counts as empty.
    func optionalSection(_ key: String, keys: [String]?) -> Section {
        Section(
            self[key] ?? YAMLNode(.mapping([]), mark: mark), path: name(key), keys: keys, problems: problems)
    }

    /// - Parameter mayBeEmpty: an empty text has a meaning; it is quoted then.
    func string(_ key: String, mayBeEmpty: Bool = false) -> String? {
        guard let node = self[key] else { return nil }
        guard case .scalar(let text, let isQuoted) = node.value, !text.isEmpty || (mayBeEmpty && isQuoted) else {
            problems.add(node.mark, "\(name(key)) must be text")
            return nil
        }
        guard !text.utf8.contains(0) else {
            problems.add(node.mark, "\(name(key)) holds a NUL character")
            return nil
        }
        return text
    }

    /// A text of at most `bytes` bytes.
    func string(_ key: String, atMost bytes: Int, mayBeEmpty: Bool = false) -> String? {
        guard let text = string(key, mayBeEmpty: mayBeEmpty) else { return nil }
        guard text.utf8.count <= bytes else {
            problems.add(self[key]?.mark ?? mark, "\(name(key)) is longer than \(bytes) bytes")
            return nil
        }
        return text
    }

    func requiredString(_ key: String) -> String? {
        guard self[key] != nil else {
            problems.add(mark, "\(name(key)) is missing")
            return nil
        }
        return string(key)
    }

    func int(_ key: String, in range: ClosedRange<Int>) -> Int? {
        guard let node = self[key] else { return nil }
        guard case .scalar(let text, quoted: false) = node.value, let number = Int(text), range.contains(number) else {
            let span =
                range.upperBound == .max
                ? "from \(range.lowerBound)" : "from \(range.lowerBound) to \(range.upperBound)"
            problems.add(node.mark, "\(name(key)) must be a whole number \(span)")
            return nil
        }
        return number
    }

    /// A number of seconds, fractions allowed.
    ///
    /// - Parameter zeroIsOff: 0 is also allowed.
    func seconds(_ key: String, in range: ClosedRange<Double>, zeroIsOff: Bool = false) -> Double? {
        guard let node = self[key] else { return nil }
        if let number = Self.number(node), range.contains(number) || (zeroIsOff && number == 0) { return number }
        let zero = zeroIsOff ? "0 or " : ""
        problems.add(node.mark, "\(name(key)) must be \(zero)a number of seconds \(Self.text(range))")
        return nil
    }

    /// A number with or without a fraction.
    func number(_ key: String, in range: ClosedRange<Double>) -> Double? {
        guard let node = self[key] else { return nil }
        if let number = Self.number(node), range.contains(number) { return number }
        problems.add(node.mark, "\(name(key)) must be a number \(Self.text(range))")
        return nil
    }

    private static func number(_ node: YAMLNode) -> Double? {
        guard case .scalar(let text, quoted: false) = node.value else { return nil }
        return Double(text)
    }

    /// `from 0.1 to 300`
    private static func text(_ range: ClosedRange<Double>) -> String {
        func plain(_ number: Double) -> String {
            Int(exactly: number).map { String($0) } ?? number.description
        }
        return "from \(plain(range.lowerBound)) to \(plain(range.upperBound))"
    }

    func bool(_ key: String) -> Bool? {
        guard let node = self[key] else { return nil }
        if case .scalar(let text, quoted: false) = node.value, text.utf8.count <= 5 {
            if text == "true" { return true }
            if text == "false" { return false }
        }
        problems.add(node.mark, "\(name(key)) must be true or false")
        return nil
    }

    func word<Word: RawRepresentable<String>>(_ key: String, _ words: [String], _ type: Word.Type) -> Word? {
        guard let node = self[key] else { return nil }
        if case .scalar(let text, _) = node.value, text.utf8.count <= InputLimit.name,
            let word = Word(rawValue: text)
        {
            return word
        }
        problems.add(node.mark, "\(name(key)) must be one of \(words.joined(separator: ", "))")
        return nil
    }

    /// One text or a list of texts.
    func strings(_ key: String) -> [(text: String, mark: YAMLNode.Mark)] {
        guard let node = self[key] else { return [] }
        let nodes: [YAMLNode]
        if case .sequence(let items) = node.value { nodes = items } else { nodes = [node] }
        return nodes.compactMap { node in
            if case .scalar(let text, _) = node.value, !text.isEmpty { return (text, node.mark) }
            problems.add(node.mark, "\(name(key)) must hold texts only")
            return nil
        }
    }

    static func unknown(_ key: String, _ keys: [String]) -> String {
        guard let near = NearestWord.to(key, among: keys) else {
            return "unknown key \"\(key)\"; known are \(keys.joined(separator: ", "))"
        }
        return "unknown key \"\(key)\" (did you mean \"\(near)\"?)"
    }
}

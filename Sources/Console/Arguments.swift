// SPDX-License-Identifier: Apache-2.0
internal import Digits

/// The options of one call, checked against the command's specification.
public struct Arguments {
    private var values: [String: [String]] = [:]
    /// One of the specification's verbs, if it has any.
    public private(set) var verb: String?

    /// Wrong usage: exit code 64, with the usage line and the cure.
    public struct UsageError: Error {
        public var message: String

        public init(message: String) {
            self.message = message
        }
    }

    /// Reads `--name value`, `--name=value` and `--switch`. Refuses everything else by name.
    public init(_ words: [String], spec: CommandSpec) throws(UsageError) {
        var rest = words[...]
        if !spec.verbs.isEmpty {
            guard let word = rest.popFirst(), spec.verbs.contains(word) else {
                let near = words.first.flatMap { NearestWord.to($0, among: spec.verbs) }
                throw UsageError(
                    message: "one of \(spec.verbs.joined(separator: ", ")) is wanted"
                        + (near.map { " (did you mean \($0)?)" } ?? ""))
            }
            verb = word
        }
        while let word = rest.popFirst() {
            guard word.hasPrefix("--") else { throw UsageError(message: "unexpected argument \"\(word)\"") }
            let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts[0])
            guard let option = spec.options.first(where: { $0.name == name }) else {
                let near = NearestWord.to(name, among: spec.options.map(\.name) + ["help"])
                throw UsageError(message: "unknown option --\(name)" + (near.map { " (did you mean --\($0)?)" } ?? ""))
            }
            if values[name] != nil, !option.isRepeatable { throw UsageError(message: "--\(name) is given twice") }
            if option.value == nil {
                guard parts.count == 1 else { throw UsageError(message: "--\(name) takes no value") }
                values[name] = [""]
            } else if parts.count == 2 {
                values[name, default: []].append(String(parts[1]))
            } else if let value = rest.popFirst() {
                values[name, default: []].append(value)
            } else {
                throw UsageError(message: "--\(name) needs \(option.value ?? "a value")")
            }
        }
        for option in spec.options where option.isRequired && values[option.name] == nil {
            throw UsageError(message: "--\(option.name) is required")
        }
    }

    /// The given options with their values, in the order of their names, such as `rate 500`.
    public func given(without: Set<String> = []) -> [String] {
        values.sorted { $0.key < $1.key }.filter { !without.contains($0.key) }.map { name, values in
            ([name] + values.filter { !$0.isEmpty }).joined(separator: " ")
        }
    }

    public func has(_ name: String) -> Bool { values[name] != nil }

    public func string(_ name: String) -> String? { values[name]?.last }

    public func strings(_ name: String) -> [String] { values[name] ?? [] }

    /// An integer within `range`, or `fallback` if the option is absent.
    public func int(_ name: String, default fallback: Int, in range: ClosedRange<Int> = 0...Int.max) throws(UsageError)
        -> Int
    {
        guard let text = string(name) else { return fallback }
        guard let number = Int(text), range.contains(number) else {
            let bounds =
                range.upperBound == .max ? "\(range.lowerBound) or more" : "\(range.lowerBound)-\(range.upperBound)"
            throw UsageError(message: "--\(name) needs a whole number, \(bounds); \"\(text)\" is not one")
        }
        return number
    }
}

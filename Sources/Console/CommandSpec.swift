// SPDX-License-Identifier: Apache-2.0
/// A command's options and texts. Its help and the check of arguments derive from them.
public struct CommandSpec: Sendable {
    public var name: String
    public var summary: String
    /// Paragraphs for `--help`, below the usage line.
    public var details: String = ""
    /// Words of which one must follow the command's name; empty if none may follow.
    public var verbs: [String] = []
    public var options: [Option]

    public init(name: String, summary: String, details: String = "", verbs: [String] = [], options: [Option]) {
        self.name = name
        self.summary = summary
        self.details = details
        self.verbs = verbs
        self.options = options
    }

    public struct Option: Sendable {
        public var name: String
        /// The value's placeholder in the help; nil for a switch.
        public var value: String?
        public var help: String
        public var isRequired = false
        public var isRepeatable = false

        public static func flag(_ name: String, _ help: String) -> Option {
            Option(name: name, value: nil, help: help)
        }

        public static func value(
            _ name: String, _ value: String, _ help: String, required: Bool = false, repeatable: Bool = false
        ) -> Option {
            Option(name: name, value: value, help: help, isRequired: required, isRepeatable: repeatable)
        }
    }

    public static let config = Option.value("config", "FILE", "the configuration file", required: true)
    public static let json = Option.flag("json", "machine-readable output: JSON objects, one a line")

    public var usage: String {
        var text = "usage: carillon \(name)"
        if !verbs.isEmpty { text += " " + verbs.joined(separator: "|") }
        for option in options {
            var part = "--\(option.name)"
            if let value = option.value { part += " \(value)" }
            if !option.isRequired { part = "[\(part)]" }
            if option.isRepeatable { part += "…" }
            text += " " + part
        }
        return text
    }

    public var help: String {
        let shown = options + [.flag("help", "this text")]
        let heads = shown.map { "--\($0.name)" + ($0.value.map { " \($0)" } ?? "") }
        let width = (heads.map(\.count).max() ?? 0) + 2
        var text = "\(summary)\n\n\(usage)\n"
        if !details.isEmpty { text += "\n\(details)\n" }
        text += "\noptions:\n"
        for (head, option) in zip(heads, shown) {
            text += "  " + head + String(repeating: " ", count: width - head.count) + option.help + "\n"
        }
        return text
    }
}

/// What a command says of itself: its options, and from them its help and the check of what was typed.
struct CommandSpec {
    var name: String
    var summary: String
    /// Paragraphs for `--help`, below the usage line.
    var details: String = ""
    /// Words of which one must follow the command's name; empty: none may.
    var verbs: [String] = []
    var options: [Option]

    struct Option {
        var name: String
        /// What stands for the value in the help; nil: a switch.
        var value: String?
        var help: String
        var isRequired = false
        var isRepeatable = false

        static func flag(_ name: String, _ help: String) -> Option {
            Option(name: name, value: nil, help: help)
        }

        static func value(
            _ name: String, _ value: String, _ help: String, required: Bool = false, repeatable: Bool = false
        ) -> Option {
            Option(name: name, value: value, help: help, isRequired: required, isRepeatable: repeatable)
        }
    }

    static let config = Option.value("config", "FILE", "the configuration file", required: true)
    static let json = Option.flag("json", "machine-readable output: JSON objects, one a line")

    var usage: String {
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

    var help: String {
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

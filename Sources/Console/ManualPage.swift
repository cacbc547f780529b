// SPDX-License-Identifier: Apache-2.0
/// Manual pages (man(7)), generated from the commands' specifications.
public enum ManualPage {
    /// `carillon.1`: all commands in order.
    public static func overview(_ specs: [CommandSpec], version: String) -> String {
        var text = head("CARILLON", version)
        text += ".SH NAME\ncarillon \\- pushes an IM platform's messages to Apple devices\n"
        text += ".SH SYNOPSIS\n.B carillon\n.I command\n.RI [ options ]\n.br\n"
        text += ".B carillon \\-\\-version\n[\\fB\\-\\-json\\fR]\n"
        text += ".SH COMMANDS\n"
        for spec in specs { text += ".TP\n.BR carillon\\-\(escaped(spec.name)) (1)\n\(escapedLine(spec.summary))\n" }
        text += ".SH EXIT STATUS\n"
        for (code, meaning) in [
            (ExitCode.done, "done, or drained"), (.failed, "the command found a problem"), (.usage, "bad usage"),
            (.fatalKafka, "the Kafka client died for good"),
            (.tryAgain, "not drained in time, or a port is taken: try again"), (.configuration, "bad configuration"),
        ] {
            text += ".TP\n\(code.rawValue)\n\(escapedLine(meaning))\n"
        }
        return text
    }

    /// `carillon-NAME.1`.
    public static func page(_ spec: CommandSpec, version: String) -> String {
        let name = "carillon-\(spec.name)"
        var text = head(name.uppercased(), version)
        text += ".SH NAME\n\(escaped(name)) \\- \(escaped(spec.summary))\n"
        text += ".SH SYNOPSIS\n.B carillon \(escaped(spec.name))\n"
        if !spec.verbs.isEmpty { text += spec.verbs.map { "\\fB\(escaped($0))\\fR" }.joined(separator: "|") + "\n" }
        for option in spec.options {
            let shown = option.isRequired ? self.option(option) : "[\(self.option(option))]"
            text += shown + (option.isRepeatable ? "...\n" : "\n")
        }
        let paragraphs = Self.paragraphs(spec.details)
        let codes = paragraphs.filter { $0.first?.hasPrefix(exitMark) == true }
        let others = paragraphs.filter { $0.first?.hasPrefix(exitMark) != true }
        if !others.isEmpty {
            text += ".SH DESCRIPTION\n" + others.map(paragraph).joined(separator: ".PP\n")
        }
        text += ".SH OPTIONS\n"
        for option in spec.options + [.flag("help", "prints the help text")] {
            text += ".TP\n\(self.option(option))\n\(escapedLine(option.help))\n"
        }
        for lines in codes {
            let words = lines.joined(separator: " ").dropFirst(exitMark.count)
            text += ".SH EXIT STATUS\n\(escapedLine(String(words.drop { $0 == " " })))\n"
        }
        return text + ".SH SEE ALSO\n.BR carillon (1)\n"
    }

    private static let exitMark = "exit codes:"

    private static func head(_ title: String, _ version: String) -> String {
        // No date, so that the same table gives the same page.
        ".TH \"\(escaped(title))\" 1 \"\" \"carillon \(escaped(version))\" \"Carillon\"\n"
            // Ragged and without hyphenation, because readers copy options from here.
            + ".ad l\n.nh\n"
    }

    private static func option(_ option: CommandSpec.Option) -> String {
        "\\fB\\-\\-\(escaped(option.name))\\fR" + (option.value.map { " \\fI\(escaped($0))\\fR" } ?? "")
    }

    /// Groups of lines between blank lines.
    private static func paragraphs(_ text: String) -> [[String]] {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        return lines.split(separator: "").map(Array.init)
    }

    /// Indented text keeps its form.
    private static func paragraph(_ lines: [String]) -> String {
        let text = lines.map { escapedLine($0) + "\n" }.joined()
        return lines.contains { $0.hasPrefix(" ") } ? ".nf\n\(text).fi\n" : text
    }

    /// A line of text. A dot or an apostrophe at its beginning would be a request.
    private static func escapedLine(_ text: String) -> String {
        let escaped = escaped(text)
        return escaped.hasPrefix(".") || escaped.hasPrefix("'") ? "\\&" + escaped : escaped
    }

    /// A plain `-` would become a hyphen, which cannot be copied as part of an option.
    private static func escaped(_ text: String) -> String {
        var out = ""
        for character in text {
            switch character {
            case "\\": out += "\\e"
            case "-": out += "\\-"
            case "\"": out += "\\(dq"
            case "^": out += "\\(ha"
            case "~": out += "\\(ti"
            case "`": out += "\\(ga"
            default: out.append(character)
            }
        }
        return out
    }
}

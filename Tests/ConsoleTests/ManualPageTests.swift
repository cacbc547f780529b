// SPDX-License-Identifier: Apache-2.0
import Console
import Testing

/// A page says what the command says, whatever roff would make of its characters.
@Suite struct ManualPageTests {
    private static let spec = CommandSpec(
        name: "dig-out", summary: "finds \\ and `x`",
        details: """
            First line.
            .not a request, 'nor this
            'nor this

            list   one
                   two

            exit codes: 0 done,
            1 not-done
            """,
        verbs: ["now", "later"],
        options: [
            .value("place", "X:Y", "where", required: true), .value("tag", "T", ".what", repeatable: true),
            .flag("deep", "deeper"),
        ])

    @Test func roffControlCharactersAreEscaped() {
        let page = ManualPage.page(Self.spec, version: "1.2.3")
        #expect(page.contains("dig\\-out \\- finds \\e and \\(gax\\(ga"))
        #expect(page.contains("First line.\n\\&.not a request, 'nor this\n\\&'nor this\n"))
        #expect(page.contains("\n\\&.what\n") && page.contains("carillon 1.2.3"))
        // Requests of its own stand at the beginnings of lines only, and each is known.
        let known = [".TH", ".SH", ".B", ".PP", ".TP", ".nf", ".fi", ".BR", ".ad", ".nh"]
        for line in page.split(separator: "\n") where line.hasPrefix(".") || line.hasPrefix("'") {
            #expect(known.contains { line == $0 || line.hasPrefix($0 + " ") }, "\(line)")
        }
    }

    @Test func aListKeepsItsFormAndExitCodesAreASection() {
        let page = ManualPage.page(Self.spec, version: "1")
        #expect(page.contains(".nf\nlist   one\n       two\n.fi\n"))
        #expect(page.contains(".SH EXIT STATUS\n0 done, 1 not\\-done\n"))
        #expect(
            page.contains(
                "\\fBnow\\fR|\\fBlater\\fR\n\\fB\\-\\-place\\fR \\fIX:Y\\fR\n[\\fB\\-\\-tag\\fR \\fIT\\fR]...\n"))
    }

    @Test func quotesAndBracketsOfHelpDoNotEndZshsWords() {
        var spec = Self.spec
        spec.options = [.value("at", "A:B", "it's [here]: \\")]
        let script = CompletionScript.zsh([spec])
        #expect(script.contains(#"'--at=[it'\''s \[here\]: \\]:A\:B: '"#))
    }
}

// SPDX-License-Identifier: Apache-2.0
import Console
import Telemetry
import Testing

/// The program's own words stand as they are, and what is put between them is escaped.
@Suite struct TerminalTextTests {
    private static let hostile = "a\u{1b}[31m\u{7}\r\n\t\u{9b}\u{7f}\u{202e}\u{2066}\u{feff}é汉👩‍👩‍👧"
    private static let shown =
        #"a\u001b[31m\u0007\u000d\n\t\u009b\u007f\u202e\u2066\ufeffé汉👩‍👩‍👧"#

    @Test func aValueIsEscapedAndAWordIsNot() {
        let text: TerminalText = "line\n\(Self.hostile)\n"
        #expect(text.text == "line\n\(Self.shown)\n")
    }

    @Test func escapedTextIsNotEscapedAgain() {
        let inner: TerminalText = "<\(Self.hostile)>"
        let parts = [inner, "two"].joined(separator: ", ")
        #expect(("\(inner)\n" as TerminalText).text == "<\(Self.shown)>\n" && parts.text == "<\(Self.shown)>, two")
    }

    @Test func anythingThatIsDescribedIsEscaped() {
        struct Fault: CustomStringConvertible { var description: String { "\u{1b}c" } }
        let optional: String? = "\u{1b}c"
        #expect(("\(Fault()) \(optional ?? "")" as TerminalText).text == #"\u001bc \u001bc"#)
    }

    @Test func linesKeepTheirEndsOnly() {
        #expect(TerminalText(lines: "a\nb\u{1b}[2J\r\n").text == "a\nb\\u001b[2J\\u000d\n")
    }

    @Test func columnsCountWhatIsShown() {
        #expect(Style.padded("\("\u{1b}")", to: 8).text == #"\u001b  "#)
    }

    @Test func jsonForATerminalHasNoCharacterThatControlsIt() {
        let json = "{\"a\":\"x\\u001b\u{7f}\u{9b}\u{202e}\u{61c}é\"}\n"
        #expect(Unprintable.escapedJSON(json) == "{\"a\":\"x\\u001b\\u007f\\u009b\\u202e\\u061cé\"}\n")
    }
}

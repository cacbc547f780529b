// SPDX-License-Identifier: Apache-2.0
import Digits

/// The text of a revoke without a text of its own (contract section 5, Text of a revoke).
enum RevokeText {
    /// The language that is asked last.
    static let lastTag = "en"

    /// An app's own text. A text that names the sender gives way to the built-in one if the sender has no name.
    static func filled(_ text: String, _ tag: String, nick: String?) -> String {
        var isNamed = false
        let filled = FilledText.fill(text) { name in
            guard name == "nick" else { return nil }
            isNamed = true
            return nick ?? ""
        }
        guard isNamed, nick == nil else { return filled }
        return builtIn(tag, nick: nil) ?? String(filled.drop { $0.isWhitespace })
    }

    /// The built-in text of a language, whatever its script and place; nil: it has none.
    static func builtIn(_ tag: String, nick: String?) -> String? {
        let tag = String(LanguageTag.folded(tag).prefix { $0 != "-" })
        if tag.isSame(as: "zh") { return nick.map { $0 + "撤回了一条消息" } ?? "对方撤回了一条消息" }
        return tag.isSame(as: lastTag) ? english(nick: nick) : nil
    }

    static func english(nick: String?) -> String {
        nick.map { $0 + " recalled a message" } ?? "A message was recalled"
    }
}

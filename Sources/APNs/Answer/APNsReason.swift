// SPDX-License-Identifier: Apache-2.0
/// The `reason` of an answer, in Apple's own words.
///
/// Not an enum, because Apple adds reasons without notice. A reason in the rule table needs no allocation. An unknown
/// one is kept, cut to 64 printable characters.
public struct APNsReason: Sendable, Hashable {
    public let text: String
    /// False for reasons that the rule table lacks. They make no metric label.
    public let isKnown: Bool

    init(known text: String) {
        self.text = text
        self.isKnown = true
    }

    /// Finds a known reason by its bytes, else keeps a cleaned copy.
    init(bytes: some Collection<UInt8>) {
        if let rule = AnswerTable.rules.first(where: { $0.reason.utf8.elementsEqual(bytes) }) {
            self.init(known: rule.reason)
            return
        }
        let clean = bytes.prefix(64).map { $0 >= 0x21 && $0 < 0x7F ? $0 : UInt8(ascii: "?") }
        self.init(text: String(decoding: clean, as: UTF8.self), isKnown: false)
    }

    private init(text: String, isKnown: Bool) {
        self.text = text
        self.isKnown = isKnown
    }

    /// The body contained none.
    public static var absent: APNsReason { APNsReason(known: "") }

    /// For a metric label: one of a closed set.
    public var label: String { isKnown ? (text.isEmpty ? "none" : text) : "other" }
}

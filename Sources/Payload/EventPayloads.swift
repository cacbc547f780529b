// SPDX-License-Identifier: Apache-2.0
public import PushCore

/// The payloads of one event. Each variant is encoded at most once, however many receivers share it.
public struct EventPayloads: Sendable {
    private let rules: PayloadRules
    /// The first variant. Most events need no other.
    private var first: Entry?
    private var others: [Entry] = []

    private struct Entry: Sendable {
        let variant: PayloadVariant
        let template: PayloadTemplate?
    }

    /// Maximum number of kept variants; further ones are encoded each time. A linear search is cheap for so few.
    private static let entriesMax = 128

    public init(_ message: borrowing Message, policy: borrowing AppPolicy) {
        rules = PayloadRules(message, policy: policy)
    }

    /// - Parameter rules: of the message's app.
    public init(_ message: borrowing Message, rules: PayloadRules) {
        self.rules = rules.of(message)
    }

    /// The variant's payload; nil if too large (`payload_too_large`).
    public mutating func template(
        _ variant: PayloadVariant, of message: borrowing Message, templates: Templates
    ) -> PayloadTemplate? {
        if let known = find(variant) { return known }
        guard first != nil else {
            // Used as it is, because most events have no second variant.
            let template = encode(variant, message, templates)
            first = Entry(variant: variant, template: template)
            return template
        }
        // Receivers choose languages and keys freely. Variants with the same text are encoded once.
        let plain = rules.plain(variant.plain(templates, isRevoke: message.kind == .revoke))
        let template: PayloadTemplate?
        if let known = find(plain) {
            template = known
        } else {
            template = encode(plain, message, templates)
            keep(plain, template, upTo: Self.entriesMax)
        }
        if plain != variant { keep(variant, template, upTo: Self.entriesMax / 2) }
        return template
    }

    private func encode(
        _ variant: PayloadVariant, _ message: borrowing Message, _ templates: Templates
    ) -> PayloadTemplate? {
        PayloadTemplate(message, variant: variant, rules: rules, templates: templates)
    }

    /// Different spellings must not use up the places of encoded variants.
    private mutating func keep(_ variant: PayloadVariant, _ template: PayloadTemplate?, upTo count: Int) {
        if others.count < count - 1 { others.append(Entry(variant: variant, template: template)) }
    }

    private func find(_ variant: PayloadVariant) -> PayloadTemplate?? {
        if let first, first.variant == variant { return .some(first.template) }
        for entry in others where entry.variant == variant { return .some(entry.template) }
        return nil
    }
}

public import PushCore

/// The payloads of one event: each variant is encoded at most once, however many receivers share it.
public struct EventPayloads: Sendable {
    private let profile: PayloadProfile
    private let showsBadge: Bool
    private let communication: Bool
    /// The first variant, which is all that most events need.
    private var first: Entry?
    private var others: [Entry] = []

    private struct Entry: Sendable {
        let variant: PayloadVariant
        let template: PayloadTemplate?
    }

    /// Variants kept; more are encoded each time. They are searched one by one, which is cheap for so few.
    private static let entriesMax = 128

    public init(_ message: borrowing Message, policy: borrowing AppPolicy) {
        profile = message.push.profile ?? policy.profile
        showsBadge = policy.badge == .server
        communication = policy.communication
    }

    /// The variant's payload; nil: too large (`payload_too_large`).
    public mutating func template(
        _ variant: PayloadVariant, of message: borrowing Message, templates: Templates
    ) -> PayloadTemplate? {
        if let known = find(variant) { return known }
        guard first != nil else {
            // Taken as it is: most events have no second.
            let template = encode(variant, message, templates)
            first = Entry(variant: variant, template: template)
            return template
        }
        // Receivers name languages and keys as they like; what reads the same is encoded once.
        var plain = variant.plain(templates)
        if profile != .wps { plain.lowersBadge = false }
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
        PayloadTemplate(
            message, variant: variant, profile: profile, templates: templates, showsBadge: showsBadge,
            communication: communication)
    }

    /// Spellings may not take the place of what is encoded.
    private mutating func keep(_ variant: PayloadVariant, _ template: PayloadTemplate?, upTo count: Int) {
        if others.count < count - 1 { others.append(Entry(variant: variant, template: template)) }
    }

    private func find(_ variant: PayloadVariant) -> PayloadTemplate?? {
        if let first, first.variant == variant { return .some(first.template) }
        for entry in others where entry.variant == variant { return .some(entry.template) }
        return nil
    }
}

public import PushCore

/// The payloads of one event: each variant is encoded at most once, however many receivers share it.
public struct EventPayloads: Sendable {
    private let profile: PayloadProfile
    private var entries: [(variant: PayloadVariant, template: PayloadTemplate?)] = []

    /// Variants kept; more are encoded each time. They are searched one by one, which is cheap for so few.
    private static let entriesMax = 32

    public init(_ message: borrowing Message, policy: borrowing AppPolicy) {
        profile = message.push.profile ?? policy.profile
    }

    /// The variant's payload; nil: too large (`payload_too_large`).
    public mutating func template(
        _ variant: PayloadVariant, of message: borrowing Message, templates: Templates
    ) -> PayloadTemplate? {
        for entry in entries where entry.variant == variant { return entry.template }
        let template = PayloadTemplate(message, variant: variant, profile: profile, templates: templates)
        if entries.count < Self.entriesMax { entries.append((variant, template)) }
        return template
    }
}

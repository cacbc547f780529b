// SPDX-License-Identifier: Apache-2.0
public import PushCore

/// Title and body of the alert as a person reads them, without a payload, for the SMS that replaces it.
///
/// A user with hidden details gets the same generic text as on the lock screen, because an SMS appears there too.
public struct ShownText: Sendable, Equatable {
    /// ≤ 100 characters.
    public var title: String?
    /// ≤ 500 characters; nil if only the device can build it (`loc-key`), and for a silent push.
    public var body: String?

    private static let titleCharacters = 100
    private static let bodyCharacters = 500

    public init(
        _ message: borrowing Message, variant: PayloadVariant, rules: PayloadRules, templates: Templates
    ) {
        if message.push.silent { return }
        let lifted = LiftedKeys(message, rules.profile)
        let text = AlertText(
            message, variant: variant, title: lifted.title, rules: rules, templates: templates)
        var title = text.title ?? text.ownTitle
        var body: String? = text.name + text.body
        if !variant.isHidden, variant.mergedCount <= 1, let alert = lifted.aps?["alert"],
            text.title != nil || !BlankText.showsNothing(alert: alert)
        {
            Self.replace(&title, &body, by: alert, isForcedText: text.isForcedText)
        }
        self.title = title.map { TextCut.characters($0, limit: Self.titleCharacters) }
        self.body = body.map { TextCut.characters($0, limit: Self.bodyCharacters) }
    }

    /// The sender's own alert is used as given. A forced text replaces it (`APSObject`).
    private static func replace(
        _ title: inout String?, _ body: inout String?, by alert: JSONValue, isForcedText: Bool
    ) {
        if case .string(let given) = alert {
            if isForcedText { return }
            title = nil
            body = PlainText.body(given)
            return
        }
        if let given = alert["title"]?.string {
            title = PlainText.body(given)
        } else if alert["title-loc-key"]?.string != nil {
            title = nil
        }
        if isForcedText { return }
        if let given = alert["body"]?.string {
            body = PlainText.body(given)
        } else if alert["loc-key"]?.string != nil {
            body = nil
        }
    }
}

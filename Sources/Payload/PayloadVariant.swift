// SPDX-License-Identifier: Apache-2.0
public import PushCore

/// The receiver's properties that change the bytes of a payload, except badge, pid and receiver id.
///
/// Receivers of the same variant share one `PayloadTemplate`.
public struct PayloadVariant: Sendable, Hashable {
    public var language: String
    /// The receiver hides details, and the message does not override that.
    public var isHidden: Bool
    /// The token's content key; nil unless details are hidden, because nothing else uses it.
    public var contentKey: String?
    public var isForced: Bool
    /// Number of messages that the push merges; 0 for only its own.
    public var mergedCount = 0
    /// A revoke that lowered this receiver's badge (`ClaimReply.lowered`).
    public var lowersBadge = false
    /// The receiving device got the alert of a message that this revoke takes off the number; looked at only with `badge: none`.
    public var undoesAlert = false
    /// The message is counted for this receiver, now or at an earlier try; looked at only with `badge: none`.
    public var addsToBadge = false
    /// The alert of a digest; looked at only with `badge: sender`.
    public var isDigest = false

    public init(language: String, isHidden: Bool = false, contentKey: String? = nil, isForced: Bool = false) {
        self.language = language
        self.isHidden = isHidden
        self.contentKey = isHidden ? contentKey : nil
        self.isForced = isForced
    }

    /// The equal variant in normal form: a language that has texts, and no key without a text.
    ///
    /// - Parameter isRevoke: the built-in texts of a revoke have languages that the templates may lack.
    func plain(_ templates: Templates, isRevoke: Bool) -> PayloadVariant {
        var plain = self
        plain.language = templates.nearest(language, isRevoke: isRevoke)
        if let contentKey, isRevoke || !templates.knows(contentKey: contentKey, language: language) {
            plain.contentKey = nil
        }
        return plain
    }

    /// The variant for a user without a device. Language and content key come from the token bound last, else the
    /// user's own language is used.
    public init(
        _ message: borrowing Message, tokens: [BoundToken], settings: borrowing UserSettings, isForced: Bool,
        defaultLanguage: String
    ) {
        let newest = tokens.filter { $0.record.type == .alert }.max { $0.record.boundMs < $1.record.boundMs }
        self.init(
            language: newest?.record.language ?? settings.language ?? defaultLanguage,
            isHidden: !settings.showDetail && !message.push.forceDetail,
            contentKey: newest?.record.contentKey, isForced: isForced)
    }

    /// The variant for one token. The language is the device's, else the user's, else the app's.
    public init(
        _ message: borrowing Message, token: borrowing TokenRecord, settings: borrowing UserSettings, isForced: Bool,
        defaultLanguage: String
    ) {
        self.init(
            language: token.language ?? settings.language ?? defaultLanguage,
            isHidden: !settings.showDetail && !message.push.forceDetail,
            contentKey: token.contentKey, isForced: isForced)
    }
}

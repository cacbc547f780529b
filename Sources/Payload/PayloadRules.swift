// SPDX-License-Identifier: Apache-2.0
public import PushCore

/// The rules that all payloads of one event follow: its profile, and those of its app.
public struct PayloadRules: Sendable {
    public var profile: PayloadProfile
    /// Who counts the number on the icon.
    public var badge = AppPolicy.BadgeCounter.server
    public var prefix = PrefixFormat.standard
    public var title = AppPolicy.AlertTitle.absent
    /// An alert carries `im`, for communication notifications.
    public var communication = false

    public init(profile: PayloadProfile) {
        self.profile = profile
    }

    /// The rules of an app for messages that name no profile.
    public init(_ policy: borrowing AppPolicy) {
        profile = policy.profile
        badge = policy.badge
        prefix = policy.prefix
        title = policy.title
        communication = policy.communication
    }

    public init(_ message: borrowing Message, policy: borrowing AppPolicy) {
        self = PayloadRules(policy).of(message)
    }

    /// The same for one message.
    public func of(_ message: borrowing Message) -> PayloadRules {
        var rules = self
        if let profile = message.push.profile { rules.profile = profile }
        return rules
    }

    /// Whether the alert has `mutable-content`, which lets the app's service extension see it. With `badge: none` the extension
    /// adds 1 for each alert that it sees, so it sees only those that count, and the revokes that take such a one off.
    func isMutable(_ message: borrowing Message, _ variant: PayloadVariant) -> Bool {
        message.push.isMutable && (badge != .client || variant.addsToBadge || variant.undoesAlert)
    }

    /// The variant without the facts that change nothing under these rules.
    func plain(_ variant: PayloadVariant) -> PayloadVariant {
        var plain = variant
        if profile != .wps { plain.lowersBadge = false }
        if badge != .client { (plain.addsToBadge, plain.undoesAlert) = (false, false) }
        if badge != .sender { plain.isDigest = false }
        return plain
    }
}

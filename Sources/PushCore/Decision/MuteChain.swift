// SPDX-License-Identifier: Apache-2.0
/// The chain of mute levels: the user's for the conversation, the group's for the member, the user's for the type, the app's for
/// the type.
///
/// The first link that is set decides. `unset` and an ended mute pass to the next link (contract section 5, step 8).
public struct MuteChain: Sendable, Equatable {
    public var level: MuteLevel
    public var link: Link
    /// The end of the user's own mute, Unix ms; nil for no end.
    var untilMs: Int64?

    /// The level and the link that set it, in words.
    static func text(_ level: MuteLevel, by link: Link) -> String {
        link == .none ? "no mute level is set" : "level \(level.rawValue) of the \(link.rawValue)"
    }

    public enum Link: String, Sendable {
        case user, group, app
        /// `settings.levels`.
        case settings = "user's settings"
        /// No link is set: everything is allowed.
        case none
    }

    public init(
        _ recipient: borrowing Recipient, in conversation: Conversation, policy: borrowing AppPolicy, now: Int64
    ) {
        if let mute = recipient.mute, mute.level != .unset, mute.isActive(at: now) {
            self.level = mute.level
            self.link = .user
            self.untilMs = mute.untilMs
        } else if conversation.type.hasMembers, let level = recipient.groupLevel, level != .unset {
            self.level = level
            self.link = .group
        } else if let level = recipient.settings.levels[conversation.type], level != .unset {
            self.level = level
            self.link = .settings
        } else if let level = policy.defaultLevels[conversation.type], level != .unset {
            self.level = level
            self.link = .app
        } else {
            self.level = .all
            self.link = .none
        }
    }

    /// - Returns: whether the level allows a message with this mention. In p2p 1, 2 and 4 act as 5.
    public func allows(_ mention: MentionClass, in type: Conversation.Kind) -> Bool {
        switch level {
        case .all, .unset: true
        case .mentions: type != .p2p && mention.isMention
        case .mentionsOfMe: type != .p2p && mention.me
        case .mentionsOfAll: type != .p2p && mention.all
        case .blocked: false
        }
    }
}

extension Recipient.Mute {
    /// Whether it has not ended.
    public func isActive(at now: Int64) -> Bool {
        guard let untilMs else { return true }
        return untilMs > now
    }
}

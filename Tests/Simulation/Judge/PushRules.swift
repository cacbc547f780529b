// SPDX-License-Identifier: Apache-2.0
/// Requests to APNs: to whom, when, how often, in which order, and what they say.
extension Judge {
    mutating func checkDuplicates() {
        for (pid, requests) in pushes.sorted(by: { $0.key < $1.key }) {
            let accepted = requests.filter { $0.status == 200 }
            guard accepted.count > 1, !mayRepeat || allowance.isMovedInPeace || allowance.isDrainedWell else {
                continue
            }
            if let event = accepted.first.flatMap(event(of:)) {
                if isParkedInBothWays(event) { continue }
                // Two processes that read its two copies at the same time may push once each.
                if event.isCopied, !allowance.hadOneProcess, accepted.count == 2 { continue }
            }
            found("no push twice", "APNs accepted \(pid) \(accepted.count) times", accepted.first?.messageID ?? "")
        }
    }

    /// The exception of docs/contract/README.md "Repeats": of an event that was written twice, one copy waits with all its recipients,
    /// and the other one recipient by recipient.
    private func isParkedInBothWays(_ event: Sent) -> Bool {
        guard event.isDoubled else { return false }
        let users = Set(event.recipients.map { event.app + $0 })
        let keys = observed.handedOn.lazy.filter { $0.eventID == event.eventID }.map(\.key)
        return keys.contains(where: users.contains) && keys.contains { !users.contains($0) }
    }

    /// Nobody gets what is for another user: a token that moved, once that is applied.
    mutating func checkTokens() {
        for push in observed.pushes {
            guard let event = event(of: push) else { continue }
            guard let owner = owner(of: push.token, appliedBefore: event.atNanos, at: push.atNanos) else { continue }
            if !event.recipients.contains(owner) {
                found("no push to another user", "\(event.messageID) went to a token of \(owner)", event.messageID)
            }
        }
    }

    /// No push leaves after its message was read or revoked, once that is applied and recorded.
    mutating func checkTaken() {
        for push in observed.pushes {
            guard let event = event(of: push), event.kind == .message,
                let uid = owner(of: push.token, appliedBefore: event.atNanos, at: push.atNanos)
            else { continue }
            let message = event.messageID
            let before = push.atNanos > slackNanos ? push.atNanos - slackNanos : 0
            if let revoke = revokes["\(push.app) \(message)"],
                (outcomes[revoke.eventID] ?? []).contains(where: { $0.uid == uid && $0.isFinal && $0.atNanos < before }
                ),
                !mayHaveLost(revoke, uid)
            {
                found("no push after its revoke", "\(message) left for \(uid) after \(revoke.messageID) ended", message)
            }
            let isRead = history(event.app, uid).states.contains { state in
                guard case .read(event.conversation, let upTo) = state.kind else { return false }
                return upTo >= event.seq && observed.applied(state) < before
            }
            if isRead { found("no push after its read", "\(message) left for \(uid) though it was read", message) }
        }
    }

    // MARK: What a push is

    mutating func checkPushes() {
        for push in observed.pushes {
            let settings = app(push.app)
            if let badge = push.badge {
                if settings.badge == .none || settings.badge == .sender && badge != event(of: push)?.push.givenBadge {
                    found("the badge's owner", "\(push.app) counts none", push.messageID ?? "")
                }
                if settings.badge == .server, settings.badgeCap > 0, badge > settings.badgeCap {
                    found("the badge", "\(badge) is over the cap", push.messageID ?? "")
                }
            }
            guard let event = event(of: push) else {
                // A digest, or a badge alone: of `clear_on_read`, or the newest again where an older one may have come after it.
                let isAllowed = push.body == nil ? settings.badge == .server : settings.sendsDigests
                if !isAllowed { found("a push belongs to an event", "…\(push.token.suffix(4)) got one without", "") }
                continue
            }
            if let why = fault(in: push, of: event, settings) {
                found("the push", "\(event.messageID) to …\(push.token.suffix(4)): \(why)", event.messageID)
            }
        }
    }

    private func fault(in push: Observed.Push, of event: Sent, _ settings: AppSettings) -> String? {
        if strategy(event) == 3, event.kind != .activity { return "the strategy is the long connection only" }
        if let type = tokens[push.token]?.first?.tokenType, type != event.tokenType {
            return "the token is of type \(type.rawValue)"
        }
        if let expireMs = event.push.expireMs {
            if clock.ms(push.atNanos) - clock.slackMs - Int64(slackNanos / 1_000_000) > expireMs {
                return "it had expired"
            }
            if !event.push.isVoip, push.expiration.map({ abs($0 * 1000 - expireMs) > 1000 }) ?? true {
                return "its expiration is \(push.expiration ?? -1)"
            }
        }
        if let uid = owner(of: push.token, appliedBefore: event.atNanos, at: push.atNanos) {
            let steps = steps(event, uid, until: push.atNanos)
            if let certain = steps.certain, certain.reason != "already_read" {
                return "the alert is denied by \(certain.reason)"
            }
            if let why = faultOver(push, event, uid) { return why }
        }
        return faultKind(push, event, settings)
    }

    private func faultKind(_ push: Observed.Push, _ event: Sent, _ settings: AppSettings) -> String? {
        if event.kind == .activity { return push.type == "liveactivity" ? nil : "its type is \(push.type)" }
        if event.push.isVoip {
            if push.type != "voip" { return "its type is \(push.type)" }
            return push.expiration == 0 ? nil : "its expiration is \(push.expiration ?? -1)"
        }
        if event.push.isSilent {
            if push.type != "background" || push.priority != 5 { return "it is no background push" }
            return push.names == ["content-available"] ? nil : "it has \(push.names.joined(separator: " "))"
        }
        if push.type != "alert" || push.body == nil { return "it is no alert" }
        if settings.badge != .none, event.push.isMutable, !push.isMutable { return "it has no mutable-content" }
        return nil
    }

    /// An update after the activity's end. With a bind after that end the activity starts again.
    private func faultOver(_ push: Observed.Push, _ event: Sent, _ uid: String) -> String? {
        guard let activity = event.activity, activity.step == .update, !allowance.refusesWrites else { return nil }
        let isOver = sent.contains { other in
            guard other.app == event.app, other.activity?.id == activity.id, other.activity?.step == .end,
                !mayHaveLost(other, uid)
            else { return false }
            return (outcomes[other.eventID] ?? []).contains {
                $0.uid == uid && $0.verdict == "accepted" && $0.atNanos < event.atNanos
            } && !isBoundAgain(activity.id, uid, event, after: other.atNanos)
        }
        return isOver ? "the activity is over" : nil
    }

    private func isBoundAgain(_ activity: String, _ uid: String, _ event: Sent, after nanos: UInt64) -> Bool {
        history(event.app, uid).states.contains { state in
            state.activity == activity && state.atNanos > nanos && state.atNanos < event.atNanos
        }
    }
}

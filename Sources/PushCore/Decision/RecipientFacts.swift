// SPDX-License-Identifier: Apache-2.0
import Digits

extension UserState.ReadMark {
    /// Whether a message is read: by its place in the conversation, else by its time; a message that cannot be compared is unread.
    public func covers(seq messageSeq: Int64?, sentMs: Int64) -> Bool {
        if let seq, let messageSeq, messageSeq <= seq { return true }
        if let ms, sentMs <= ms { return true }
        return false
    }
}

extension Message {
    /// Whether the badge may rise: a revoke counts only by its own field (contract section 2, `push.badge`).
    public var countsForBadge: Bool {
        switch kind {
        case .message: push.badge
        case .revoke: revoke?.badge == .count
        }
    }

    /// Whether the revoked message is subtracted from the badge, whatever happens to the alert.
    public var decreasesBadge: Bool { kind == .revoke && revoke?.badge == .decrease }

    /// Step 4: the sender and excluded users get nothing, and no result record.
    public func isMeant(for uid: String) -> Bool { !uid.isSame(as: from.uid) && !to.excludes(uid) }
}

extension Recipient {
    /// A phone or tablet of the user is in the foreground.
    public func hasMobileInForeground(at now: Int64) -> Bool {
        presence.indices.contains { isMobileInForeground($0, at: now) }
    }

    /// A phone or tablet in the foreground has this conversation open: the user sees the message as it arrives.
    public func hasOpenOnMobile(_ conversation: String, at now: Int64) -> Bool {
        presence.indices.contains { index in
            conversation.isSame(as: presence[index].activeConversation) && isMobileInForeground(index, at: now)
        }
    }

    private func isMobileInForeground(_ index: Int, at now: Int64) -> Bool {
        !presence[index].platform.isDesktop && presence[index].liveness(at: now) == .foreground
    }

    /// - Returns: whether the device is a desktop that a message can reach now by its connection.
    public func hasLiveDesktop(_ device: String, at now: Int64) -> Bool {
        guard let index = presenceIndex(of: device), presence[index].platform.isDesktop else { return false }
        return presence[index].liveness(at: now).isLive
    }

    func presenceIndex(of device: String) -> Int? {
        presence.indices.first { presence[$0].device.isSame(as: device) }
    }

    /// The facts that a route was chosen from, in words for `explain`; no token.
    func facts(of route: Route, at now: Int64) -> String {
        let found = presence.first { $0.device.isSame(as: route.device) }
        let state = found.map { "\($0.platform.rawValue) \($0.state.rawValue), \($0.liveness(at: now).text)" }
        let kinds = tokens.filter { $0.device.isSame(as: route.device) }.map(\.record.type.rawValue)
        return
            "\(route.device): \(state ?? "no presence"); tokens: \(kinds.isEmpty ? "none" : kinds.joined(separator: " "))"
    }
}

extension Liveness {
    fileprivate var text: String {
        switch self {
        case .dead: "not live"
        case .foreground: "live in foreground"
        case .background: "live in background"
        }
    }
}

extension Route.Way {
    /// In words for `explain`.
    var text: String {
        switch self {
        case .apns(_, let copyTo):
            copyTo.map { "apns, then a copy by connection" + ($0.mayAlert ? "" : ", which never alerts") } ?? "apns"
        case .connection(_, let alert, let ack):
            "connection, alert \(alert)" + (ack.map { ", ack within \($0) ms" } ?? "")
        case .hold(_, let ms): ms.map { "apns after \($0) ms unless read" } ?? "waits for the desktop"
        case .none(let reason): reason.rawValue
        }
    }
}

import PushCore

/// Which alerts may wait for the end of a burst's window (`coalesce.window_s`).
enum BurstRule {
    /// What bypasses: mentions, forced, voip and silent pushes, recalls; and a live device's push by strategy 4, whose message
    /// would have to wait with it. All devices of a message do the same.
    static func mayWait(_ message: borrowing Message, facts: DecisionFacts, way: Route.Way) -> Bool {
        guard facts.isDisjoint(with: [.forced, .mentionsMe, .mentionsAll]), message.kind == .message,
            !message.push.voip, !message.push.silent
        else { return false }
        if case .apns(_, .some) = way { return false }
        return true
    }

    /// What the alerts of a burst have in common: app, user and conversation.
    static func key(app: String, uid: String, conversation: String) -> PushID {
        PushID.make(app: app, uid: uid, msgID: conversation, kind: "burst", tokenHex: "")
    }
}

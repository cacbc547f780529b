// SPDX-License-Identifier: Apache-2.0
import PushCore

/// Decides which alerts may wait for the end of a burst's window (`coalesce.window_s`).
enum BurstRule {
    /// The reason why an alert goes at once. The raw values are words for people.
    enum Bypass: String {
        case revoke = "a revoke"
        case voip, silent, forced
        case mention = "a mention"
        /// Strategy 4: the live device's message would have to wait with the push.
        case liveDevice = "strategy 4 to a live device"
    }

    /// - Returns: nil if it may wait. All devices of a message behave alike, except a live one with strategy 4.
    static func bypass(_ message: borrowing Message, facts: DecisionFacts, way: Route.Way) -> Bypass? {
        if message.kind != .message { return .revoke }
        if message.push.voip { return .voip }
        if message.push.silent { return .silent }
        if facts.contains(.forced) { return .forced }
        if !facts.isDisjoint(with: [.mentionsMe, .mentionsAll]) { return .mention }
        return way.copyTo == nil ? nil : .liveDevice
    }

    /// The key of a burst: app, user and conversation.
    static func key(app: String, uid: String, conversation: String) -> PushID {
        PushID.make(app: app, uid: uid, msgID: conversation, kind: "burst", tokenHex: "")
    }
}

// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import PushCore

/// The form of an owed claim before `OwedMarks`: one line of JSON. This version only reads it.
enum EarlierOwedClaim {
    /// - Returns: nil for any other format.
    static func read(_ bytes: UnsafeRawBufferPointer) -> OwedClaim? {
        guard let tree = try? JSONTree(parsing: bytes, maxBytes: 1 << 16, maxDepth: 4), tree["v"]?.int == 1,
            let app = text(tree["app"], InputLimit.id),
            let uid = text(tree["uid"], InputLimit.user),
            let kind = text(tree["owed"], 1).flatMap(PairKind.init(rawValue:)),
            let id = text(tree["id"], InputLimit.id),
            let conversation = text(tree["conv"], InputLimit.user), let sentMs = tree["sent_ms"]?.int,
            let expireMs = tree["expire_ms"]?.int, let counted = tree["counted"]?.bool
        else { return nil }
        var revoke: Message.Revoke?
        if let target = text(tree["target"], InputLimit.id),
            let badge = text(tree["badge"], InputLimit.name).flatMap(Message.Revoke.Badge.init(rawValue:))
        {
            revoke = Message.Revoke(targetMsgID: target, badge: badge)
        }
        let subject = ClaimSubject(
            kind: kind, id: id, conversation: conversation, sentMs: sentMs, seq: tree["seq"]?.int, revoke: revoke,
            expireAtMs: expireMs, clearsOnRead: tree["clears"] != nil)
        var owed = OwedClaim(
            ClaimRequest(app: app, uid: uid, subject, counted: counted, nowMs: 0),
            eventID: text(tree["clears"], InputLimit.id) ?? "")
        owed.note = tree["note"]?.string.flatMap { Hex.bytes($0.utf8) } ?? []
        return owed
    }

    private static func text(_ value: JSONTree?, _ bytes: Int) -> String? {
        value?.string.flatMap { $0.utf8.count <= bytes ? $0 : nil }
    }
}

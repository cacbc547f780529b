// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import PushCore

/// A recipient that was pushed and recorded while Redis accepted no writes: its claim and its mark are owed.
///
/// It waits in `carillon.parked`, outside any process, so that the event's offset can be settled and a crash repeats
/// nothing. The worker that reads it claims, which counts the message, and marks.
struct OwedClaim: Sendable {
    var request: ClaimRequest
    /// The id of the claiming event, for a badge update if the event is a revoke that lowers the badge.
    var eventID = ""
    /// What the mark says of the finished recipient: counts and trace; empty if there are none.
    var note: [UInt8] = []

    /// The recipient's dedup key.
    var message: PushID {
        PushIDPrefix(app: request.app, uid: request.uid, kind: request.subject.kind, id: request.subject.id).id()
    }

    var user: UnstoredChanges.Key { UnstoredChanges.user(request.app, request.uid) }

    /// The record's JSON. The format is internal.
    func write(to writer: inout JSONWriter) {
        let subject = request.subject
        writer.beginRecord(app: request.app)
        writer.member("uid", request.uid)
        writer.member("owed", subject.kind.rawValue)
        writer.member("id", subject.id)
        writer.member("conv", subject.conversation)
        writer.member("sent_ms", subject.sentMs)
        if let seq = subject.seq { writer.member("seq", seq) }
        writer.member("expire_ms", subject.expireAtMs)
        writer.member("counted", request.counted)
        if let revoke = subject.revoke {
            writer.member("target", revoke.targetMsgID)
            writer.member("badge", revoke.badge.rawValue)
        }
        if subject.clearsOnRead { writer.member("clears", eventID) }
        if !note.isEmpty { writer.member("note", Hex.string(note)) }
        writer.endObject()
    }

    /// - Returns: nil for any other format.
    init?(_ bytes: UnsafeRawBufferPointer, nowMs: Int64) {
        guard let tree = try? JSONTree(parsing: bytes, maxBytes: 1 << 16, maxDepth: 4), tree["v"]?.int == 1,
            let app = Self.text(tree["app"], InputLimit.id),
            let uid = Self.text(tree["uid"], InputLimit.user),
            let kind = Self.text(tree["owed"], 1).flatMap(PairKind.init(rawValue:)),
            let id = Self.text(tree["id"], InputLimit.id),
            let conversation = Self.text(tree["conv"], InputLimit.user), let sentMs = tree["sent_ms"]?.int,
            let expireMs = tree["expire_ms"]?.int, let counted = tree["counted"]?.bool
        else { return nil }
        var revoke: Message.Revoke?
        if let target = Self.text(tree["target"], InputLimit.id),
            let badge = Self.text(tree["badge"], InputLimit.name).flatMap(Message.Revoke.Badge.init(rawValue:))
        {
            revoke = Message.Revoke(targetMsgID: target, badge: badge)
        }
        let subject = ClaimSubject(
            kind: kind, id: id, conversation: conversation, sentMs: sentMs, seq: tree["seq"]?.int, revoke: revoke,
            expireAtMs: expireMs, clearsOnRead: tree["clears"] != nil)
        eventID = Self.text(tree["clears"], InputLimit.id) ?? ""
        note = tree["note"]?.string.flatMap { Hex.bytes($0.utf8) } ?? []
        request = ClaimRequest(app: app, uid: uid, subject, counted: counted, nowMs: nowMs)
    }

    private static func text(_ value: JSONTree?, _ bytes: Int) -> String? {
        value?.string.flatMap { $0.utf8.count <= bytes ? $0 : nil }
    }

    init(_ request: ClaimRequest, eventID: String) {
        self.request = request
        self.eventID = eventID
    }
}

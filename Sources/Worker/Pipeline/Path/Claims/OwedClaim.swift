// SPDX-License-Identifier: Apache-2.0
import PushCore

/// A recipient that was pushed and recorded while Redis accepted no writes: its claim and its mark are owed.
///
/// The claim waits in `carillon.parked` (`OwedMarks`), outside any process. So the event's offset can be settled, and a crash
/// repeats nothing. The worker that reads it claims, which counts the message, and marks.
struct OwedClaim: Sendable {
    var request: ClaimRequest
    /// The id of the claiming event, for a badge update if the event is a revoke that lowers the badge.
    var eventID = ""
    /// What the mark says of the finished recipient: counts and trace; empty if there are none.
    var note: [UInt8] = []
    /// Parts of the stored form that a later version wrote.
    var later: [UInt8] = []

    init(_ request: ClaimRequest, eventID: String) {
        self.request = request
        self.eventID = eventID
    }

    /// The recipient's dedup key.
    var message: PushID {
        PushIDPrefix(app: request.app, uid: request.uid, kind: request.subject.kind, id: request.subject.id).id()
    }

    var user: UnstoredChanges.Key { UnstoredChanges.user(request.app, request.uid) }

    // MARK: The stored form

    /// The recipient's entry in its record.
    var entry: [UInt8] {
        let subject = request.subject
        var parts = Parts()
        parts.add(Letter.uid, request.uid)
        parts.add(Letter.kind, subject.kind.rawValue)
        parts.add(Letter.id, subject.id)
        parts.add(Letter.sent) { $0.signed(subject.sentMs) }
        if let seq = subject.seq { parts.add(Letter.seq) { $0.signed(seq) } }
        parts.add(Letter.expiry) { $0.signed(subject.expireAtMs) }
        if request.counted { parts.add(Letter.counted, "") }
        if let revoke = subject.revoke {
            parts.add(Letter.target, revoke.targetMsgID)
            parts.add(Letter.badge, revoke.badge.rawValue)
        }
        if subject.clearsOnRead { parts.add(Letter.clears, eventID) }
        if !note.isEmpty { parts.add(Letter.note) { $0.bytes += note } }
        parts.bytes += later
        return parts.entry
    }

    /// - Parameter conversation: of the event; of a Live Activity its id.
    /// - Returns: nil if the bytes are damaged.
    init?(entry: PartReader, app: String, conversation: String) {
        var (parts, later, note) = (entry, [UInt8](), [UInt8]())
        var uid: String?, id: String?, target: String?, clears: String?
        var kind: PairKind?
        var badge: Message.Revoke.Badge?
        var sentMs: Int64?, seq: Int64?, expireMs: Int64?
        var isCounted = false
        while !parts.rest.isEmpty {
            guard let part = parts.part() else { return nil }
            var number = part.reader
            switch part.letter {
            case Letter.uid: uid = part.text(atMost: InputLimit.user)
            case Letter.kind: kind = part.text(atMost: 1).flatMap(PairKind.init(rawValue:))
            case Letter.id: id = part.text(atMost: InputLimit.id)
            case Letter.sent: sentMs = number.signed()
            case Letter.seq: seq = number.signed()
            case Letter.expiry: expireMs = number.signed()
            case Letter.counted: isCounted = true
            case Letter.target: target = part.text(atMost: InputLimit.id)
            case Letter.badge:
                badge = part.text(atMost: InputLimit.name).flatMap(Message.Revoke.Badge.init(rawValue:))
            case Letter.clears: clears = part.text(atMost: InputLimit.id) ?? ""
            case Letter.note: note = Array(part.content)
            default: later += part.whole
            }
        }
        guard let uid, let kind, let id, let sentMs, let expireMs, (target == nil) == (badge == nil) else {
            return nil
        }
        var revoke: Message.Revoke?
        if let target, let badge { revoke = Message.Revoke(targetMsgID: target, badge: badge) }
        let subject = ClaimSubject(
            kind: kind, id: id, conversation: kind == .liveActivity ? "" : conversation, sentMs: sentMs, seq: seq,
            revoke: revoke, expireAtMs: expireMs, clearsOnRead: clears != nil)
        self.init(ClaimRequest(app: app, uid: uid, subject, counted: isCounted, nowMs: 0), eventID: clears ?? "")
        self.note = note
        self.later = later
    }
}

/// The letters are a stored format: never change or reuse one.
private enum Letter {
    static let uid = UInt8(ascii: "u")
    static let kind = UInt8(ascii: "k")
    /// The message's id; of a Live Activity the event's.
    static let id = UInt8(ascii: "m")
    static let sent = UInt8(ascii: "t")
    static let seq = UInt8(ascii: "q")
    static let expiry = UInt8(ascii: "x")
    /// Without content: the message counts.
    static let counted = UInt8(ascii: "c")
    /// The message that a revoke names.
    static let target = UInt8(ascii: "o")
    static let badge = UInt8(ascii: "b")
    /// The event's id, if the user's devices get the lowered number.
    static let clears = UInt8(ascii: "e")
    /// The mark's bytes behind its state.
    static let note = UInt8(ascii: "n")
}

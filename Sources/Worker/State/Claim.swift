// SPDX-License-Identifier: Apache-2.0
public import PushCore
public import Redis

/// The kinds of events that can happen once per (user, message); marks distinguish them.
public enum PairKind: String, Sendable {
    case message = "m"
    case revoke = "r"
    /// Its id is the event's, because a Live Activity's `msg_id` is optional.
    case liveActivity = "l"

    /// The raw value as a byte.
    var letter: UInt8 {
        switch self {
        case .message: UInt8(ascii: "m")
        case .revoke: UInt8(ascii: "r")
        case .liveActivity: UInt8(ascii: "l")
        }
    }
}

extension PushIDPrefix {
    /// The common part of the ids of all pushes of one pair.
    ///
    /// - Parameter id: the message's id; for a Live Activity the event's.
    public init(app: String, uid: String, kind: PairKind, id: String) {
        self.init(app: app, uid: uid, msgID: id, kind: kind.rawValue)
    }
}

/// A claim's data about a message (or another kind): equal for all recipients, created once.
public final class ClaimSubject: Sendable {
    public let kind: PairKind
    /// The message's id; for a Live Activity the event's.
    public let id: String
    public let conversation: String
    /// The record's `sent_ms`.
    public let sentMs: Int64
    /// Per conversation, rising; nil if it cannot be compared.
    public let seq: Int64?
    /// For a revoke: its target. The claim lowers the badge, whatever happens to the alert.
    public let revoke: Message.Revoke?
    /// Unix ms. The mark lives at least until then.
    public let expireAtMs: Int64
    /// The app's `clear_on_read`: a revoke that lowers the badge leaves a note to update the devices.
    public let clearsOnRead: Bool
    /// The app's `badge: none`: its alerts depend on whether an earlier try counted the message.
    public let clientCounts: Bool

    public init(
        kind: PairKind, id: String, conversation: String = "", sentMs: Int64, seq: Int64? = nil,
        revoke: Message.Revoke? = nil, expireAtMs: Int64, clearsOnRead: Bool = false, clientCounts: Bool = false
    ) {
        self.kind = kind
        self.id = id
        self.conversation = conversation
        self.sentMs = sentMs
        self.seq = seq
        self.revoke = revoke
        self.expireAtMs = expireAtMs
        self.clearsOnRead = clearsOnRead
        self.clientCounts = clientCounts
    }

    /// Number of keys of each user in a claim.
    var claimKeyCount: Int { revoke == nil ? 4 : 5 }

    /// A negative sequence cannot be compared, so it counts as none.
    var comparableSeq: Int64? { seq.flatMap { $0 < 0 ? nil : $0 } }
}

/// One (user, message, kind) to be claimed (contract section 5, steps 5, 10 and 15).
public struct ClaimRequest: Sendable {
    public var app: String
    public var uid: String
    public var subject: ClaimSubject
    /// `Decision.counted`. The badge rises once, however often the same pair is claimed.
    public var counted: Bool
    /// A `PlainClaim` has added it to the ledger, and the script must settle that.
    var wasAdded = false
    /// It is to be recorded without a device: the mark keeps this for the next try. Nil: its devices are recorded.
    var withoutDevice: WithoutDevice?
    public var nowMs: Int64

    public init(app: String, uid: String, _ subject: ClaimSubject, counted: Bool, nowMs: Int64) {
        self.app = app
        self.uid = uid
        self.subject = subject
        self.counted = counted
        self.nowMs = nowMs
    }

    /// The user's number in Redis is another one once it is stored.
    var changesBadge: Bool { !uid.isEmpty && (counted || subject.revoke?.badge == .decrease) }
}

/// The result of a claim.
public struct ClaimReply: Sendable, Equatable {
    public enum State: Int64, Sendable {
        /// The pair was never claimed.
        case fresh
        /// The pair was claimed and not finished. The notes have its progress.
        case resume
        /// Finished before: nothing to do.
        case ended
    }

    public var state: State
    /// The user's badge after this claim, uncapped; nil for a finished pair.
    public var badge: Int64?
    /// A read mark now covers the message.
    public var isRead: Bool
    /// It was revoked, possibly before it arrived.
    public var isRevoked: Bool
    /// Rises with each change of the user's tokens. If it differs from the value read earlier, tokens must be read
    /// again.
    public var tokenVersion: Int64
    /// The notes in the mark of an earlier try; nil if there are none. Its `addressed` also has the devices that may have been pushed to
    /// before they lost their token.
    public var notes: EarlierNotes?
    /// For a revoke: it lowered this user's badge by one, now or in an earlier claim of the same pair.
    public var lowered = false
    /// With `clear_on_read`: the badge is lower than on the devices, and they have not been updated
    /// (`StateStore.loweredBadgeSent`).
    public var owesClear = false
    /// The message adds 1 to the badge, by this claim or by an earlier one of the same pair.
    public var adds = false
    /// For a revoke: this user has nothing of the message that it names.
    public var isTargetUnknown = false
    /// For a revoke that lowered the badge, where the client counts: the devices that added 1 for its target.
    var addedBy = AddedDevices()
    /// A client's report is part of the badge. Otherwise the badge is the size of the ledger.
    public var hasReport = false

    public init(
        state: State, badge: Int64?, isRead: Bool = false, isRevoked: Bool = false, tokenVersion: Int64 = 0,
        notes: EarlierNotes? = nil, lowered: Bool = false, owesClear: Bool = false, adds: Bool = false,
        hasReport: Bool = false
    ) {
        self.state = state
        self.badge = badge
        self.isRead = isRead
        self.isRevoked = isRevoked
        self.tokenVersion = tokenVersion
        self.notes = notes
        self.lowered = lowered
        self.owesClear = owesClear
        self.adds = adds
        self.hasReport = hasReport
    }

    /// Reads the reply of `StateStore.claim`; nil for any other reply.
    public init?(_ reply: borrowing RedisReply) {
        guard reply.count >= 3, let bits = reply[0].int64, let state = State(rawValue: bits & 3) else { return nil }
        self.state = state
        badge = state == .ended ? nil : reply[1].int64
        isRead = bits & 4 != 0
        isRevoked = bits & 8 != 0
        lowered = bits & 16 != 0
        owesClear = bits & 32 != 0
        adds = bits & 64 != 0
        isTargetUnknown = bits & 128 != 0
        hasReport = bits & 256 != 0
        tokenVersion = reply[2].int64 ?? 0
        guard reply.count > 3, state != .ended else { return }
        notes = EarlierNotes(reply[3].bytes)
        if reply.count > 4 { addedBy = AddedDevices(PairMark.counts(reply[4])) }
    }
}

/// The mark of one (user, message, kind) as stored, for readers that claim nothing.
public struct PairMark: Sendable, Equatable {
    /// Nil if it is only known as revoked, not claimed.
    public var state: ClaimReply.State?
    public var isRevoked = false
    var notes: EarlierNotes?
    /// The trace for `TraceRecord`; empty if none was kept.
    var trace: [UInt8] = []
    /// The counts in the mark of a finished pair; nil if its worker kept no statistics.
    var counts: MarkCounts?

    /// Reads the reply of `StateStore.readMark`; nil without a mark.
    public init?(_ reply: borrowing RedisReply) {
        let bytes = reply.bytes
        guard !reply.isNull, !bytes.isEmpty else { return nil }
        var rest = bytes.dropFirst()
        state = Self.state(reply)
        if let mode = rest.first, mode == UInt8(ascii: "x") || mode == UInt8(ascii: "k") {
            isRevoked = true
            rest = rest.drop { $0 != UInt8(ascii: ";") }.dropFirst()
        }
        if state == .ended {
            counts = MarkCounts.take(&rest)
            trace = Array(rest)
        } else {
            notes = EarlierNotes(UnsafeRawBufferPointer(rebasing: rest))
        }
    }

    /// The counts in the mark of a finished pair.
    static func counts(_ reply: borrowing RedisReply) -> MarkCounts? {
        guard state(reply) == .ended else { return nil }
        var rest = reply.bytes.dropFirst()
        if let mode = rest.first, mode == UInt8(ascii: "x") || mode == UInt8(ascii: "k") {
            rest = rest.drop { $0 != UInt8(ascii: ";") }.dropFirst()
        }
        return MarkCounts.take(&rest)
    }

    /// The state of an earlier try from the reply of `StateStore.readMark`; nil if there was none.
    static func state(_ reply: borrowing RedisReply) -> ClaimReply.State? {
        switch reply.bytes.first {
        case UInt8(ascii: "f"): .ended
        case nil, UInt8(ascii: "t"): nil
        default: .resume
        }
    }
}

extension ClaimSubject {
    /// `msg_id` identifies duplicates of a message or revoke.
    convenience init(_ message: borrowing Message, sentMs: Int64, clearsOnRead: Bool, clientCounts: Bool) {
        self.init(
            kind: message.kind == .revoke ? .revoke : .message, id: message.msgID,
            conversation: message.conversation.id, sentMs: sentMs, seq: message.serverSeq,
            revoke: TestBreak.isOn(.ignoreRevoke) ? nil : message.revoke,
            expireAtMs: message.expireAtMs, clearsOnRead: clearsOnRead, clientCounts: clientCounts)
    }

    /// The event identifies those of a Live Activity, because its `msg_id` is optional (contract section 2).
    convenience init(_ activity: borrowing LiveActivity, eventID: String, sentMs: Int64) {
        self.init(
            kind: .liveActivity, id: eventID, sentMs: sentMs, expireAtMs: sentMs &+ LiveActivity.lifetimeMs)
    }
}

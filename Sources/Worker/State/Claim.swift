public import PushCore
public import Redis

/// What may happen once per (user, message): the kinds that a mark tells apart.
public enum PairKind: String, Sendable {
    case message = "m"
    case revoke = "r"
    /// Its id is the event's, since a Live Activity's `msg_id` is optional.
    case liveActivity = "l"

    /// The raw value as the byte that it is.
    var letter: UInt8 { rawValue.utf8[rawValue.startIndex] }
}

extension PushIDPrefix {
    /// What the ids of all pushes of one pair have in common.
    ///
    /// - Parameter id: the message's id; of a Live Activity the event's.
    public init(app: String, uid: String, kind: PairKind, id: String) {
        self.init(app: app, uid: uid, msgID: id, kind: kind.rawValue)
    }
}

/// What claims say of a message (or another kind): the same for all its recipients, made once.
public final class ClaimSubject: Sendable {
    public let kind: PairKind
    /// The message's id; of a Live Activity the event's.
    public let id: String
    public let conversation: String
    /// The record's `sent_ms`.
    public let sentMs: Int64
    /// Per conversation, rising; nil: there is none to compare.
    public let seq: Int64?
    /// Of a revoke: what it takes back. The decrease happens here, whatever becomes of the alert.
    public let revoke: Message.Revoke?
    /// Unix ms; the mark lives at least until then.
    public let expireAtMs: Int64
    /// The app's `clear_on_read`: a recall that lowers the badge leaves a note that devices are to be told.
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

    /// Keys of each user in a claim.
    var claimKeyCount: Int { revoke == nil ? 4 : 5 }

    /// A negative sequence cannot be compared, so it is none.
    var comparableSeq: Int64? { seq.flatMap { $0 < 0 ? nil : $0 } }
}

/// One (user, message, kind) that is about to be acted on (contract section 5, steps 5, 10 and 15).
public struct ClaimRequest: Sendable {
    public var app: String
    public var uid: String
    public var subject: ClaimSubject
    /// `Decision.counted`; the badge rises once however often the same pair is claimed.
    public var counted: Bool
    /// A `PlainClaim` has added it to the ledger, and the script is to settle that.
    var wasAdded = false
    public var nowMs: Int64

    public init(app: String, uid: String, _ subject: ClaimSubject, counted: Bool, nowMs: Int64) {
        self.app = app
        self.uid = uid
        self.subject = subject
        self.counted = counted
        self.nowMs = nowMs
    }
}

/// What a claim found and did.
public struct ClaimReply: Sendable, Equatable {
    public enum State: Int64, Sendable {
        /// Nobody has acted on this pair.
        case fresh
        /// Somebody has, and did not finish: devices that accepted are in `acceptedDevices`.
        case resume
        /// All was done before: nothing more.
        case finished
    }

    public var state: State
    /// The user's number after this claim, uncapped; nil for a finished pair.
    public var badge: Int64?
    /// A read receipt covers the message by now.
    public var isRead: Bool
    /// A revoke of it has come, perhaps before it.
    public var isRevoked: Bool
    /// Rises with each change of the user's tokens: other than at the read means that tokens must be read again.
    public var tokenVersion: Int64
    public var acceptedDevices: [String]
    /// Devices that an earlier try delivered to, or recorded another end of.
    public var addressedDevices: [String] = []
    /// Of a recall: it took one off this user's badge, now or in an earlier claim of the same pair.
    public var lowered = false
    /// With `clear_on_read`: the badge is lower than what devices show, and they have not been told
    /// (`StateStore.loweredBadgeSent`).
    public var owesClear = false
    /// The message adds 1 to the badge, by this claim or by an earlier one of the same pair.
    public var adds = false
    /// Of a revoke: this user has nothing of the message that it names.
    public var isTargetUnknown = false

    public init(
        state: State, badge: Int64?, isRead: Bool = false, isRevoked: Bool = false, tokenVersion: Int64 = 0,
        acceptedDevices: [String] = [], lowered: Bool = false, owesClear: Bool = false, adds: Bool = false
    ) {
        self.state = state
        self.badge = badge
        self.isRead = isRead
        self.isRevoked = isRevoked
        self.tokenVersion = tokenVersion
        self.acceptedDevices = acceptedDevices
        self.lowered = lowered
        self.owesClear = owesClear
        self.adds = adds
    }

    /// Reads the reply of `StateStore.claim`; nil where it is none.
    public init?(_ reply: borrowing RedisReply) {
        guard reply.count >= 3, let bits = reply[0].int64, let state = State(rawValue: bits & 3) else { return nil }
        self.state = state
        badge = state == .finished ? nil : reply[1].int64
        isRead = bits & 4 != 0
        isRevoked = bits & 8 != 0
        lowered = bits & 16 != 0
        owesClear = bits & 32 != 0
        adds = bits & 64 != 0
        isTargetUnknown = bits & 128 != 0
        tokenVersion = reply[2].int64 ?? 0
        acceptedDevices = []
        if reply.count > 3 { (acceptedDevices, addressedDevices) = PairMark.devices(reply[3].bytes) }
    }
}

/// The mark of one (user, message, kind), as it stands in Redis; for those who claim nothing.
public struct PairMark: Sendable, Equatable {
    /// Nil: known only as revoked, not claimed.
    public var state: ClaimReply.State?
    public var isRevoked = false
    public var acceptedDevices: [String] = []
    public var addressedDevices: [String] = []
    /// What happened, as `TraceRecord` reads it; empty: nothing was kept.
    var trace: [UInt8] = []

    /// Reads the reply of `StateStore.readMark`; nil where there is no mark.
    public init?(_ reply: borrowing RedisReply) {
        let bytes = reply.bytes
        guard !reply.isNull, !bytes.isEmpty else { return nil }
        var rest = bytes.dropFirst()
        state = Self.state(reply)
        if let mode = rest.first, mode == UInt8(ascii: "x") || mode == UInt8(ascii: "k") {
            isRevoked = true
            rest = rest.drop { $0 != UInt8(ascii: ";") }.dropFirst()
        }
        if state == .finished {
            trace = Array(rest)
        } else {
            (acceptedDevices, addressedDevices) = Self.devices(UnsafeRawBufferPointer(rebasing: rest))
        }
    }

    /// What the reply of `StateStore.readMark` says of an earlier try; nil: there was none.
    static func state(_ reply: borrowing RedisReply) -> ClaimReply.State? {
        switch reply.bytes.first {
        case UInt8(ascii: "f"): .finished
        case nil, UInt8(ascii: "t"): nil
        default: .resume
        }
    }

    /// What a mark notes of one device.
    public enum Note: UInt8, Sendable {
        /// APNs accepted its push.
        case accepted = 0x61  // a
        /// It was delivered to by connection, or its end is recorded.
        case addressed = 0x64  // d
    }

    /// `<note><length>:<device>`, one after the other; the first that cannot be read ends the list.
    static func devices(_ bytes: UnsafeRawBufferPointer) -> (accepted: [String], addressed: [String]) {
        var text = CompactText(bytes)
        var (accepted, addressed): ([String], [String]) = ([], [])
        while let note = text.byte().flatMap(Note.init(rawValue:)),
            let device = text.string(atMost: EventReader.Limit.user)
        {
            switch note {
            case .accepted: accepted.append(device)
            case .addressed: addressed.append(device)
            }
        }
        return (accepted, addressed)
    }
}

/// The law of the badge as a function of facts, whatever their order and however often each is told.
///
/// A model, not the worker's store: it keeps every fact. The number that the worker's Redis scripts hold must equal
/// `value` after any permutation, with repeats, of the same facts (contract section 5, Badge).
public struct BadgeLedger: Sendable {
    private var counted: [String: Counted] = [:]
    private var reads: [String: [Read]] = [:]
    private var revokes: [String: Int64] = [:]
    private var base: Report?

    public enum Fact: Sendable, Equatable {
        /// `decide` said counted.
        case counted(msgID: String, conversation: String, seq: Int64?, sentMs: Int64)
        /// A `read` record; `sentMs` is the record's own.
        case read(conversation: String, upTo: UserState.ReadMark, sentMs: Int64)
        /// A `revoke` that decreases; `sentMs` is the record's own.
        case revoke(target: String, sentMs: Int64)
        /// A `badge_report`: the client's own total as of `clientMs`.
        case report(value: Int64, clientMs: Int64)
    }

    private struct Counted {
        var conversation: String
        var seq: Int64?
        var sentMs: Int64
    }

    private struct Read {
        var mark: UserState.ReadMark
        var sentMs: Int64
    }

    private struct Report {
        var value: Int64
        var clientMs: Int64
    }

    public init() {}

    public mutating func apply(_ fact: Fact) {
        switch fact {
        case .counted(let msgID, let conversation, let seq, let sentMs):
            // Unique per app: a repeat is the same message.
            if counted[msgID] == nil { counted[msgID] = Counted(conversation: conversation, seq: seq, sentMs: sentMs) }
        case .read(let conversation, let mark, let sentMs):
            reads[conversation, default: []].append(Read(mark: mark, sentMs: sentMs))
        case .revoke(let target, let sentMs):
            revokes[target] = min(sentMs, revokes[target] ?? .max)
        case .report(let value, let clientMs):
            let new = Report(value: max(0, value), clientMs: clientMs)
            // Of two reports of one instant the larger stands, so that their order does not matter.
            if let base, (base.clientMs, base.value) >= (new.clientMs, new.value) { return }
            base = new
        }
    }

    /// The number on the icon, uncapped: what was reported less what went of that since, at least 0, and all that came
    /// later and is unread.
    ///
    /// Only the client's total has the floor. A client whose report already left out what it read takes that off again
    /// with its receipt; under one floor for the whole sum this surplus would swallow messages sent after the report,
    /// and an unread message would show no number.
    public var value: Int64 {
        let reported = base?.value ?? 0
        var taken: Int64 = 0
        var later: Int64 = 0
        for (msgID, message) in counted {
            let goneMs = gone(msgID, message)
            if let base, message.sentMs <= base.clientMs {
                // Within the client's total, unless it was gone by then: what went later is taken off that total.
                if let goneMs, goneMs > base.clientMs { taken += 1 }
            } else if goneMs == nil {
                later += 1
            }
        }
        let (sum, overflow) = max(0, reported - taken).addingReportingOverflow(later)
        return overflow ? .max : sum
    }

    /// When the first read or recall took the message away; nil: it is unread.
    private func gone(_ msgID: String, _ message: Counted) -> Int64? {
        var first = revokes[msgID]
        for read in reads[message.conversation] ?? [] where read.mark.covers(seq: message.seq, sentMs: message.sentMs) {
            first = min(read.sentMs, first ?? .max)
        }
        return first
    }
}

/// What is sent of a badge.
public enum BadgeRule {
    /// The number beside an alert: capped, and left out at 0, which would wipe the app's whole list of notifications.
    ///
    /// Made part of its callers, like the next one: to hand over a whole policy, they would copy it.
    @inlinable public static func besideAlert(_ value: Int64, cap: Int64) -> Int64? {
        let number = capped(value, cap: cap)
        return number > 0 ? number : nil
    }

    /// The same by an app's rules; nil also if the server's number is not sent (`badge: none` or `sender`).
    @inlinable public static func besideAlert(_ value: Int64, _ policy: borrowing AppPolicy) -> Int64? {
        policy.badge == .server ? besideAlert(value, cap: policy.badgeCap) : nil
    }

    /// The same, of a revoke's alert too: where it lowered the number, 0 is sent.
    @inlinable public static func withAlert(
        _ value: Int64, isLowered: Bool, _ policy: borrowing AppPolicy
    ) -> Int64? {
        if isLowered { return policy.badge == .server ? capped(value, cap: policy.badgeCap) : nil }
        return besideAlert(value, policy)
    }

    /// The number of a push that carries nothing else (`clear_on_read`): capped, 0 included.
    public static func alone(_ value: Int64, cap: Int64) -> Int64 {
        capped(value, cap: cap)
    }

    /// Whether a number that was pushed beside an alert is lower than what would be pushed now.
    public static func isOvertaken(_ pushed: Int64, newest: Int64, _ policy: borrowing AppPolicy) -> Bool {
        besideAlert(newest, policy).map { $0 > pushed } ?? false
    }

    @usableFromInline static func capped(_ value: Int64, cap: Int64) -> Int64 {
        cap > 0 ? min(max(0, value), cap) : max(0, value)
    }
}

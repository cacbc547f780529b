// SPDX-License-Identifier: Apache-2.0
/// The badge law as a function of facts, independent of their order and of repeats.
///
/// A model, not the worker's store: it keeps every fact. The number in the worker's Redis scripts must equal `value`
/// after any permutation, with repeats, of the same facts (contract section 5, Badge).
public struct BadgeLedger: Sendable {
    private var counted: [String: Counted] = [:]
    private var reads: [String: [Read]] = [:]
    private var revokes: [String: Int64] = [:]
    private var base: Report?

    public enum Fact: Sendable, Equatable {
        /// `decide` returned counted.
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
            // Ids are unique per app, so a repeat is the same message.
            if counted[msgID] == nil { counted[msgID] = Counted(conversation: conversation, seq: seq, sentMs: sentMs) }
        case .read(let conversation, let mark, let sentMs):
            reads[conversation, default: []].append(Read(mark: mark, sentMs: sentMs))
        case .revoke(let target, let sentMs):
            revokes[target] = min(sentMs, revokes[target] ?? .max)
        case .report(let value, let clientMs):
            let new = Report(value: max(0, value), clientMs: clientMs)
            // The larger of two reports of one instant counts, so that their order does not matter.
            if let base, (base.clientMs, base.value) >= (new.clientMs, new.value) { return }
            base = new
        }
    }

    /// The icon's number, uncapped: the reported total minus its messages that were read or revoked since (at least 0),
    /// plus all later unread messages.
    ///
    /// The floor applies only to the client's total. A client may report a total that already excludes read messages,
    /// and then subtract them again by its read receipt. With one floor for the whole sum, that surplus would cancel
    /// messages sent after the report, and an unread message would show no number.
    public var value: Int64 {
        let reported = base?.value ?? 0
        var taken: Int64 = 0
        var later: Int64 = 0
        for (msgID, message) in counted {
            let goneMs = gone(msgID, message)
            if let base, message.sentMs <= base.clientMs {
                // Part of the client's total, unless it was read or revoked before the report. Later reads and revokes
                // are subtracted from that total.
                if let goneMs, goneMs > base.clientMs { taken += 1 }
            } else if goneMs == nil {
                later += 1
            }
        }
        let (sum, overflow) = max(0, reported - taken).addingReportingOverflow(later)
        return overflow ? .max : sum
    }

    /// Time of the first read or revoke of the message; nil if it is unread.
    private func gone(_ msgID: String, _ message: Counted) -> Int64? {
        var first = revokes[msgID]
        for read in reads[message.conversation] ?? [] where read.mark.covers(seq: message.seq, sentMs: message.sentMs) {
            first = min(read.sentMs, first ?? .max)
        }
        return first
    }
}

/// The badge number to send.
public enum BadgeRule {
    /// The number in an alert: capped, and omitted at 0, because 0 would clear the app's notifications.
    ///
    /// Inlined like the next one, because a call would copy the whole policy.
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
        _ value: Int64, isLowered: Bool, by counter: AppPolicy.BadgeCounter, cap: Int64
    ) -> Int64? {
        guard counter == .server else { return nil }
        return isLowered ? capped(value, cap: cap) : besideAlert(value, cap: cap)
    }

    /// The number of a push without other content (`clear_on_read`): capped, 0 included.
    public static func alone(_ value: Int64, cap: Int64) -> Int64 {
        capped(value, cap: cap)
    }

    /// - Returns: whether the number of an earlier alert is lower than the present number.
    public static func isOvertaken(_ pushed: Int64, newest: Int64, _ policy: borrowing AppPolicy) -> Bool {
        besideAlert(newest, policy).map { $0 > pushed } ?? false
    }

    @usableFromInline static func capped(_ value: Int64, cap: Int64) -> Int64 {
        cap > 0 ? min(max(0, value), cap) : max(0, value)
    }
}

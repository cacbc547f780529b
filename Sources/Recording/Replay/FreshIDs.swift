internal import Crypto
public import JSON

/// Gives a replayed record's ids new names, all references to one id the same new name, so that no worker takes it for a
/// repeat of an earlier one.
///
/// Changed are `event_id`, `msg_id`, `msg_ids` and `revoke.target_msg_id`; `server_seq` and `up_to_seq` move up together, so
/// that no earlier read covers a message. Everything else stays: tokens, users, conversations, versions, activities.
public struct FreshIDs: Sendable {
    /// What every id ends with: of this replay and this pass.
    let ending: String
    let seqShift: Int64

    /// Bytes of the longest id of the contract.
    static let idMax = 64
    /// Of what stands for an id that is too long to be kept.
    private static let hashDigits = 40

    /// - Parameters:
    ///   - tag: tells this replay from others: at most eight letters and digits.
    ///   - pass: tells the passes of a loop apart.
    ///   - seqs: the lowest and the highest sequence number of the recording.
    ///   - startMs: when the replay began, Unix ms; a later one's numbers then lie above this one's.
    public init(tag: String, pass: Int, seqs: ClosedRange<Int64>?, startMs: Int64) {
        ending = "~" + String(tag.prefix(8)) + (pass == 0 ? "" : String(pass, radix: 36))
        guard let seqs else {
            seqShift = 0
            return
        }
        // A pass takes a millisecond at least: so much room per millisecond keeps all passes of all replays apart. Room for
        // numbers that lie wider apart than 4 million is not to be had in 64 bits.
        let (width, isTooWide) = seqs.upperBound.subtractingReportingOverflow(seqs.lowerBound)
        let room = isTooWide ? Self.roomMax : min(max(1, width &+ 1), Self.roomMax)
        seqShift = max(0, startMs &+ Int64(pass)) &* room &- max(0, seqs.lowerBound)
    }

    private static let roomMax: Int64 = 1 << 22

    /// The record with its ids renewed; what is no object of the contract's stays as it is.
    public func apply(to tree: JSONTree) -> JSONTree {
        guard case .object(let members) = tree else { return tree }
        return .object(
            members.map { member in
                switch member.key {
                case _ where member.key.utf8.count > 16: member
                case "event_id", "msg_id": JSONTree.Member(member.key, id(member.value))
                case "msg_ids":
                    JSONTree.Member(member.key, member.value.array.map { .array($0.map(id)) } ?? member.value)
                case "server_seq", "up_to_seq": JSONTree.Member(member.key, seq(member.value))
                case "revoke": JSONTree.Member(member.key, revoke(member.value))
                default: member
                }
            })
    }

    /// The new name of an id. One that is over the contract's length stays: its event is bad.
    public func id(_ id: String) -> String {
        let count = id.utf8.count
        if count == 0 || count > Self.idMax { return id }
        if count + ending.utf8.count <= Self.idMax { return id + ending }
        return SHA256.hex(Array(id.utf8)).prefix(Self.hashDigits) + ending
    }

    private func id(_ tree: JSONTree) -> JSONTree {
        guard case .string(let text) = tree else { return tree }
        return .string(id(text))
    }

    /// A number that would leave 64 bits stays.
    private func seq(_ tree: JSONTree) -> JSONTree {
        guard let number = tree.int else { return tree }
        let (moved, isTooLarge) = number.addingReportingOverflow(seqShift)
        return isTooLarge ? tree : .number(String(moved))
    }

    private func revoke(_ tree: JSONTree) -> JSONTree {
        guard case .object(let members) = tree else { return tree }
        return .object(
            members.map { member in
                guard member.key.utf8.count <= 16, member.key == "target_msg_id" else { return member }
                return JSONTree.Member(member.key, id(member.value))
            })
    }
}

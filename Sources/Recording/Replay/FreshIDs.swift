// SPDX-License-Identifier: Apache-2.0
internal import Crypto
public import JSON

/// Renames the ids of a replayed record. All references to one id get the same new name, so no worker takes the record
/// for a repeat.
///
/// It changes `event_id`, `msg_id`, `msg_ids` and `revoke.target_msg_id`. `server_seq` and `up_to_seq` move up
/// together, so no earlier read covers a message. Tokens, users, conversations, versions and activities remain.
public struct FreshIDs: Sendable {
    /// The suffix of every id: unique for this replay and pass.
    let ending: String
    let seqShift: Int64

    /// The contract's limit for ids, in bytes.
    static let idMax = 64
    /// Length of the hash that replaces an id that is too long.
    private static let hashDigits = 40

    /// - Parameters:
    ///   - tag: identifies this replay; at most eight letters and digits.
    ///   - pass: the number of the pass in a loop.
    ///   - seqs: the lowest and the highest sequence number of the recording.
    ///   - startMs: start time of the replay, Unix ms. Sequence numbers of later replays are higher.
    public init(tag: String, pass: Int, seqs: ClosedRange<Int64>?, startMs: Int64) {
        ending = "~" + String(tag.prefix(8)) + (pass == 0 ? "" : String(pass, radix: 36))
        guard let seqs else {
            seqShift = 0
            return
        }
        // A pass takes at least a millisecond. This width per millisecond keeps all passes of all replays apart. 64
        // bits allow no range wider than 4 million.
        let (width, isTooWide) = seqs.upperBound.subtractingReportingOverflow(seqs.lowerBound)
        let room = isTooWide ? Self.roomMax : min(max(1, width &+ 1), Self.roomMax)
        seqShift = max(0, startMs &+ Int64(pass)) &* room &- max(0, seqs.lowerBound)
    }

    private static let roomMax: Int64 = 1 << 22

    /// - Returns: the record with renamed ids. A value that is not one of the contract's objects remains unchanged.
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

    /// The new name of an id. An id over the contract's limit remains, because its event is bad anyway.
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

    /// A number that would overflow 64 bits remains.
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

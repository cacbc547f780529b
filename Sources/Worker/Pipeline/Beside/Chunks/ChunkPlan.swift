// SPDX-License-Identifier: Apache-2.0
import PushCore

/// The division of a large group: members are collected by part, and each part is written one chunk at a time.
///
/// A member's part is the same for every message of the group. So all messages reach the member through one partition,
/// in order, whichever worker reads it.
final class ChunkPlan {
    /// Number of parts of every large group: as many partitions work on it in parallel.
    static let partCount = 32
    /// Members in one record: a crash repeats a chunk, not the group.
    static let membersMax = 1000
    private static let uidBytesMax = 100_000

    struct Chunk {
        var part: Int
        var members: [MemberPage.Member] = []
        fileprivate var uidBytes = 0
    }

    private var gathered = (0..<partCount).map { Chunk(part: $0) }
    /// Its group's members are being read.
    var isUnderWay = false
    /// Chunks without the broker's acknowledgement.
    var unackedCount = 0

    static func part(of uid: String) -> Int {
        var hash = SipHash128(key0: 0x6361_7269_6c6c_6f6e, key1: 0x6368_756e_6b73_3031)
        hash.update(lengthThen: uid)
        return Int(truncatingIfNeeded: hash.finish().0 % UInt64(partCount))
    }

    /// Adds a member. Returns the chunk that is now full; nil if none is.
    func add(_ member: MemberPage.Member) -> Chunk? {
        let part = Self.part(of: member.uid)
        gathered[part].members.append(member)
        gathered[part].uidBytes += member.uid.utf8.count
        guard gathered[part].members.count >= Self.membersMax || gathered[part].uidBytes >= Self.uidBytesMax else {
            return nil
        }
        defer { gathered[part] = Chunk(part: part) }
        return gathered[part]
    }

    /// All members were added: returns the chunks that are not full.
    func takeRest() -> [Chunk] {
        defer { for part in gathered.indices { gathered[part] = Chunk(part: part) } }
        return gathered.filter { !$0.members.isEmpty }
    }
}

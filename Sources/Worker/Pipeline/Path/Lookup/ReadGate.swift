// SPDX-License-Identifier: Apache-2.0
import Digits

/// Bounds how many reads of one user's hashes are with Redis at once: a key may be so large that each reading of it keeps Redis
/// and the link busy as long as thousands of others.
///
/// The gate distinguishes users by a hash of one byte, which travels in the tag of the read. Users with the same hash share the
/// bound: a read then waits at most a round trip longer.
struct ReadGate {
    static let atOnce: UInt8 = 8

    private var inFlight = [UInt8](repeating: 0, count: 256)
    private var waiting: [UInt8: Row] = [:]

    private struct Row {
        var refs: [WorkRef] = []
        var head = 0
    }

    /// FNV-1a, folded.
    static func bucket(_ uid: String) -> UInt8 {
        let hash = uid.withUTF8Bytes { bytes in
            bytes.reduce(0x811C_9DC5 as UInt32) { ($0 ^ UInt32($1)) &* 0x0100_0193 }
        }
        return UInt8(truncatingIfNeeded: hash ^ hash >> 8 ^ hash >> 16 ^ hash >> 24)
    }

    /// - Returns: false if the read waits behind earlier ones; `next` then returns its reference.
    mutating func admit(_ bucket: UInt8, _ ref: WorkRef) -> Bool {
        if inFlight[Int(bucket)] < Self.atOnce, waiting.isEmpty || waiting[bucket] == nil {
            inFlight[Int(bucket)] &+= 1
            return true
        }
        waiting[bucket, default: Row()].refs.append(ref)
        return false
    }

    /// A read is answered, or was not sent.
    mutating func release(_ bucket: UInt8) {
        if inFlight[Int(bucket)] > 0 { inFlight[Int(bucket)] &-= 1 }
    }

    /// The read that has waited longest and may go now, counted as in flight; nil: none may.
    mutating func next(_ bucket: UInt8) -> WorkRef? {
        guard !waiting.isEmpty, inFlight[Int(bucket)] < Self.atOnce, var row = waiting[bucket] else { return nil }
        waiting[bucket] = nil
        let ref = row.refs[row.head]
        row.head += 1
        if row.head < row.refs.count { waiting[bucket] = row }
        inFlight[Int(bucket)] &+= 1
        return ref
    }
}

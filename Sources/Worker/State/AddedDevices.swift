// SPDX-License-Identifier: Apache-2.0
/// The devices of one user whose extension added 1 for a message (`badge: none`), as the message's mark names them: up to eight
/// bytes of `MarkCounts.short`.
struct AddedDevices: Sendable, Equatable {
    private var bytes: UInt64 = 0

    init() {}

    init(_ mark: MarkCounts?) {
        for outcome in mark?.outcomes ?? [] where outcome.isAddedByClient { insert(outcome.device) }
    }

    var isEmpty: Bool { bytes == 0 }

    func contains(_ device: String) -> Bool { contains(MarkCounts.short(device)) }

    private func contains(_ short: UInt8) -> Bool {
        (0..<8).contains { UInt8(truncatingIfNeeded: bytes >> ($0 * 8)) == short }
    }

    mutating func insert(_ device: String) { insert(MarkCounts.short(device)) }

    /// Beyond eight devices nothing is noted: a revoke then leaves their number as it is.
    private mutating func insert(_ short: UInt8) {
        if !contains(short), bytes >> 56 == 0 { bytes = bytes << 8 | UInt64(short) }
    }

    mutating func formUnion(_ other: AddedDevices) {
        for place in 0..<8 {
            let short = UInt8(truncatingIfNeeded: other.bytes >> (place * 8))
            if short != 0 { insert(short) }
        }
    }
}

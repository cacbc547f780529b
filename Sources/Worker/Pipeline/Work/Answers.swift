// SPDX-License-Identifier: Apache-2.0
/// Answers that are awaited together: their number, and whether one of them must be asked for again.
struct Answers: Equatable {
    private(set) var awaited: Int32
    private(set) var hasFailed = false

    init(_ awaited: Int = 0) { self.awaited = Int32(clamping: awaited) }

    /// Another one is awaited with the others.
    mutating func expect(_ more: Int = 1) { awaited &+= Int32(clamping: more) }

    /// Takes one answer. Returns true with the last one, and false for one that nobody awaits.
    mutating func take(failed: Bool = false) -> Bool {
        guard awaited > 0 else { return false }
        awaited -= 1
        if failed { hasFailed = true }
        return awaited == 0
    }
}

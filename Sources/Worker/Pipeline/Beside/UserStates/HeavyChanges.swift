// SPDX-License-Identifier: Apache-2.0
/// Changes with a step that is long for Redis: few are with it at once, the others wait in their order. So a flood of one
/// client delays no other change.
struct HeavyChanges {
    private static let atOnce = 2

    private var inHand = 0
    private var waiting: [WorkRef] = []
    private var first = 0

    /// - Returns: false if it waits for `next`.
    mutating func begin(_ change: WorkRef) -> Bool {
        if inHand >= Self.atOnce {
            waiting.append(change)
            return false
        }
        inHand += 1
        return true
    }

    mutating func end() { inHand -= 1 }

    /// The next one, if there is room; it begins again.
    mutating func next() -> WorkRef? {
        guard inHand < Self.atOnce, first < waiting.count else {
            if first == waiting.count {
                waiting.removeAll(keepingCapacity: true)
                first = 0
            }
            return nil
        }
        defer { first += 1 }
        return waiting[first]
    }
}

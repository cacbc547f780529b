// SPDX-License-Identifier: Apache-2.0
/// Decides how long a report waits for a worker: while it makes progress, and a fixed number of seconds after that.
///
/// A busy broker may need longer for one look at the group's offsets. So at least two looks without progress must be
/// among these seconds; without any look, six times as long is enough. Pure; times are injected.
public struct ReplayPatience {
    private let waitNanos: UInt64
    private var state: [Int] = []
    private var movedNanos: UInt64
    private var movedLooks = 0

    private static let looksMin = 2
    private static let withoutLooks: UInt64 = 6

    public init(waitSeconds: Double, nowNanos: UInt64) {
        waitNanos = UInt64(max(0, waitSeconds) * 1e9)
        movedNanos = nowNanos
    }

    /// - Parameters:
    ///   - state: values that change while the worker makes progress.
    ///   - looks: the number of looks at the group's offsets so far.
    public mutating func isOver(_ state: [Int], looks: Int, nowNanos: UInt64) -> Bool {
        if state != self.state { (self.state, movedNanos, movedLooks) = (state, nowNanos, looks) }
        let waited = nowNanos &- movedNanos
        let wanted = looks &- movedLooks >= Self.looksMin ? waitNanos : waitNanos &* Self.withoutLooks
        return waited >= wanted
    }
}

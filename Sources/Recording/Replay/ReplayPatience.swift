/// How long a report waits for a worker: as long as that gets on, and then for so many seconds more.
///
/// A broker that is busy may take longer than that for one look at the group's offsets, so two looks that saw nothing new must
/// be among the seconds; where none comes at all, six times as long is enough. Pure; times are injected.
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
    ///   - state: what moves while the worker gets on.
    ///   - looks: at the group's offsets so far.
    public mutating func isOver(_ state: [Int], looks: Int, nowNanos: UInt64) -> Bool {
        if state != self.state { (self.state, movedNanos, movedLooks) = (state, nowNanos, looks) }
        let waited = nowNanos &- movedNanos
        let wanted = looks &- movedLooks >= Self.looksMin ? waitNanos : waitNanos &* Self.withoutLooks
        return waited >= wanted
    }
}

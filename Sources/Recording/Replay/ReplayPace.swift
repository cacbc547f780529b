/// When each record of a replay is due.
///
/// With a ramp the pace rises evenly from nothing to its full value.
public struct ReplayPace: Equatable, Sendable {
    public enum Kind: Equatable, Sendable {
        /// As fast as the brokers take it.
        case unbounded
        /// Records a second.
        case rate(Double)
        /// As it was recorded, times so much.
        case speed(Double)
    }

    public var kind: Kind
    public var rampSeconds: Double

    public init(_ kind: Kind, rampSeconds: Double = 0) {
        self.kind = kind
        self.rampSeconds = max(0, rampSeconds)
    }

    /// Seconds after the start.
    ///
    /// - Parameters:
    ///   - index: how many records came before, over all passes.
    ///   - recordedSeconds: how long after the first record this one was recorded, earlier passes included.
    public func dueSeconds(index: Int, recordedSeconds: Double) -> Double {
        switch kind {
        case .unbounded: 0
        case .rate(let rate): seconds(until: Double(index), at: rate)
        case .speed(let speed): seconds(until: max(0, recordedSeconds), at: speed)
        }
    }

    /// When so much has passed at a pace that rises to `pace` within the ramp: half of `pace × ramp` passes while it rises.
    private func seconds(until amount: Double, at pace: Double) -> Double {
        let whileRising = pace * rampSeconds / 2
        if amount <= whileRising { return (2 * rampSeconds * amount / pace).squareRoot() }
        return rampSeconds + (amount - whileRising) / pace
    }

    /// How much later than at the pass's start its newest record may be dated and still lie in nobody's future when it is
    /// written, in ms.
    ///
    /// Played as it was recorded or faster, the newest record's time is that of its writing; slower, the oldest one's is.
    /// Otherwise it is the start.
    public func newestAfterMs(recordedMs: Int64) -> Int64 {
        guard case .speed(let speed) = kind, recordedMs > 0 else { return 0 }
        return speed >= 1 ? Int64(Double(recordedMs) / speed) : recordedMs
    }
}

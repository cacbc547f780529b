// SPDX-License-Identifier: Apache-2.0
/// Computes when each record of a replay is due.
///
/// With a ramp, the pace rises linearly from zero to its full value.
public struct ReplayPace: Equatable, Sendable {
    public enum Kind: Equatable, Sendable {
        /// As fast as the brokers accept records.
        case unbounded
        /// Records per second.
        case rate(Double)
        /// The recorded pace, multiplied by a factor.
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
    ///   - index: the number of earlier records, over all passes.
    ///   - recordedSeconds: time since the first record at which this one was recorded, earlier passes included.
    public func dueSeconds(index: Int, recordedSeconds: Double) -> Double {
        switch kind {
        case .unbounded: 0
        case .rate(let rate): seconds(until: Double(index), at: rate)
        case .speed(let speed): seconds(until: max(0, recordedSeconds), at: speed)
        }
    }

    /// The time after which `amount` has passed at a pace that rises to `pace` within the ramp. Half of `pace × ramp`
    /// passes during the ramp.
    private func seconds(until amount: Double, at pace: Double) -> Double {
        let whileRising = pace * rampSeconds / 2
        if amount <= whileRising { return (2 * rampSeconds * amount / pace).squareRoot() }
        return rampSeconds + (amount - whileRising) / pace
    }

    /// How much later than the pass's start the newest record may be dated without being in the future when it is
    /// written, in ms.
    ///
    /// At the recorded pace or faster, the newest record is dated at its own writing time. At a slower pace, the oldest
    /// record is. Otherwise it is the start.
    public func newestAfterMs(recordedMs: Int64) -> Int64 {
        guard case .speed(let speed) = kind, recordedMs > 0 else { return 0 }
        return speed >= 1 ? Int64(Double(recordedMs) / speed) : recordedMs
    }
}

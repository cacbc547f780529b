// SPDX-License-Identifier: Apache-2.0
/// Limits repeated log lines: one per cause and interval is written, the others are counted.
///
/// Pure: no clock, no log. The keys are causes from a closed or bounded set, never text from outside. At most `keysMax`
/// of them are distinguished; when all places are taken, further causes share one place.
public struct LogLimiter<Key: Hashable> {
    private struct Place {
        var writtenNanos: UInt64
        var suppressed: UInt64
    }

    private let intervalNanos: UInt64
    private let keysMax: Int
    private var places: [Key: Place] = [:]
    /// The place for causes without their own.
    private var shared: Place?

    public init(intervalNanos: UInt64 = 10_000_000_000, keysMax: Int = 64) {
        self.intervalNanos = intervalNanos
        self.keysMax = max(1, keysMax)
    }

    /// - Returns: nil if this line must not be written, but counted. Otherwise the number of lines suppressed since the
    ///   last one of this cause. If a new cause takes the place of expired ones, the number includes their unreported
    ///   lines.
    public mutating func admit(_ key: Key, nowNanos: UInt64) -> UInt64? {
        guard places[key] == nil else { return Self.admit(&places[key], suppressed: 0, nowNanos, intervalNanos) }
        var suppressed: UInt64 = 0
        if places.count >= keysMax { suppressed = forget(nowNanos: nowNanos) }
        guard places.count < keysMax else {
            return Self.admit(&shared, suppressed: suppressed, nowNanos, intervalNanos)
        }
        return Self.admit(&places[key], suppressed: suppressed, nowNanos, intervalNanos)
    }

    private static func admit(
        _ place: inout Place?, suppressed: UInt64, _ nowNanos: UInt64, _ intervalNanos: UInt64
    ) -> UInt64? {
        guard let known = place else {
            place = Place(writtenNanos: nowNanos, suppressed: 0)
            return suppressed
        }
        // A clock value from an earlier turn counts as no time at all.
        guard nowNanos >= known.writtenNanos, nowNanos - known.writtenNanos >= intervalNanos else {
            place?.suppressed &+= 1 &+ suppressed
            return nil
        }
        place = Place(writtenNanos: nowNanos, suppressed: 0)
        return known.suppressed &+ suppressed
    }

    /// Removes causes with an expired interval. Returns their unreported lines.
    private mutating func forget(nowNanos: UInt64) -> UInt64 {
        var suppressed: UInt64 = 0
        for (key, place) in places where nowNanos >= place.writtenNanos &+ intervalNanos {
            suppressed &+= place.suppressed
            places[key] = nil
        }
        if let shared, nowNanos >= shared.writtenNanos &+ intervalNanos {
            suppressed &+= shared.suppressed
            self.shared = nil
        }
        return suppressed
    }
}

extension LogLimiter: Sendable where Key: Sendable {}

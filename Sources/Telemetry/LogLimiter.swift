/// Decides which of many alike log lines are written: one per cause and interval, the rest counted.
///
/// Pure: no clock, no log. The keys are causes from a closed or bounded set, never text from outside. At most `keysMax`
/// of them are told apart; while all places are taken, further causes share one place.
public struct LogLimiter<Key: Hashable> {
    private struct Place {
        var writtenNanos: UInt64
        var suppressed: UInt64
    }

    private let intervalNanos: UInt64
    private let keysMax: Int
    private var places: [Key: Place] = [:]
    /// Of the causes that found no place.
    private var shared: Place?

    public init(intervalNanos: UInt64 = 10_000_000_000, keysMax: Int = 64) {
        self.intervalNanos = intervalNanos
        self.keysMax = max(1, keysMax)
    }

    /// Nil: do not write this line, it is counted. Otherwise how many lines were not written since the last one of this
    /// cause; where a new cause takes the place of forgotten ones, what these had not reported yet.
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
        // A clock read of an earlier turn counts as no time at all.
        guard nowNanos >= known.writtenNanos, nowNanos - known.writtenNanos >= intervalNanos else {
            place?.suppressed &+= 1 &+ suppressed
            return nil
        }
        place = Place(writtenNanos: nowNanos, suppressed: 0)
        return known.suppressed &+ suppressed
    }

    /// Makes room: causes whose interval is over. Returns the lines that they had not reported.
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

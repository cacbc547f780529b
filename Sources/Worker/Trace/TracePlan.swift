import PushCore

/// Of whom a trace is kept, how much of it and how long (configuration `trace`).
///
/// Users are chosen by a hash of (app, user), the same in every worker: whoever is traced is traced whole.
public struct TracePlan: Sendable, Equatable {
    /// The newest records kept of a user and day.
    public var cap: Int
    public var lifeMs: Int64
    /// A user is traced whose hash is below it; nil: everybody is.
    private let threshold: UInt64?

    /// One key per user and day: with the day it is in, a key's life is known when it is made, and no push has to
    /// prolong it.
    static let dayMs: Int64 = 86_400_000

    public init(_ settings: Configuration.Trace) {
        cap = settings.cap
        lifeMs = Int64(settings.ttlHours) * 3_600_000
        threshold = settings.sample >= 1 ? nil : UInt64(max(0, settings.sample) * 18_446_744_073_709_551_615.0)
    }

    var isOff: Bool { threshold == 0 }

    public func covers(app: String, uid: String) -> Bool {
        guard let threshold else { return true }
        if threshold == 0 { return false }
        var hash = SipHash128(key0: 0x6361_7269_6c6c_6f6e, key1: 0x7472_6163_6530_3031)
        hash.update(lengthThen: app)
        hash.update(lengthThen: uid)
        return hash.finish().0 < threshold
    }

    /// A list is cut only now and then, so that a busy user's pushes are not each followed by a cut.
    func isTooLong(_ count: Int64) -> Bool { count > Int64(cap + cap / 4) }

    static func day(of ms: Int64) -> Int64 { max(0, ms) / dayMs }

    /// How long the key of a day still lives: until its last record is as old as is wanted.
    func keySeconds(day: Int64, nowMs: Int64) -> Int64 {
        max(1, ((day + 1) * Self.dayMs + lifeMs - nowMs) / 1000)
    }

    /// The days that hold what is not too old, newest first.
    public func days(nowMs: Int64) -> [Int64] {
        let first = Self.day(of: nowMs - lifeMs)
        return stride(from: Self.day(of: nowMs), through: first, by: -1).map { $0 }
    }
}

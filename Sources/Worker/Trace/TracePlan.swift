import PushCore

/// Of whom a trace is kept and how long (configuration `trace`).
///
/// Users are chosen by a hash of (app, user), the same in every worker: whoever is traced is traced whole. Of the others
/// only what APNs refused or what came too late is kept: it is rare, and asked about most.
public struct TracePlan: Sendable, Equatable {
    public let lifeMs: Int64
    /// A user is traced whose hash is below it; nil: everybody is.
    private let threshold: UInt64?

    public init(_ settings: Configuration.Trace) {
        lifeMs = Int64(settings.ttlHours) * 3_600_000
        threshold = settings.sample >= 1 ? nil : UInt64(max(0, settings.sample) * 18_446_744_073_709_551_615.0)
    }

    var isOff: Bool { threshold == 0 }

    var lifeSeconds: Int64 { lifeMs / 1000 }

    public func covers(app: String, uid: String) -> Bool {
        guard let threshold else { return true }
        if threshold == 0 { return false }
        var hash = SipHash128(key0: 0x6361_7269_6c6c_6f6e, key1: 0x7472_6163_6530_3031)
        hash.update(lengthThen: app)
        hash.update(lengthThen: uid)
        return hash.finish().0 < threshold
    }

    /// What is kept of everybody, where anything is.
    static func isFailure(_ verdict: Verdict) -> Bool { verdict == .rejected || verdict == .expired }
}

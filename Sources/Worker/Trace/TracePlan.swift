// SPDX-License-Identifier: Apache-2.0
import PushCore

/// Which users are traced, and for how long (configuration `trace`).
///
/// A hash of (app, user) selects users, equal in every worker, so a traced user is traced completely. For other users
/// only refusals by APNs and expired pushes are kept, which are rare and asked about most.
public struct TracePlan: Sendable, Equatable {
    public let lifeMs: Int64
    /// Users with a hash below it are traced; nil traces all users.
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

    /// Kept for all users, if traces are kept at all.
    static func isFailure(_ verdict: Verdict) -> Bool { verdict == .rejected || verdict == .expired }
}

// SPDX-License-Identifier: Apache-2.0
/// Identifies tokens that are probably dead. Their pushes use separate connections until APNs accepts one.
///
/// APNs reduces the streams of a connection with dead tokens, so a burst of them would slow down all others. The rule
/// uses only the bind time in the token's record, without another lookup. The client itself remembers recent refusals.
public struct SuspectRule: Sendable, Equatable {
    /// Silent tokens: bound at least this long ago, and never since. 0 disables the rule.
    public var silentMs: Int64 = 60 * 86_400_000
    /// Unconfirmed tokens: bound within this time. 0 disables the rule, because an app that has just bound is the most
    /// likely to be alive.
    public var unconfirmedMs: Int64 = 0

    public init() {}

    public func isSuspect(boundMs: Int64, nowMs: Int64) -> Bool {
        let age = nowMs.subtractingReportingOverflow(boundMs)
        // A time far outside any calendar has no meaning.
        guard !age.overflow else { return false }
        return (silentMs > 0 && age.partialValue >= silentMs)
            || (unconfirmedMs > 0 && age.partialValue < unconfirmedMs)
    }
}

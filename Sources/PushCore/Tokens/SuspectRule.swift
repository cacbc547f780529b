/// Which tokens may well be dead: their pushes travel apart, until APNs accepts one.
///
/// APNs takes streams from a connection that shows it dead tokens, so a burst of them would slow everyone down. All that
/// is asked is when the token was bound, which stands in its record: no look-up more. What APNs refused lately is the
/// client's own knowledge.
public struct SuspectRule: Sendable, Equatable {
    /// Long silent: bound so long ago, and never since. 0: nobody is.
    public var silentMs: Int64 = 60 * 86_400_000
    /// Never confirmed: bound within so long. 0: nobody is, since an app that has just bound is the likeliest to be there.
    public var unconfirmedMs: Int64 = 0

    public init() {}

    public func isSuspect(boundMs: Int64, nowMs: Int64) -> Bool {
        let age = nowMs.subtractingReportingOverflow(boundMs)
        // A time far outside of any calendar says nothing.
        guard !age.overflow else { return false }
        return (silentMs > 0 && age.partialValue >= silentMs)
            || (unconfirmedMs > 0 && age.partialValue < unconfirmedMs)
    }
}

extension LiveActivity {
    /// Apple ends an activity eight hours after its start, and takes it off the screen four hours later.
    public static let updatesEndMs: Int64 = 8 * 3_600_000
    public static let endsEndMs: Int64 = 12 * 3_600_000

    /// A record without an expiry of its own ends with this.
    public static let lifetimeMs: Int64 = 24 * 3_600_000
}

/// What a Live Activity record means for one recipient: steps 2 and 12 of contract section 5 only.
///
/// - Parameter startedMs: the first bind or start of this activity; nil: its oldest token's bind.
public func decide(
    _ activity: borrowing LiveActivity, sentMs: Int64, for recipient: borrowing Recipient, startedMs: Int64?, now: Int64
) -> Decision {
    let (age, isBeyond) = now.subtractingReportingOverflow(sentMs)
    if isBeyond || age >= LiveActivity.lifetimeMs {
        return Decision(alert: .deny(.expired), counted: false, routes: [])
    }
    let wanted: TokenRecord.Kind = activity.action == .start ? .start : .activity
    let usable = recipient.tokens.indices.filter { index in
        let record = recipient.tokens[index].record
        return record.type == wanted && (wanted == .start || record.activityID == activity.activityID)
    }
    let started = startedMs ?? usable.map { recipient.tokens[$0].record.boundMs }.min()
    if activity.action != .start, let started {
        let limit = activity.action == .end ? LiveActivity.endsEndMs : LiveActivity.updatesEndMs
        let (running, isBeyond) = now.subtractingReportingOverflow(started)
        if isBeyond || running >= limit { return Decision(alert: .deny(.activityOver), counted: false, routes: []) }
    }
    let routes = usable.map { Route(device: recipient.tokens[$0].device, way: .apns(token: $0, copyTo: nil)) }
    return Decision(alert: .allow(forced: false), counted: false, routes: routes)
}

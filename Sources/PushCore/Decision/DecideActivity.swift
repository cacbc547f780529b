import Digits

extension LiveActivity {
    /// Apple ends an activity eight hours after its start, and takes it off the screen four hours later.
    public static let updatesEndMs: Int64 = 8 * 3_600_000
    public static let endsEndMs: Int64 = 12 * 3_600_000

    /// A record without an expiry of its own ends with this.
    public static let lifetimeMs: Int64 = 24 * 3_600_000

    /// Of whom a record without `to.uids` reaches.
    public static let boundUsersMax = 10_000
}

/// What a Live Activity record means for one recipient: steps 2 and 12 of contract section 5 only.
///
/// - Parameter startedMs: the first bind or start of this activity; nil: its oldest token's bind.
public func decide(
    _ activity: borrowing LiveActivity, sentMs: Int64, for recipient: borrowing Recipient, startedMs: Int64?, now: Int64
) -> Decision {
    var trace = NoTrace()
    return decide(activity, sentMs: sentMs, for: recipient, startedMs: startedMs, now: now, trace: &trace)
}

/// The same decision, with each step told to `trace` (`explain`).
public func decide(
    _ activity: borrowing LiveActivity, sentMs: Int64, for recipient: borrowing Recipient, startedMs: Int64?,
    now: Int64, trace: inout some DecisionTrace
) -> Decision {
    let (age, isBeyond) = now.subtractingReportingOverflow(sentMs)
    let expired = isBeyond || age >= LiveActivity.lifetimeMs
    trace.record(
        .expiry, input: "sent \(sentMs), now \(now), lifetime \(LiveActivity.lifetimeMs) ms",
        outcome: expired ? Reason.expired.rawValue : "in time")
    if expired { return Decision(alert: .deny(.expired), counted: false, routes: [], needsClaim: false) }
    let wanted: TokenRecord.Kind = activity.action == .start ? .start : .activity
    let usable = recipient.tokens.indices.filter { activity.mayUse($0, of: recipient.tokens) }
    let started = startedMs ?? usable.map { recipient.tokens[$0].record.boundMs }.min()
    let isOver = activity.isOver(startedMs: started, now: now)
    trace.record(
        .token,
        input: "\(activity.action.rawValue) wants a \(wanted.rawValue) token: \(usable.count) of "
            + "\(recipient.tokens.count); began \(started.map { String($0) } ?? "-")",
        outcome: isOver ? Reason.activityOver.rawValue : usable.isEmpty ? Reason.noToken.rawValue : "reached")
    if isOver { return Decision(alert: .deny(.activityOver), counted: false, routes: []) }
    let routes = usable.map { Route(device: recipient.tokens[$0].device, way: .apns(token: $0, copyTo: nil)) }
    return Decision(alert: .allow(forced: false), counted: false, routes: routes)
}

extension LiveActivity {
    /// The devices that have a token for this record.
    public func addressedDevices(of recipient: borrowing Recipient) -> [String] {
        var devices: [String] = []
        for index in recipient.tokens.indices where mayUse(index, of: recipient.tokens) {
            devices.append(recipient.tokens[index].device)
        }
        return devices
    }

    /// An update or end goes to the activity's own tokens. A start goes to the start tokens of its attributes type, and on a
    /// device without one to that which names no type.
    fileprivate func mayUse(_ index: Int, of tokens: [BoundToken]) -> Bool {
        let token = tokens[index]
        guard action == .start else {
            return token.record.type == .activity && activityID.isSame(as: token.record.activityID)
        }
        guard token.record.type == .start else { return false }
        guard let type = token.record.attributesType else {
            guard let attributesType else { return true }
            return !tokens.contains {
                $0.device.isSame(as: token.device) && $0.record.type == .start
                    && attributesType.isSame(as: $0.record.attributesType)
            }
        }
        return type.isSame(as: attributesType)
    }

    /// A start begins one anew; an end is still of use for some hours after the last update.
    fileprivate func isOver(startedMs: Int64?, now: Int64) -> Bool {
        guard action != .start, let startedMs else { return false }
        let (running, isBeyond) = now.subtractingReportingOverflow(startedMs)
        return isBeyond || running >= (action == .end ? Self.endsEndMs : Self.updatesEndMs)
    }
}

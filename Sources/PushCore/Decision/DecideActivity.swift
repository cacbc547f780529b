// SPDX-License-Identifier: Apache-2.0
import Digits

extension LiveActivity {
    /// Apple ends an activity eight hours after its start, and removes it from the screen four hours later.
    public static let updatesEndMs: Int64 = 8 * 3_600_000
    public static let endsEndMs: Int64 = 12 * 3_600_000

    /// The lifetime of a record without its own expiry.
    public static let lifetimeMs: Int64 = 24 * 3_600_000

    /// How many users a record without `to.uids` reaches at most.
    public static let boundUsersMax = 10_000
}

/// The state of one user's Live Activity.
public struct ActivityState: Sendable, Equatable {
    /// Its last start, else its first bind, Unix ms; nil: not known.
    public var startedMs: Int64?
    /// APNs accepted an `end` for some device of the user, and no start has followed it.
    public var isEnded: Bool

    public init(startedMs: Int64? = nil, isEnded: Bool = false) {
        self.startedMs = startedMs
        self.isEnded = isEnded
    }

    /// Whether nothing of this kind is sent any more (contract section 2, `live_activity`). A start begins the activity again.
    /// An end is still of use for some hours after the last update.
    public func isOver(for action: LiveActivity.Action, now: Int64) -> Bool {
        switch action {
        case .start: false
        case .update: isEnded || hasRun(LiveActivity.updatesEndMs, now: now)
        case .end: hasRun(LiveActivity.endsEndMs, now: now)
        }
    }

    private func hasRun(_ ms: Int64, now: Int64) -> Bool {
        guard let startedMs else { return false }
        let (running, isBeyond) = now.subtractingReportingOverflow(startedMs)
        return isBeyond || running >= ms
    }
}

/// Decides a Live Activity record for one recipient: steps 2 and 12 of contract section 5 only.
///
/// - Parameter state: of this activity; if its start is not known, the bind of its oldest token takes the place.
public func decide(
    _ activity: borrowing LiveActivity, sentMs: Int64, for recipient: borrowing Recipient, state: ActivityState,
    now: Int64
) -> Decision {
    var trace = NoTrace()
    return decide(activity, sentMs: sentMs, for: recipient, state: state, now: now, trace: &trace)
}

/// The same decision; `trace` records each step (`explain`).
public func decide(
    _ activity: borrowing LiveActivity, sentMs: Int64, for recipient: borrowing Recipient, state: ActivityState,
    now: Int64, trace: inout some DecisionTrace
) -> Decision {
    if let expired = denyForExpiry(sentMs: sentMs, now: now, trace: &trace) { return expired }
    // A broadcast has one recipient with one token: the channel.
    if activity.channel != nil {
        let routes = recipient.tokens.indices.map {
            Route(device: recipient.tokens[$0].device, way: .apns(token: $0, copyTo: nil))
        }
        return Decision(alert: .allow(forced: false), counted: false, routes: routes)
    }
    let wanted: TokenRecord.Kind = activity.action == .start ? .start : .activity
    let usable = recipient.tokens.indices.filter { activity.mayUse($0, of: recipient.tokens) }
    var state = state
    if state.startedMs == nil { state.startedMs = usable.map { recipient.tokens[$0].record.boundMs }.min() }
    let isOver = state.isOver(for: activity.action, now: now)
    trace.record(
        .token,
        input: "\(activity.action.rawValue) wants a \(wanted.rawValue) token: \(usable.count) of "
            + "\(recipient.tokens.count); began \(state.startedMs.map { InstantText.text(ms: $0) } ?? "never"), ended \(state.isEnded)",
        outcome: isOver ? Reason.activityOver.rawValue : usable.isEmpty ? Reason.noToken.rawValue : "reached")
    if isOver { return Decision(alert: .deny(.activityOver), counted: false, routes: []) }
    let routes = usable.map { Route(device: recipient.tokens[$0].device, way: .apns(token: $0, copyTo: nil)) }
    return Decision(alert: .allow(forced: false), counted: false, routes: routes)
}

/// Step 2: nil if the event is in time.
private func denyForExpiry(sentMs: Int64, now: Int64, trace: inout some DecisionTrace) -> Decision? {
    let (age, isBeyond) = now.subtractingReportingOverflow(sentMs)
    let expired = isBeyond || age >= LiveActivity.lifetimeMs
    trace.record(
        .expiry,
        input:
            "sent \(InstantText.text(ms: sentMs)), now \(InstantText.text(ms: now)), lasts \(LiveActivity.lifetimeMs / 3_600_000) h",
        outcome: expired ? Reason.expired.rawValue : "in time")
    return expired ? Decision(alert: .deny(.expired), counted: false, routes: [], needsClaim: false) : nil
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

    /// An update or end goes to the activity's own tokens. A start goes to the start tokens of its attributes type, and
    /// on a device without one to the token without a type.
    ///
    /// - Parameter index: a place in `tokens`, which are all tokens of the user.
    public func mayUse(_ index: Int, of tokens: [BoundToken]) -> Bool {
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
}

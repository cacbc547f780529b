// SPDX-License-Identifier: Apache-2.0
extension Decision {
    /// The same decision after the claim, or the check just before sending, found the message read or revoked
    /// (contract section 5, step 15): no route alerts any more.
    ///
    /// Live devices still get the message. A device with a planned push ends with the reason, in a record of its own,
    /// because steps 2-9 had let the alert through.
    public func withoutAlerts(isRead: Bool, isRevoked: Bool) -> Decision {
        guard isRead || isRevoked else { return self }
        let reason: Reason = isRead ? .alreadyRead : .revoked
        var decision = self
        for index in routes.indices { decision.routes[index].way = routes[index].way.withoutAlert(reason) }
        return decision
    }
}

extension Route.Way {
    /// The route for a message that must not alert any more.
    ///
    /// - Parameter reason: the outcome of a device with a planned push.
    public func withoutAlert(_ reason: Reason) -> Route.Way {
        switch self {
        case .connection(let presence, _, _): .connection(presence: presence, alert: false, ackWithinMs: nil)
        case .apns(_, let copyTo?): .connection(presence: copyTo.presence, alert: false, ackWithinMs: nil)
        case .apns(_, nil), .hold, .none(.alertsOff): .none(reason)
        case .none: self
        }
    }
}

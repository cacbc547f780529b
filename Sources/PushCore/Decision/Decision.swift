// SPDX-License-Identifier: Apache-2.0
import Digits

/// The result of `decide` for one recipient: whether an alert is allowed, whether it counts, and the route to each
/// device.
public struct Decision: Sendable, Equatable {
    /// Steps 2 and 6-9. A deny suppresses the alert only: live devices still get the message.
    public var alert: Alert
    /// Step 10: whether this message raises the user's badge. Veto, mute and DND decides; step 6 does not.
    ///
    /// The store knows which messages were read or revoked first, checks this in one atomic step with the duplicate
    /// check, and adds nothing for them. It still needs such a message as counted: a client's report between sending
    /// and reading includes it, and the read subtracts from that total only counted messages. Otherwise the badge would
    /// depend on the order of the records.
    public var counted: Bool
    /// Step 11, one per device that gets or could get something. Empty with an allowed `alert` means `noToken`.
    public var routes: [Route]
    /// Whether the pair needs a claim. An expired event needs none, because nothing is sent. But an expired revoke that
    /// decreases is claimed, because the claim lowers the badge, whatever happens to the alert.
    public var needsClaim: Bool

    public enum Alert: Sendable, Equatable {
        case allow(forced: Bool)
        case deny(Reason)
    }

    public init(alert: Alert, counted: Bool, routes: [Route], needsClaim: Bool = true) {
        self.alert = alert
        self.counted = counted
        self.routes = routes
        self.needsClaim = needsClaim
    }

    public func hasRoute(to device: String) -> Bool { routes.contains { $0.device.isSame(as: device) } }

    /// Step 12: an alert is allowed, but no device has a usable token or is live.
    public var reachesNobody: Bool {
        if case .allow = alert { return routes.isEmpty }
        return false
    }

    /// All that is left of the user is devices that show no alerts. For an SMS their tokens are of no use.
    public var reachesNoAlert: Bool {
        !routes.isEmpty && routes.allSatisfy { $0.way == .none(.alertsOff) }
    }

    /// The reason of the one record without a device; nil if there is one record per route (contract section 3).
    public var finalReason: Reason? {
        if case .deny(let reason) = alert { return reason }
        return routes.isEmpty ? .noToken : nil
    }

    // MARK: Without alerts

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

/// The route to one device. Indices refer to the `Recipient` of the decision.
public struct Route: Sendable, Equatable {
    public var device: String
    public var way: Way

    public enum Way: Sendable, Equatable {
        /// A push to `tokens[token]`. `copyTo`: with strategy 4, the live connection that gets a copy after the push's
        /// outcome.
        case apns(token: Int, copyTo: Copy?)
        /// A delivery to `presence[presence]`. `ackWithinMs` is set if an ack is wanted: without it in time, the
        /// recipient is decided again with that connection suspect.
        case connection(presence: Int, alert: Bool, ackWithinMs: Int64?)
        /// A live desktop comes first: `tokens[token]` is pushed `holdMs` after now unless read before. Nil means never
        /// once the desktop has the message, by its ack or its own push; `desktop_online` is then final.
        case hold(token: Int, holdMs: Int64?)
        /// Nothing is sent to this device.
        case none(Reason)
    }

    /// The live connection that gets a copy after its device's push.
    public struct Copy: Sendable, Equatable {
        /// Its index in the recipient's presence.
        public var presence: Int
        /// If the push failed, the copy may raise the alert: the message is not silent, and the user does not look at
        /// the conversation.
        public var mayAlert: Bool

        public init(presence: Int, mayAlert: Bool) {
            self.presence = presence
            self.mayAlert = mayAlert
        }
    }

    public init(device: String, way: Way) {
        self.device = device
        self.way = way
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

import Digits

/// What `decide` says of one recipient: whether an alert may be raised, whether it counts, and the way to each device.
public struct Decision: Sendable, Equatable {
    /// Steps 2 and 6-9. A deny withholds the alert only: live devices still get the message.
    public var alert: Alert
    /// Step 10: whether this message raises the user's badge. Veto, mute and quiet hours say so; step 6 does not.
    ///
    /// The store knows what was read or revoked first, checks it in one atomic step with the duplicate check, and adds
    /// nothing for what is gone. It must still hear of such a message as counted: a client's report made between sending
    /// and reading holds it, and the read takes off that total only what was counted. Otherwise the badge would depend
    /// on the order in which the records arrive.
    public var counted: Bool
    /// Step 11, one per device that gets or could get something; empty with `alert` allowed means `noToken`.
    public var routes: [Route]
    /// Whether the pair is to be claimed. Not what expired: nothing is sent of it, so nothing is to be kept apart. But an
    /// expired recall that decreases is claimed, since the claim lowers the badge, whatever becomes of the alert.
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

    /// Why there is one record without a device for this recipient; nil: there is one per route (contract section 3).
    public var finalReason: Reason? {
        if case .deny(let reason) = alert { return reason }
        return routes.isEmpty ? .noToken : nil
    }
}

/// The way to one device. Indices point into the `Recipient` that was decided about.
public struct Route: Sendable, Equatable {
    public var device: String
    public var way: Way

    public enum Way: Sendable, Equatable {
        /// A push to `tokens[token]`. `copyTo`: with strategy 4, the live connection that gets a copy after the push's
        /// outcome.
        case apns(token: Int, copyTo: Copy?)
        /// A delivery to `presence[presence]`. `ackWithinMs` is set where an ack is wanted: without it by then, the
        /// recipient is decided again with that connection suspect.
        case connection(presence: Int, alert: Bool, ackWithinMs: Int64?)
        /// A live desktop comes first: `tokens[token]` is pushed at `holdMs` after now unless read by then; nil: never once
        /// the desktop has it, by its ack or by a push of its own, and `desktop_online` is final then.
        case hold(token: Int, holdMs: Int64?)
        /// Nothing goes to this device.
        case none(Reason)
    }

    /// The live connection that gets a copy after its device's push.
    public struct Copy: Sendable, Equatable {
        /// Its place in the recipient's presence.
        public var presence: Int
        /// Where the push failed, the copy may raise the alert: the message is no silent one, and the user does not look at
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

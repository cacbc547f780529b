// SPDX-License-Identifier: Apache-2.0
import Digits

/// The devices that have a route where an alert is allowed.
public func addressedDevices(
    _ message: borrowing Message, of recipient: borrowing Recipient, policy: borrowing AppPolicy, now: Int64
) -> [String] {
    Router(message, policy: policy, allowed: true, now: now).routes(to: recipient).map(\.device)
}

/// Step 11: the route to each device by strategy, liveness and desktop policy (contract section 5).
struct Router {
    private let conversation: String
    private let tokenType: TokenRecord.Kind
    private let strategy: Strategy
    /// The message is pushed as an alert: it is neither silent nor a call.
    private let isAlert: Bool
    /// Steps 2-9 allowed an alert.
    private let allowed: Bool
    /// A delivery may raise an alert: alerts are allowed, and the message is not silent.
    private let alerts: Bool
    private let now: Int64
    /// The message goes to these devices only: all routes are chosen as if the user had no others.
    private let limit: DeviceLimit?

    init(_ message: borrowing Message, policy: borrowing AppPolicy, allowed: Bool, now: Int64) {
        self.conversation = message.conversation.id
        self.tokenType = message.tokenType
        self.strategy = message.push.strategy ?? policy.strategy
        self.isAlert = !message.push.silent && !message.push.voip
        self.allowed = allowed
        self.alerts = allowed && !message.push.silent
        self.now = now
        self.limit = message.to.limit
    }

    // Elements are read in place, because a copy costs a reference count for each of its texts.
    func routes(to recipient: borrowing Recipient) -> [Route] {
        var routes: [Route] = []
        if allowed {
            let desktop = desktopPolicy(of: recipient)
            for index in recipient.tokens.indices where isUsable(index, of: recipient) {
                let presence = recipient.presenceIndex(of: recipient.tokens[index].device)
                let way = way(ofToken: index, presence: presence, of: recipient, desktop)
                routes.append(Route(device: recipient.tokens[index].device, way: way))
            }
        }
        // APNs only: nothing uses the long connection.
        guard strategy != .apnsOnly else { return routes }
        for index in recipient.presence.indices where recipient.presence[index].liveness(at: now).isLive {
            let device = recipient.presence[index].device
            guard isAddressed(device, of: recipient) else { continue }
            guard !routes.contains(where: { $0.device.isSame(as: device) }) else { continue }
            routes.append(Route(device: device, way: connection(index, of: recipient)))
        }
        return routes
    }

    /// The newest token of the wanted type on its device, so that there is one alert per device.
    private func isUsable(_ index: Int, of recipient: borrowing Recipient) -> Bool {
        guard recipient.tokens[index].record.type == tokenType,
            isAddressed(recipient.tokens[index].device, of: recipient)
        else { return false }
        for other in recipient.tokens.indices where other != index {
            guard recipient.tokens[other].record.type == tokenType,
                recipient.tokens[other].device.isSame(as: recipient.tokens[index].device)
            else { continue }
            if (recipient.tokens[other].version, index) > (recipient.tokens[index].version, other) { return false }
        }
        return true
    }

    private func way(
        ofToken token: Int, presence: Int?, of recipient: borrowing Recipient, _ desktop: DesktopPolicy
    ) -> Route.Way {
        let live = presence.flatMap { recipient.presence[$0].liveness(at: now).isLive ? $0 : nil }
        let isDesktop = presence.map { recipient.presence[$0].platform.isDesktop } ?? false
        let holds = desktop.holds && !isDesktop
        // The device shows no alert: nothing waits for a desktop, and a live device gets the message by its connection.
        let isOff = !mayPush(token, of: recipient)
        switch (strategy, live) {
        case (.connectionElseAPNs, let live?), (.connectionOnly, let live?):
            return connection(live, of: recipient)
        case (.connectionOnly, nil):
            return .none(.connectionOnly)
        case (.apnsThenConnection, let live?):
            // A held push cannot come first. The live device gets the message at once by its connection.
            if holds || isOff { return connection(live, of: recipient) }
            return .apns(token: token, copyTo: Route.Copy(presence: live, mayAlert: alerts(by: live, of: recipient)))
        case (.connectionElseAPNs, nil), (.apnsThenConnection, nil), (.apnsOnly, _):
            if isOff { return .none(.alertsOff) }
            return holds ? desktop.way(ofToken: token) : .apns(token: token, copyTo: nil)
        }
    }

    /// Whether a push of this message goes to the token: no alert goes to a device that shows none.
    private func mayPush(_ token: Int, of recipient: borrowing Recipient) -> Bool {
        recipient.tokens[token].record.showsAlerts || !isAlert
    }

    /// `active_conv` equals the conversation: the user looks at it.
    private func alerts(by index: Int, of recipient: borrowing Recipient) -> Bool {
        alerts && !conversation.isSame(as: recipient.presence[index].activeConversation)
    }

    private func connection(_ index: Int, of recipient: borrowing Recipient) -> Route.Way {
        let alert = alerts(by: index, of: recipient)
        let ackWithinMs = alert ? recipient.presence[index].liveness(at: now).ackWithinMs : nil
        return .connection(presence: index, alert: alert, ackWithinMs: ackWithinMs)
    }

    private func desktopPolicy(of recipient: borrowing Recipient) -> DesktopPolicy {
        guard !recipient.settings.pushWhenDesktopOnline else { return .none }
        var isLive = false
        var willHaveIt = false
        for index in recipient.presence.indices where recipient.presence[index].platform.isDesktop {
            guard recipient.presence[index].liveness(at: now).isLive,
                isAddressed(recipient.presence[index].device, of: recipient)
            else { continue }
            isLive = true
            if conversation.isSame(as: recipient.presence[index].activeConversation) { continue }
            if strategy == .apnsOnly {
                // Nothing uses its connection, so its own push shows whether it has the message. A desktop without a
                // token is served by another system's connection, and no ack is expected.
                if hasUsableToken(recipient.presence[index].device, of: recipient) { willHaveIt = true }
            } else if alerts {
                willHaveIt = true
            }
        }
        guard isLive else { return .none }
        if recipient.settings.holdSeconds > 0 { return .hold(ms: Int64(recipient.settings.holdSeconds) &* 1000) }
        return willHaveIt ? .untilDesktopHasIt : .final
    }

    private func isAddressed(_ device: String, of recipient: borrowing Recipient) -> Bool {
        limit?.allows(device, of: recipient) ?? true
    }

    private func hasUsableToken(_ device: String, of recipient: borrowing Recipient) -> Bool {
        recipient.tokens.indices.contains { index in
            recipient.tokens[index].record.type == tokenType && recipient.tokens[index].device.isSame(as: device)
                && mayPush(index, of: recipient)
        }
    }
}

/// The effect of a live desktop on the user's phones if `push_when_desktop_online` is false.
private enum DesktopPolicy {
    case none
    /// The phones are pushed after this time unless the message was read before.
    case hold(ms: Int64)
    /// The phones are not pushed once the desktop has the message, by an ack or its own push.
    case untilDesktopHasIt
    /// No ack will come (the conversation is open there, or nothing alerts): the phones are not pushed.
    case final

    var holds: Bool {
        if case .none = self { return false }
        return true
    }

    func way(ofToken token: Int) -> Route.Way {
        switch self {
        case .none: .apns(token: token, copyTo: nil)
        case .hold(let ms): .hold(token: token, holdMs: ms)
        case .untilDesktopHasIt: .hold(token: token, holdMs: nil)
        case .final: .none(.desktopOnline)
        }
    }
}

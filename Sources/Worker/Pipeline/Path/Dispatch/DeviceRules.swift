// SPDX-License-Identifier: Apache-2.0
import APNs
import Digits
import PushCore

extension Route.Way {
    /// With strategy 4, the connection that gets a copy, and whether it may alert.
    var copyTo: Route.Copy? {
        if case .apns(_, let copyTo) = self { return copyTo }
        return nil
    }

    /// Strategy 4 after the push's end: whether the live device's copy alerts. Nil if no copy is sent.
    ///
    /// - Parameter alerts: whether the push's end allows it (`alertsByCopy`).
    func copyAlert(_ alerts: Bool?) -> Bool? {
        guard let copyTo, let alerts else { return nil }
        return alerts && copyTo.mayAlert
    }

    /// Strategy 4 after an earlier try's successful push: the live connection in the recipient's presence with a copy
    /// that may have been lost in that try. Nil for none.
    func copyOfEarlierPush(_ strategy: Strategy) -> Int? {
        guard strategy == .apnsThenConnection else { return nil }
        switch self {
        case .apns(_, let copyTo): return copyTo?.presence
        case .connection(let presence, _, _): return presence
        case .hold, .none: return nil
        }
    }
}

extension Reason {
    /// Strategy 4 after a push that ended for this reason before it was sent: whether the live device's copy may alert.
    /// Nil if there is no copy, because an expired event sends nothing.
    var alertsByCopy: Bool? {
        switch self {
        case .expired: nil
        // A read or revoked message raises no alert any more.
        case .alreadyRead, .revoked: false
        default: true
        }
    }
}

extension Verdict {
    /// For pushes that end for this reason before they are sent.
    init(ofEnd reason: Reason) { self = reason == .expired ? .expired : .suppressed }
}

extension NoAnswer {
    /// The same for an end without a reason from APNs. A push that may have arrived gets no second alert: a missing
    /// alert is the lesser evil.
    var alertsByCopy: Bool { self != .unanswered }
}

extension PushOutcome {
    /// The same for a push in the APNs client.
    var alertsByCopy: Bool? {
        switch self {
        case .expired: nil
        case .accepted: false
        // A newer one alerts in its place.
        case .superseded: false
        case .rejected, .deferred: true
        case .unprocessed: NoAnswer.unprocessed.alertsByCopy
        case .unknown: NoAnswer.unanswered.alertsByCopy
        }
    }
}

/// The devices for which an earlier try of the recipient, or an earlier round, has done something.
struct EarlierDevices {
    /// APNs accepted a push of an earlier try.
    var accepted: [EarlierPush] = []
    /// They acknowledged a delivery of an earlier try or round.
    var acknowledged: [String] = []
    /// An earlier try delivered to them, or recorded another end.
    var addressed: [String] = []
    /// An earlier try decided for its devices, and may have recorded any of them.
    var mayHaveRecords = false

    /// Some device has a verdict of its own, so that every device gets one.
    var haveVerdicts: Bool { !accepted.isEmpty || !acknowledged.isEmpty || !addressed.isEmpty }
}

extension Decision {
    /// It waits while changes of its user are not stored. A live device gets its delivery: the gateways know the device, and its
    /// pushes to other devices wait by themselves.
    var waitsForChanges: Bool {
        if alert == .deny(.expired) { return false }
        return !routes.contains { if case .connection = $0.way { true } else { false } }
    }

    /// Adds a route without a way for each device that needs an end of its own and has no route now (contract section 3: one
    /// verdict per device, or one verdict without device).
    ///
    /// - Parameter allowed: the devices that have a route where an alert is allowed.
    func including(_ earlier: EarlierDevices, allowed: @autoclosure () -> [String]) -> Decision {
        guard earlier.haveVerdicts || earlier.mayHaveRecords else { return self }
        var decision = self
        var isDenied = false
        if case .deny = alert { isDenied = true }
        let reason = isDenied ? finalReason ?? .noToken : .noToken
        for device in earlier.acknowledged + earlier.addressed + (isDenied ? allowed() : [])
        where !decision.hasRoute(to: device) && !earlier.accepted.containsSame(device) {
            decision.routes.append(Route(device: device, way: .none(reason)))
        }
        return decision
    }

    /// The decision of an earlier try that recorded the recipient without a device, or was about to. Live devices still get the
    /// message.
    func repeating(_ reason: Reason?) -> Decision {
        guard let reason, finalReason == nil else { return self }
        var decision = self
        decision.alert = .deny(reason)
        decision.routes = routes.compactMap { route in
            let way = route.way.withoutAlert(reason)
            if case .connection = way { return Route(device: route.device, way: way) }
            return nil
        }
        return decision
    }

    /// Why a device that had a token has no route any more: the deny, or its token moved.
    var reasonOfLostRoute: Reason {
        if case .deny(let reason) = alert { return reason }
        return .tokenMoved
    }

    /// The reason of the one record without a device for this recipient; nil if there is none.
    ///
    /// - Parameter hasDeviceVerdicts: some device has a record of its own, or will have one: then every device has.
    func reasonWithoutDevice(hasDeviceVerdicts: Bool) -> Reason? { hasDeviceVerdicts ? nil : finalReason }
}

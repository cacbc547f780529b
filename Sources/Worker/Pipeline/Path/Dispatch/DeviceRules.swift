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

extension Decision {
    /// It waits while changes of its user are not stored. A live device gets its delivery: the gateways know the device, and its
    /// pushes to other devices wait by themselves.
    var waitsForChanges: Bool {
        if alert == .deny(.expired) { return false }
        return !routes.contains { if case .connection = $0.way { true } else { false } }
    }
}

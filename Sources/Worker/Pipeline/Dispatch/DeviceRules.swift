import APNs
import PushCore

extension Route.Way {
    /// A device that acknowledged an earlier delivery needs nothing by this way.
    var endsByEarlierAck: Bool {
        switch self {
        case .connection(_, _, .some), .apns, .hold, .none: true
        case .connection(_, _, nil): false
        }
    }

    /// With strategy 4, the connection that gets a copy, and whether it may alert.
    var copyTo: Route.Copy? {
        if case .apns(_, let copyTo) = self { return copyTo }
        return nil
    }

    /// Strategy 4, and the push has ended: whether the live device's copy alerts. Nil: none goes.
    ///
    /// - Parameter alerts: what the push's end says of it (`alertsByCopy`).
    func copyAlert(_ alerts: Bool?) -> Bool? {
        guard let copyTo, let alerts else { return nil }
        return alerts && copyTo.mayAlert
    }

    /// Strategy 4, and an earlier try pushed the device with success: the live connection, in the recipient's presence, whose
    /// copy may have been lost with that try. Nil: none.
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
    /// Strategy 4, and the push ended for this reason before it was sent: whether the live device's copy may alert. Nil: it
    /// gets none, since nothing is sent of what expired.
    var alertsByCopy: Bool? {
        switch self {
        case .expired: nil
        // What is read or recalled raises no alert any more.
        case .alreadyRead, .revoked: false
        default: true
        }
    }
}

extension NoAnswer {
    /// The same for an end that APNs gave no reason for. What may have arrived raises no second alert: none at all is the
    /// lesser evil.
    var alertsByCopy: Bool { self != .unanswered }
}

extension PushOutcome {
    /// The same for a push that was with the APNs client.
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
    /// Why there is one record without a device for this recipient; nil: none.
    ///
    /// - Parameters:
    ///   - isReached: a device acknowledged what an earlier try or round delivered, and is recorded so: that is the verdict,
    ///     and nothing that is decided now stands beside it.
    ///   - hasDeviceRecords: he has records with a device, or will have: each device tells by itself that no way led to it.
    func reasonWithoutDevice(isReached: Bool, hasDeviceRecords: Bool) -> Reason? {
        guard !isReached, let reason = finalReason else { return nil }
        return reason == .noToken && hasDeviceRecords ? nil : reason
    }
}

import PushCore

extension Route.Way {
    /// A device that acknowledged an earlier delivery needs nothing by this way.
    var endsByEarlierAck: Bool {
        switch self {
        case .connection(_, _, .some), .apns, .hold: true
        case .connection(_, _, nil), .none: false
        }
    }

    /// With strategy 4, where in the recipient's presence the connection stands that gets a copy.
    var copyTo: Int? {
        if case .apns(_, let copyTo) = self { return copyTo }
        return nil
    }
}

extension Reason {
    /// Strategy 4, and the push ended for this reason before it was sent: whether the live device's copy alerts. Nil: it gets
    /// none, since nothing is sent of what expired.
    var alertsByCopy: Bool? {
        switch self {
        case .expired: nil
        // What is read or recalled raises no alert any more.
        case .alreadyRead, .revoked: false
        default: true
        }
    }
}

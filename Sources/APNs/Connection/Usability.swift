// SPDX-License-Identifier: Apache-2.0
/// Whether a client's connections are of use, and why not: a value of `ConnectionPool`.
struct Usability {
    private(set) var isUsable = false
    /// The reason why no connection is ready, from the last one that was lost or failed; nil while one is ready.
    private(set) var unusableBecause: String?
    /// APNs' reason for ending connections or refusing the credential; nil when a connection is ready again.
    var farewell: APNsFarewell?
    /// How new connections last turned out to be of no use; nil once a push was accepted.
    var stall: ConnectionHealth.Suspicion?

    mutating func becameUsable() {
        isUsable = true
        farewell = nil
        unusableBecause = nil
    }

    mutating func becameUnusable(_ cause: String) {
        isUsable = false
        unusableBecause = cause
    }
}

extension ConnectionHealth.Suspicion {
    /// Why no connection is of use, for an operator.
    var description: String {
        switch self {
        case .frozen: "APNs answers nothing on a new connection"
        case .window: "APNs gives back no window"
        case .streams: "APNs allows no streams"
        case .slow: "APNs is slow"
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
/// Whether pushes may be sent with a credential. A 403 closes it, one accepted probe opens it again.
struct CredentialGate: Equatable {
    enum State: Equatable {
        /// Goes to `paused`.
        case open
        /// Nothing is sent; after `probeAtNanos` goes to `probing`.
        case paused(probeAtNanos: UInt64)
        /// One push is in flight. Goes to `open` or `paused`, or remains if its result is unknown.
        case probing
    }

    private(set) var state: State = .open
    private let probeNanos: UInt64

    init(probeNanos: UInt64) {
        self.probeNanos = probeNanos
    }

    var isPaused: Bool { state != .open }

    /// The number of pushes that may be sent now.
    func allowance(nowNanos: UInt64) -> Int {
        switch state {
        case .open: .max
        case .paused(let at): nowNanos >= at ? 1 : 0
        case .probing: 0
        }
    }

    /// A change may have cured it, so a probe may be sent now.
    mutating func retryNow(nowNanos: UInt64) {
        if state != .open { state = .paused(probeAtNanos: nowNanos) }
    }

    /// A push was sent.
    mutating func submitted() {
        if case .paused = state { state = .probing }
    }

    /// APNs refused the credential. Returns true if this closed the gate.
    mutating func refused(nowNanos: UInt64) -> Bool {
        let wasOpen = state == .open
        state = .paused(probeAtNanos: nowNanos &+ probeNanos)
        return wasOpen
    }

    /// APNs judged a push itself, so it accepts the credential. Returns true if this opened the gate.
    ///
    /// A late answer from before the pause opens nothing; only the probe does.
    mutating func proven() -> Bool {
        guard state == .probing else { return false }
        state = .open
        return true
    }

    /// The probe ended without a judgement.
    mutating func probeLost(nowNanos: UInt64) {
        if state == .probing { state = .paused(probeAtNanos: nowNanos &+ probeNanos / 4) }
    }
}

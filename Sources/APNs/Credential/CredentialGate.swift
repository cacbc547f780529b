/// Whether pushes may leave with a credential; closed by a 403, opened again by one accepted probe.
struct CredentialGate: Equatable {
    enum State: Equatable {
        /// Goes to `paused`.
        case open
        /// Nothing leaves; after `probeAtNanos` goes to `probing`.
        case paused(probeAtNanos: UInt64)
        /// One push is on its way; goes to `open` or `paused`, or stays where its fate is not known.
        case probing
    }

    private(set) var state: State = .open
    private let probeNanos: UInt64

    init(probeNanos: UInt64) {
        self.probeNanos = probeNanos
    }

    var isPaused: Bool { state != .open }

    /// How many pushes may leave now.
    func allowance(nowNanos: UInt64) -> Int {
        switch state {
        case .open: .max
        case .paused(let at): nowNanos >= at ? 1 : 0
        case .probing: 0
        }
    }

    /// Something changed that may have mended it: a probe may go now.
    mutating func retryNow(nowNanos: UInt64) {
        if state != .open { state = .paused(probeAtNanos: nowNanos) }
    }

    /// A push left.
    mutating func submitted() {
        if case .paused = state { state = .probing }
    }

    /// APNs refused the credential. Returns true when this closed the gate.
    mutating func refused(nowNanos: UInt64) -> Bool {
        let wasOpen = state == .open
        state = .paused(probeAtNanos: nowNanos &+ probeNanos)
        return wasOpen
    }

    /// APNs judged a push on its own merits, so it knows the credential. Returns true when this opened the gate.
    ///
    /// A late answer from before the pause opens nothing: only the probe does.
    mutating func proven() -> Bool {
        guard state == .probing else { return false }
        state = .open
        return true
    }

    /// The probe came back without a judgement.
    mutating func probeLost(nowNanos: UInt64) {
        if state == .probing { state = .paused(probeAtNanos: nowNanos &+ probeNanos / 4) }
    }
}

import EventLoop

/// Whether the endpoint is asked at all: after a row of "unavailable" answers pushes wait here, and one asks now and then.
///
/// Waiting pushes are kept, never given up for it: a server that is down is no fault of theirs. Pure; times are injected.
struct EndpointBreaker: Equatable {
    enum State: Equatable {
        /// Goes to `open`.
        case closed
        /// Nothing leaves; after `probeAtNanos` goes to `probing`.
        case open(probeAtNanos: UInt64)
        /// One push is on its way; goes to `closed` or `open`.
        case probing
    }

    private(set) var state: State = .closed
    private var inRow = 0
    private var openings = 0
    private let threshold: Int
    private let backoff: Backoff

    /// - Parameter threshold: answers in a row, without any other between them, that open it.
    init(threshold: Int, backoff: Backoff) {
        self.threshold = threshold
        self.backoff = backoff
    }

    var isOpen: Bool { state != .closed }

    /// How many pushes may leave now.
    func allowance(nowNanos: UInt64) -> Int {
        switch state {
        case .closed: .max
        case .open(let at): nowNanos >= at ? 1 : 0
        case .probing: 0
        }
    }

    mutating func submitted() {
        if case .open = state { state = .probing }
    }

    /// The endpoint said that it is unavailable. True when this opened the breaker.
    mutating func failed(retryAfterNanos: UInt64, nowNanos: UInt64, random: inout SmallRandom) -> Bool {
        inRow += 1
        switch state {
        // A late answer of the same trouble.
        case .open: return false
        case .closed: guard inRow >= threshold else { return false }
        case .probing: break
        }
        let wasClosed = state == .closed
        openings += 1
        let wait = max(retryAfterNanos, backoff.delayNanos(failures: openings, random: &random))
        state = .open(probeAtNanos: nowNanos &+ wait)
        return wasClosed
    }

    /// The probe came back without an answer.
    mutating func probeLost(nowNanos: UInt64, random: inout SmallRandom) {
        guard state == .probing else { return }
        state = .open(probeAtNanos: nowNanos &+ backoff.delayNanos(failures: openings, random: &random))
    }

    /// The endpoint judged a push. True when this closed the breaker.
    mutating func succeeded() -> Bool {
        inRow = 0
        guard state != .closed else { return false }
        state = .closed
        openings = 0
        return true
    }
}

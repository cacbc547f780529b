// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// Whether the endpoint is used at all: after consecutive "unavailable" answers pushes wait here, and single probes are
/// sent.
///
/// Waiting pushes are kept and never given up, because an unavailable server is not their fault. Pure; times are
/// injected.
struct EndpointBreaker: Equatable {
    enum State: Equatable {
        /// Goes to `open`.
        case closed
        /// Nothing is sent; after `probeAtNanos` goes to `probing`.
        case open(probeAtNanos: UInt64)
        /// One push is in flight. Goes to `closed` or `open`.
        case probing
    }

    private(set) var state: State = .closed
    private var inRow = 0
    private var openings = 0
    private let threshold: Int
    private let backoff: Backoff

    /// - Parameter threshold: number of consecutive answers that open it.
    init(threshold: Int, backoff: Backoff) {
        self.threshold = threshold
        self.backoff = backoff
    }

    var isOpen: Bool { state != .closed }

    /// The number of pushes that may be sent now.
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

    /// The endpoint was unavailable. Returns true if this opened the breaker.
    mutating func failed(retryAfterNanos: UInt64, nowNanos: UInt64, random: inout SmallRandom) -> Bool {
        inRow += 1
        switch state {
        // A late answer from the same outage.
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

    /// The probe ended without an answer.
    mutating func probeLost(nowNanos: UInt64, random: inout SmallRandom) {
        guard state == .probing else { return }
        state = .open(probeAtNanos: nowNanos &+ backoff.delayNanos(failures: openings, random: &random))
    }

    /// The endpoint judged a push. Returns true if this closed the breaker.
    mutating func succeeded() -> Bool {
        inRow = 0
        guard state != .closed else { return false }
        state = .closed
        openings = 0
        return true
    }
}

// SPDX-License-Identifier: Apache-2.0
/// How well one connection works, compared with the others: PING cannot show it.
///
/// A connection can answer every PING and still be useless: its streams frozen, no stream allowed, its window never
/// returned, its answers far slower than those of other connections. A suspected connection gets no more pushes once
/// another one is warm. Pure; times are injected.
struct ConnectionHealth: Equatable {
    enum Suspicion: String, Equatable, CaseIterable {
        /// Requests are open and none was answered for long.
        case frozen
        /// Pushes wait, and the peer returns no window.
        case window
        /// Pushes wait, and the peer allows no stream.
        case streams
        /// Answers take much longer than on the other connections.
        case slow
    }

    /// Number of answered streams, and their recent duration (moving average, one sixteenth per answer).
    private(set) var answers: UInt64 = 0
    private(set) var tripNanos: UInt64 = 0
    private var answeredNanos: UInt64
    private var submissions: UInt64 = 0
    private var seenSubmissions: UInt64 = 0
    private var blockedNanos: UInt64?

    init(nowNanos: UInt64) {
        answeredNanos = nowNanos
    }

    mutating func submitted(isFirstInFlight: Bool, nowNanos: UInt64) {
        submissions &+= 1
        // An idle connection owes no answers: its silence counts from the first request on.
        if isFirstInFlight { answeredNanos = nowNanos }
    }

    mutating func answered(tripNanos trip: UInt64, nowNanos: UInt64) {
        answeredNanos = nowNanos
        answers &+= 1
        if answers == 1 {
            tripNanos = trip
        } else {
            tripNanos = tripNanos &- tripNanos / 16 &+ trip / 16
        }
    }

    /// Evaluates the connection's state.
    ///
    /// - Parameters:
    ///   - blocked: which limit of the peer keeps waiting pushes from this connection; nil: none.
    ///   - peersTripNanos: the median of the other connections; nil without any.
    mutating func suspicion(
        inFlight: Int, blocked: Suspicion?, peersTripNanos: UInt64?, stallNanos: UInt64, nowNanos: UInt64
    ) -> Suspicion? {
        if blocked == nil {
            blockedNanos = nil
        } else if submissions != seenSubmissions || blockedNanos == nil {
            blockedNanos = nowNanos
        }
        seenSubmissions = submissions
        if inFlight > 0, nowNanos &- answeredNanos >= stallNanos { return .frozen }
        if let blocked, let blockedNanos, nowNanos &- blockedNanos >= stallNanos { return blocked }
        guard let peersTripNanos, answers >= 32, inFlight > 0 else { return nil }
        let isSlow = tripNanos > 4 * peersTripNanos && tripNanos > peersTripNanos &+ 250_000_000
        return isSlow ? .slow : nil
    }
}

// SPDX-License-Identifier: Apache-2.0
/// What one user's settings, tokens and connections may have been at a time, as clients and gateways wrote them.
///
/// A record counts from the moment at which it was written, at the earliest, and until the next one is surely applied, at
/// the latest. So between the two several values are possible.
struct History {
    /// Records of the user, in the order of their writing.
    let states: [StateSent]
    let moves: [Move]
    /// When gateways removed all connections.
    var movesEndNanos: UInt64 = .max
    /// When Redis lost a key of the user: from then on its connections are uncertain.
    var lostFromNanos: UInt64 = .max
    /// When each of `states` was applied.
    let applied: [UInt64]
    /// Ignored records change nothing.
    let isIgnored: [Bool]

    /// - Parameter unsure: changes that hold at no known time.
    init(states: [StateSent], moves: [Move], observed: Observed, unsure: Set<String> = []) {
        self.states = states
        self.moves = moves
        applied = states.map { unsure.contains($0.eventID) ? .max : observed.applied($0) }
        isIgnored = states.map {
            !unsure.contains($0.eventID) && ["ignored", "stale"].contains(observed.results[$0.eventID]?.outcome)
        }
    }

    /// All values that may have held at some moment between the two, both included.
    func possible<Value: Equatable>(
        from: UInt64, to: UInt64, first: Value, _ value: (StateSent.Kind) -> Value?
    ) -> [Value] {
        var found: [Value] = []
        var (current, sinceNanos): (Value, UInt64) = (first, 0)
        for (index, state) in states.enumerated() where !isIgnored[index] {
            guard let next = value(state.kind) else { continue }
            if sinceNanos <= to, applied[index] >= from, !found.contains(current) { found.append(current) }
            (current, sinceNanos) = (next, state.atNanos)
        }
        if sinceNanos <= to, !found.contains(current) { found.append(current) }
        return found
    }

    // MARK: Connections

    /// A device's connection, and from when to when.
    private struct Span {
        var move: Move
        var fromNanos: UInt64
        var toNanos: UInt64

        /// Whether the device is live then. A device in the background is live for two minutes, by the worker's clock.
        var liveUntilNanos: UInt64? {
            switch move.state {
            case "fg": toNanos
            case "bg" where move.hasLocal: min(toNanos, fromNanos &+ 120_000_000_000)
            default: nil
            }
        }
    }

    private func spans(of device: String) -> [Span] {
        let own = moves.filter { $0.device == device }
        return own.enumerated().map { index, move in
            Span(
                move: move, fromNanos: move.atNanos,
                toNanos: min(movesEndNanos, index + 1 < own.count ? own[index + 1].atNanos : .max))
        }
    }

    /// The names of all devices that ever had a connection.
    var connected: Set<String> { Set(moves.map(\.device)) }

    func mayBeLive(_ device: String, from: UInt64, to: UInt64) -> Bool {
        to >= lostFromNanos && connected.contains(device)
            || spans(of: device).contains { span in
                guard let until = span.liveUntilNanos else { return false }
                return span.fromNanos <= to && until >= from
            }
    }

    func isLive(_ device: String, from: UInt64, to: UInt64) -> Bool {
        to < lostFromNanos
            && spans(of: device).contains { span in
                guard let until = span.liveUntilNanos else { return false }
                return span.fromNanos < from && until > to
            }
    }

    func mayHaveOpen(_ conversation: String, from: UInt64, to: UInt64) -> Bool {
        to >= lostFromNanos && moves.contains { $0.openConversation == conversation }
            || connected.contains { device in
                spans(of: device).contains {
                    $0.move.openConversation == conversation && $0.fromNanos <= to && $0.toNanos >= from
                }
            }
    }

    func mayHaveDesktop(from: UInt64, to: UInt64) -> Bool {
        Set(moves.filter(\.isDesktop).map(\.device)).contains { mayBeLive($0, from: from, to: to) }
    }
}

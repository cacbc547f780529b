// SPDX-License-Identifier: Apache-2.0
import PushCore

/// Detects users without tokens because Redis lost them. Such users are then not decided, and reading stops.
///
/// There are two signs. First, the number of keys fell below half of its value of ten counts, with or without a restart of Redis;
/// in a cluster the number of any node, unless the keys moved to other nodes. From then on no user ends as `no_token` until the
/// loss is explained. Keys of the last seconds do not count: a failover may lose the marks of a large group that Redis has just
/// stored, but no older bind. Second, the share of `no_token` among the newest decisions is far above that of the hour before:
/// then the worker inspects Redis first. The loss is explained if the server is the same (`run_id`) and has its keys, if the keys
/// are back, or if an operator accepts it. A third sign: Redis evicted keys by a policy that may take any key. No count explains
/// that, so an operator must accept it. A machine without clock and server; one per shard.
struct TokenLoss {
    /// The action for a recipient without a token.
    enum Answer: Equatable {
        case decide
        /// It waits; ask Redis for its number of keys now.
        case ask
        case wait
    }

    enum State: Equatable {
        case calm
        /// Redis is asked for its number of keys: it restarted, or the share of `no_token` rose.
        case asking(isSpike: Bool)
        /// The keys are gone. No recipient without a token was seen yet.
        case keysGone
        /// Nothing is read.
        case stopped
    }

    private(set) var state = State.calm
    /// Keys of each server at the newest counts in normal operation, newest last; empty before the first count.
    private var counts: [[Int64: Int64]] = []
    /// This total number of keys means that they are back.
    private var wanted: Int64 = 0
    private var calmUntilMs: Int64 = .min
    /// For the newest decisions: whether there was no token.
    private var newest = NewestRing<Bool>(capacity: Self.newestMax)
    private var minutes: [Minute] = []

    private struct Minute {
        var number: Int64
        var decided = 0
        var without = 0
    }

    private static let newestMax = 100
    private static let newestMin = 40
    /// Minimum decisions of the hour before for a judgement.
    private static let hourMin = 200
    private static let shareMin = 0.5
    private static let times = 4.0
    /// Fewer keys are not significant.
    private static let keysMin: Int64 = 50
    /// Number of counts (one per second) for which keys must have existed.
    private static let countsMax = 10
    private static let hourMs: Int64 = 3_600_000
    private static let calmMs: Int64 = 600_000

    /// Recipients without a token wait.
    var isStopped: Bool { state == .stopped }
    /// Keys are gone, and neither back nor accepted.
    var isOpen: Bool { state == .keysGone || state == .stopped }
    /// Keys of all servers at the last count before any were lost.
    var keysBefore: Int64 { counts.last?.values.reduce(0, &+) ?? 0 }

    // MARK: Decisions

    /// A recipient was decided whom an alert would reach.
    mutating func decided(hasToken: Bool, nowMs: Int64) -> Answer {
        if hasToken {
            note(false, nowMs)
            return .decide
        }
        switch state {
        case .stopped, .asking: return .wait
        case .keysGone:
            state = .stopped
            return .ask
        case .calm:
            note(true, nowMs)
            guard nowMs >= calmUntilMs, isSpike(nowMs) else { return .decide }
            state = .asking(isSpike: true)
            return .ask
        }
    }

    private mutating func note(_ isWithout: Bool, _ nowMs: Int64) {
        newest.append(isWithout)
        let number = nowMs / 60_000
        if minutes.last?.number != number {
            minutes.append(Minute(number: number))
            minutes.removeAll { $0.number <= number - 60 }
        }
        let last = minutes.count - 1
        minutes[last].decided += 1
        if isWithout { minutes[last].without += 1 }
    }

    private func isSpike(_ nowMs: Int64) -> Bool {
        guard newest.count >= Self.newestMin else { return false }
        let recent = newest.elements.count { $0 }
        // The newest are part of the last hour, so they are subtracted.
        let decided = minutes.reduce(0) { $0 + $1.decided } - newest.count
        let without = minutes.reduce(0) { $0 + $1.without } - recent
        guard decided >= Self.hourMin else { return false }
        let share = Double(recent) / Double(newest.count)
        return share >= Self.shareMin && share >= Self.times * Double(max(0, without)) / Double(decided)
    }

    // MARK: Keys

    /// The link reaches a new server process, by its `run_id`: its data must be checked first.
    mutating func serverChanged() { if state == .calm { state = .asking(isSpike: false) } }

    /// A single server counted its keys.
    mutating func counted(keys found: Int64, nowMs: Int64) { counted([0: found], nowMs: nowMs) }

    /// Redis counted its keys: once a second, and on request.
    ///
    /// - Parameter found: keys of each server; nil if it is down, and then its last count remains.
    mutating func counted(_ found: [Int64: Int64?], nowMs: Int64) {
        let now = found.reduce(into: [Int64: Int64]()) { now, server in
            now[server.key] = server.value ?? counts.last?[server.key] ?? 0
        }
        let total = now.values.reduce(0, &+)
        switch state {
        case .keysGone, .stopped:
            if total >= wanted { goOn(keys: now, nowMs) }
        case .calm, .asking:
            let stood = stood
            if let lost = lostServer(of: stood, now, total) {
                wanted = stood.values.reduce(0, &+) - lost + lost / 5 * 4
                state = state == .asking(isSpike: true) ? .stopped : .keysGone
                return
            }
            counts.append(now)
            if counts.count > Self.countsMax { counts.removeFirst() }
            switch state {
            case .asking(isSpike: true): goOn(keys: now, nowMs)
            case .asking(isSpike: false): state = .calm
            case .calm, .keysGone, .stopped: break
            }
        }
    }

    /// For each server of the last count, the fewest keys of its newest counts.
    private var stood: [Int64: Int64] {
        guard var stood = counts.last else { return [:] }
        for count in counts {
            for (server, keys) in count where keys < stood[server] ?? 0 { stood[server] = keys }
        }
        return stood
    }

    /// The number of keys of a server that lost most of them, if other servers do not have them now; nil if there is
    /// none. A missing server has no keys.
    private func lostServer(of stood: [Int64: Int64], _ now: [Int64: Int64], _ total: Int64) -> Int64? {
        let before = stood.values.reduce(0, &+)
        var most: Int64?
        for (server, had) in stood where had >= Self.keysMin {
            let has = now[server] ?? 0
            if has < had / 2, before - total > (had - has) / 2 { most = max(most ?? 0, had) }
        }
        return most
    }

    /// Redis evicted keys: any token may be among them, and no number of keys shows that it is back.
    mutating func evicted() {
        wanted = .max
        if state != .stopped { state = state == .asking(isSpike: true) ? .stopped : .keysGone }
    }

    /// Redis does not report its number of keys: an operator must then explain a spike.
    mutating func couldNotCount() {
        guard case .asking(let isSpike) = state else { return }
        wanted = .max
        state = isSpike ? .stopped : .calm
    }

    /// An operator accepted it, or it was explained: recipients without a token now end as such.
    mutating func goOn(keys found: [Int64: Int64] = [:], _ nowMs: Int64) {
        state = .calm
        counts = [found]
        newest.removeAll()
        minutes = []
        calmUntilMs = nowMs &+ Self.calmMs
    }
}

// SPDX-License-Identifier: Apache-2.0

/// The last words of each Sentinel about the master, and the master that a majority of all configured Sentinels names.
///
/// A Sentinel that is cut off with an old master names it for ever, so one alone decides nothing. A name at a higher
/// configuration epoch is newer: a majority that does not know it yet is out of date. A machine without sockets.
struct SentinelVotes {
    enum Verdict: Equatable {
        /// Some Sentinel has neither answered nor failed, and may complete a majority.
        case undecided
        case master(NodeAddress)
        case none(RedisFault)
    }

    private struct Vote {
        let master: NodeAddress
        /// 0 if this user may not read it.
        let epoch: Int64
        let atNanos: UInt64
    }

    private struct Voice {
        var vote: Vote?
        /// The reason why the last question has no answer.
        var fault: RedisFault?
    }

    private var voices: [Voice]
    private let masterName: String

    /// How long a Sentinel's answer counts. It is longer than a restart of a Sentinel's link, and shorter than the time after
    /// which Sentinels usually replace a master that they do not reach (`down-after-milliseconds`, 30 s).
    static let validNanos: UInt64 = 5_000_000_000

    init(count: Int, masterName: String) {
        voices = Array(repeating: Voice(), count: count)
        self.masterName = masterName
    }

    mutating func answered(_ sentinel: Int, _ master: NodeAddress, epoch: Int64, nowNanos: UInt64) {
        voices[sentinel] = Voice(vote: Vote(master: master, epoch: epoch, atNanos: nowNanos))
    }

    /// The question has no answer. The last answer counts until it is too old.
    mutating func failed(_ sentinel: Int, _ fault: RedisFault) { voices[sentinel].fault = fault }

    /// The Sentinel names no master, or one that cannot be used.
    mutating func refused(_ sentinel: Int, _ fault: RedisFault) { voices[sentinel] = Voice(fault: fault) }

    func verdict(nowNanos: UInt64) -> Verdict {
        let votes = voices.compactMap(\.vote).filter { nowNanos &- $0.atNanos < Self.validNanos }
        let majority = voices.count / 2 + 1
        let leading = votes.first { one in votes.count { $0.master == one.master } >= majority }
        let newest = votes.max { $0.epoch < $1.epoch }
        if let leading, let newest {
            let known = votes.reduce(0) { $1.master == leading.master ? max($0, $1.epoch) : $0 }
            if known >= newest.epoch { return .master(leading.master) }
        } else if voices.contains(where: { $0.vote == nil && $0.fault == nil }) {
            return .undecided
        }
        return .none(fault(votes))
    }

    private func fault(_ votes: [Vote]) -> RedisFault {
        var names: [NodeAddress] = []
        for vote in votes where !names.contains(vote.master) { names.append(vote.master) }
        var parts = names.map { name in
            let those = votes.filter { $0.master == name }
            return "\(those.count) name \(name) (epoch \(those.map(\.epoch).max() ?? 0))"
        }
        let last = voices.lazy.compactMap(\.fault).last
        let silent = voices.count - votes.count
        if silent > 0 {
            let why = last.map { " (\($0.publicText))" } ?? ""
            parts.append("\(silent) give\(silent == 1 ? "s" : "") none\(why)")
        }
        return RedisFault(
            votes.isEmpty ? last?.code ?? .unreachable : .unreachable,
            "no majority of the \(voices.count) Sentinels names a master \(masterName): \(parts.joined(separator: ", "))"
        )
    }
}

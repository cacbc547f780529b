// SPDX-License-Identifier: Apache-2.0
public import Redis

/// A (user, message) pair in the form of its mark's name.
public struct PairName: Sendable {
    public var app: String
    public var uid: String
    public var kind: PairKind
    /// The `msg_id`; for a Live Activity the event's id.
    public var id: String

    public init(app: String, uid: String, kind: PairKind, id: String) {
        self.app = app
        self.uid = uid
        self.kind = kind
        self.id = id
    }
}

/// The progress of a pair, and the event that made it.
public struct PairStanding: Sendable, Equatable {
    public var progress: PairProgress
    /// The finishing event and its time, Unix ms; nil if no trace was kept.
    public var trace: (eventID: String, atMs: Int64)?

    public static func == (one: PairStanding, other: PairStanding) -> Bool {
        one.progress == other.progress && one.trace?.eventID == other.trace?.eventID
            && one.trace?.atMs == other.trace?.atMs
    }
}

extension StateReader {
    /// The progress of each pair, from marks only, in one round trip; nil if it has not begun, or if its mark has
    /// expired.
    public func standings(of pairs: [PairName]) async throws(RedisFault) -> [PairStanding?] {
        if pairs.isEmpty { return [] }
        let answers = PairAnswers(pairs)
        try await ask(
            pairs.count,
            { (store, tags) throws(RedisFault) in
                for (pair, tag) in zip(pairs, tags) {
                    try store.readMark(app: pair.app, uid: pair.uid, kind: pair.kind, id: pair.id, tag: tag)
                }
            },
            { place, reply in answers.take(place, reply) })
        let members = pairs.indices.filter { place in
            pairs[place].kind == .message && !pairs[place].uid.isEmpty
                && answers.standings[place]?.progress != .ended
        }
        if members.isEmpty { return answers.standings }
        // Marks of a group's finished members may be in a common key.
        try await ask(
            members.count,
            { (store, tags) throws(RedisFault) in
                for (place, tag) in zip(members, tags) {
                    try store.readGroupMarks(
                        app: pairs[place].app, uid: pairs[place].uid, id: pairs[place].id, tag: tag)
                }
            },
            { place, reply in answers.take(members[place], reply) })
        return answers.standings
    }
}

private final class PairAnswers {
    private let pairs: [PairName]
    var standings: [PairStanding?]

    init(_ pairs: [PairName]) {
        self.pairs = pairs
        standings = Array(repeating: nil, count: pairs.count)
    }

    func take(_ place: Int, _ reply: borrowing RedisReply) {
        guard pairs.indices.contains(place), let mark = PairMark(reply) else { return }
        let progress: PairProgress =
            switch mark.state {
            case nil: .revokedOnly
            case .ended?: .ended
            case .fresh?, .resume?: .begun
            }
        let pair = pairs[place]
        let record = mark.trace.withUnsafeBytes {
            $0.isEmpty ? nil : TraceRecord($0, kind: pair.kind, id: pair.id)
        }
        standings[place] = PairStanding(progress: progress, trace: record.map { ($0.eventID, $0.atMs) })
    }
}

public import Redis

/// A (user, message) as its mark is named.
public struct PairName: Sendable {
    public var app: String
    public var uid: String
    public var kind: PairKind
    /// The `msg_id`; of a Live Activity the event's id.
    public var id: String

    public init(app: String, uid: String, kind: PairKind, id: String) {
        self.app = app
        self.uid = uid
        self.kind = kind
        self.id = id
    }
}

/// How far one has come, and by which event.
public struct PairStanding: Sendable, Equatable {
    public var progress: PairProgress
    /// The event that it was finished by and when, Unix ms; nil: no trace was kept.
    public var trace: (eventID: String, atMs: Int64)?

    public static func == (one: PairStanding, other: PairStanding) -> Bool {
        one.progress == other.progress && one.trace?.eventID == other.trace?.eventID
            && one.trace?.atMs == other.trace?.atMs
    }
}

extension StateReader {
    /// How far each has come, by their marks alone, in one round trip; nil: nobody has begun it, or its mark is over.
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
                && answers.standings[place]?.progress != .finished
        }
        if members.isEmpty { return answers.standings }
        // Those of a group's finished members may lie together.
        try await ask(
            members.count,
            { (store, tags) throws(RedisFault) in
                for (place, tag) in zip(members, tags) {
                    try store.readTogether(app: pairs[place].app, uid: pairs[place].uid, id: pairs[place].id, tag: tag)
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
            case .finished?: .finished
            case .fresh?, .resume?: .begun
            }
        let pair = pairs[place]
        let record = mark.trace.withUnsafeBytes {
            $0.isEmpty ? nil : TraceRecord($0, kind: pair.kind, id: pair.id)
        }
        standings[place] = PairStanding(progress: progress, trace: record.map { ($0.eventID, $0.atMs) })
    }
}

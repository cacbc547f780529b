// SPDX-License-Identifier: Apache-2.0
import EventLoop
public import Redis

/// The removal of a user on an operator's request: the layer above `PairReads`.
public struct UserRemoval: Sendable {
    private let state: StateReader
    private let pairs: PairReads

    public init(_ state: StateReader) {
        self.state = state
        pairs = PairReads(state)
    }

    /// Removes everything stored about a user, as a `forget` that is sent now; and all marks of the user, which only a scan of all
    /// keys finds.
    public func forget(app: String, uid: String) async throws(RedisFault) {
        let nowMs = Loop.wallMs()
        let user = Forgetting.User(app: app, uid: uid, atMs: nowMs, nowMs: nowMs)
        var forgetting = Forgetting()
        while true {
            let step = forgetting
            let last: StepAnswer? = try await state.ask(
                step.commandCount, into: nil,
                { (store, tags) throws(RedisFault) in
                    for (place, tag) in tags.enumerated() { try step.send(place, user, store, tag) }
                },
                { last, _, reply in last = StepAnswer(reply) })
            guard let last, case .next = forgetting.move(last) else { break }
        }
        try await removeMarks(app: app, uid: uid)
    }

    /// Removes all marks of a user, with their traces.
    private func removeMarks(app: String, uid: String) async throws(RedisFault) {
        try await pairs.scanMarks(app: app, uid: uid) { (page: [UserMark]) throws(RedisFault) in
            for mark in page {
                try await state.ask(
                    { (store, tag) throws(RedisFault) in
                        try store.removeMark(app: app, uid: uid, name: mark.kind.rawValue + mark.id, tag: tag)
                    }, { _ in })
            }
        }
        for id in try await pairs.messagesWithGroupMarks(app: app, uid: uid) {
            try await state.ask(
                { (store, tag) throws(RedisFault) in try store.removeGroupMark(app: app, uid: uid, id: id, tag: tag) },
                { _ in })
        }
    }
}

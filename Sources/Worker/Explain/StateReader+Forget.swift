// SPDX-License-Identifier: Apache-2.0
import EventLoop
public import Redis

extension StateReader {
    /// Removes everything stored about a user, as a `forget` that is sent now; and all marks of the user, which only a scan of all
    /// keys finds.
    public func forget(app: String, uid: String) async throws(RedisFault) {
        let nowMs = Loop.wallMs()
        let user = Forgetting.User(app: app, uid: uid, atMs: nowMs, nowMs: nowMs)
        var forgetting = Forgetting()
        while true {
            let (step, last) = (forgetting, LastAnswer())
            try await ask(
                step.commandCount,
                { (store, tags) throws(RedisFault) in
                    for (place, tag) in tags.enumerated() { try step.send(place, user, store, tag) }
                },
                { _, reply in last.answer = StepAnswer(reply) })
            guard let answer = last.answer, case .next = forgetting.move(answer) else { break }
        }
        try await removeMarks(app: app, uid: uid)
    }

    private final class LastAnswer {
        var answer: StepAnswer?
    }
}

// SPDX-License-Identifier: Apache-2.0
import Redis

/// Reads of whole hashes of a user, settings with tokens and presence: a few at once of each user, none of a key that was
/// over the limit a moment ago.
extension Lookup {
    /// Asks for a user's settings or presence as soon as the gate lets it.
    ///
    /// - Parameter bucket: the user's, `ReadGate.bucket`.
    func askWhole(_ job: RecipientJob, _ question: Question, _ bucket: UInt8) {
        if !gate(question, { $0.admit(bucket, job.ref) }) { return }
        if !sendWhole(job, question, bucket) { goOn(question, bucket) }
    }

    /// One of these reads is answered, whatever became of its recipient: the next one of its users goes.
    func releaseWhole(_ tag: Tag) {
        gate(tag.question) { $0.release(tag.index) }
        goOn(tag.question, tag.index)
    }

    private func goOn(_ question: Question, _ bucket: UInt8) {
        while let ref = gate(question, { $0.next(bucket) }) {
            if let job = work.recipient(ref), job.candidate != nil {
                if sendWhole(job, question, bucket) { continue }
            } else {
                gate(question) { $0.release(bucket) }
            }
        }
    }

    /// - Returns: false if nothing was sent because the recipient has its answer.
    private func sendWhole(_ job: RecipientJob, _ question: Question, _ bucket: UInt8) -> Bool {
        guard admitRead(job, question) else {
            gate(question) { $0.release(bucket) }
            answered(job, failed: false)
            return false
        }
        let tag = job.tag(question, Int(bucket))
        do throws(RedisFault) {
            if question == .user {
                try shard.store.readUser(app: job.event.app.id, uid: job.uid, tag: tag)
            } else {
                try shard.store.readPresence(app: job.event.app.id, uid: job.uid, tag: tag)
            }
            return true
        } catch {
            gate(question) { $0.release(bucket) }
            answered(job, failed: true)
            return false
        }
    }

    @inline(__always) @discardableResult
    private func gate<Result>(_ question: Question, _ body: (inout ReadGate) -> Result) -> Result {
        question == .user ? body(&userGate) : body(&presenceGate)
    }
}

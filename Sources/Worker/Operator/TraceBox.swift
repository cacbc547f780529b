// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// Allows one trace question at a time, with a time limit for its answer. On the operator's loop.
///
/// A second question in this time gets an error. After the time limit the question is answered as such. Its place is
/// free once Redis has answered or has reached its own limits.
final class TraceBox {
    /// The waiting request; nil if there is none, or if it has been answered with the time limit.
    private var reply: ((TraceAnswer) -> Void)?
    private var isAsking = false
    private let limitNanos: UInt64
    private var timer: LoopTimer?

    init(loop: Loop, limitNanos: UInt64 = OperatorPages.answerNanos) {
        self.limitNanos = limitNanos
        timer = LoopTimer(loop: loop) { [unowned self] in tell(.away("Redis did not answer in time")) }
    }

    /// - Returns: true if the caller must ask and then call `end` with the result.
    func begin(_ reply: @escaping (TraceAnswer) -> Void) -> Bool {
        guard !isAsking else {
            reply(.away("another question is in progress: ask again in a moment"))
            return false
        }
        isAsking = true
        self.reply = reply
        timer?.arm(afterNanos: limitNanos)
        return true
    }

    func end(_ answer: TraceAnswer) {
        isAsking = false
        tell(answer)
    }

    private func tell(_ answer: TraceAnswer) {
        timer?.cancel()
        let reply = reply.take()
        reply?(answer)
    }
}

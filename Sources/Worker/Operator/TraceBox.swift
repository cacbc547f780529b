import EventLoop

/// The box's one place: a question at a time, with a time for its answer. On the operator's loop.
///
/// Who asks meanwhile is told so. A question whose time is over is answered so; its place is free once Redis has answered or
/// its own limits are reached.
final class TraceBox {
    /// Who waits; nil: nobody, or he was told that it takes too long.
    private var reply: ((TraceAnswer) -> Void)?
    private var isAsking = false
    private let limitNanos: UInt64
    private var timer: LoopTimer?

    init(loop: Loop, limitNanos: UInt64 = OperatorPages.answerNanos) {
        self.limitNanos = limitNanos
        timer = LoopTimer(loop: loop) { [unowned self] in tell(.away("Redis did not answer in time")) }
    }

    /// True: the caller is to ask, and to call `end` with what he found.
    func begin(_ reply: @escaping (TraceAnswer) -> Void) -> Bool {
        guard !isAsking else {
            reply(.away("another question is being answered: ask again in a moment"))
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

import PushCore
import Redis

/// Whether Redis still has what it had (`TokenLoss`).
extension StateStore {
    /// Keys of the database: an integer.
    func keyCount(tag: UInt64) throws(RedisFault) {
        try change(tag) { command in command.arg(word: "DBSIZE") }
    }

    /// When an operator accepted a loss, Unix ms: a text, or null.
    func lossAccepted(tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "GET")
            command.arg(word: "c:w:{accepted}")
        }
    }

    /// What is lost is lost: workers that stopped for it go on. The reply is `OK`.
    func acceptLoss(nowMs: Int64, tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "SET")
            command.arg(word: "c:w:{accepted}")
            command.arg(StateKeys.time(nowMs))
            command.arg(word: "EX")
            command.arg(86_400)
        }
    }
}

import PushCore
import Redis

/// Notes that tell later events of a device, user or conversation that an earlier one is parked.
///
/// Field `y` + device of the user's hash, with an empty device for all of them; or `c:y:{app:conversation}` for an event that is
/// parked with all its recipients. Value: `<due, Unix ms> <id>`, of the one that was parked last.
extension StateStore {
    private static let conversationSeconds: Int64 = 2 * 86_400

    /// - Parameter isAgain: it was parked before, so that others may be parked behind it already.
    func noteParked(
        app: String, uid: String, device: String, dueMs: Int64, id: String, isAgain: Bool, tag: UInt64
    ) throws(RedisFault) {
        try change(tag, StateScripts.noteParked, keyCount: 1) { command in
            command.key("c:u", app, uid)
            command.field("y", device)
            command.arg(StateKeys.time(dueMs))
            command.arg(id)
            if isAgain { command.arg(word: "1") }
        }
    }

    /// It has ended: the note goes, unless another was parked behind it.
    func forgetParked(
        app: String, uid: String, device: String, id: String, tag: UInt64
    ) throws(RedisFault) {
        try change(tag, StateScripts.forgetParked, keyCount: 1) { command in
            command.key("c:u", app, uid)
            command.field("y", device)
            command.arg(id)
        }
    }

    func noteParked(
        app: String, conversation: String, dueMs: Int64, id: String, tag: UInt64
    ) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "SET")
            command.key("c:y", app, conversation)
            command.part(StateKeys.time(dueMs))
            command.part(byte: UInt8(ascii: " "))
            command.part(id)
            command.end()
            command.arg(word: "EX")
            command.arg(Self.conversationSeconds)
        }
    }

    /// The note of a conversation: a text (`StateStore.parkedMs`), or null.
    func readParked(app: String, conversation: String, tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "GET")
            command.key("c:y", app, conversation)
        }
    }

    /// When what `readParked` found is due, Unix ms; nil: nothing is parked.
    static func parkedMs(_ reply: borrowing RedisReply) -> Int64? {
        if reply.isNull { return nil }
        var text = CompactText(reply.bytes)
        return text.number()
    }

    func forgetParked(app: String, conversation: String, id: String, tag: UInt64) throws(RedisFault) {
        try change(tag, StateScripts.forgetParkedConversation, keyCount: 1) { command in
            command.key("c:y", app, conversation)
            command.arg(id)
        }
    }
}

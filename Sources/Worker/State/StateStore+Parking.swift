// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// Notes for later events of a device, user or conversation: an earlier one is parked.
///
/// Field `y` + device of the user's hash, with an empty device for all of them; or `c:y:{app:conversation}` for an event that is
/// parked with all its recipients. Value: `2 <due> <written> <until> <id>`, the times in Unix ms (`ParkedNote`), of the one that
/// was parked last; `until` is the longest of all. Earlier versions wrote `<due> <id>`. Field `z` + device: until when APNs wants
/// the device left alone. Field `Y` + device: all work that waits for it.
extension StateStore {
    private static let conversationSeconds: Int64 = 2 * 86_400

    /// - Parameter isAgain: it was parked before, so that others may already be parked behind it.
    func noteParked(
        app: String, uid: String, device: String, _ note: ParkedNote, id: String, isAgain: Bool,
        isAPNsAsking: Bool = false,
        tag: UInt64
    ) throws(RedisFault) {
        try change(tag, ParkingScripts.noteParked, keyCount: 1) { command in
            command.key("c:u", app, uid)
            command.field("y", device)
            command.part(note)
            command.end()
            command.arg(id)
            command.arg(word: isAgain ? "1" : "0")
            if isAPNsAsking { command.arg(StateKeys.time(note.dueMs)) }
        }
    }

    /// APNs accepted a push of the device after it had asked to leave the device alone.
    func hastenParked(app: String, uid: String, device: String, nowMs: Int64, tag: UInt64) throws(RedisFault) {
        try change(tag, ParkingScripts.hastenParked, keyCount: 1) { command in
            command.key("c:u", app, uid)
            command.field("y", device)
            command.arg(StateKeys.time(nowMs))
        }
    }

    /// Until when APNs wants the device left alone: an integer, or null.
    func readPause(app: String, uid: String, device: String, tag: UInt64) throws(RedisFault) {
        try client.command(tag, reads) { command in
            command.arg(word: "HGET")
            command.key("c:u", app, uid)
            command.field("z", device)
        }
    }

    /// It has ended: removes the note, unless another was parked behind it.
    func forgetParked(
        app: String, uid: String, device: String, id: String, tag: UInt64
    ) throws(RedisFault) {
        try change(tag, ParkingScripts.forgetParked, keyCount: 1) { command in
            command.key("c:u", app, uid)
            command.field("y", device)
            command.arg(id)
        }
    }

    /// Gives a recipient that waits in the topic the mark that Redis refused. An existing mark remains. It is not counted:
    /// the claim of its return counts it.
    func markParked(
        app: String, uid: String, kind: PairKind, id: String, untilMs: Int64, tag: UInt64
    ) throws(RedisFault) {
        try client.command(tag, finishes) { command in
            command.arg(word: "SET")
            command.key("c:d", app, uid, kind, suffix: id)
            command.part(word: "o")
            command.part(.parked, EarlierWait(untilMs: untilMs).text)
            command.end()
            command.arg(word: "NX")
            command.arg(word: "EX")
            command.arg(StateKeys.markSecondsMin)
        }
    }

    func noteParked(
        app: String, conversation: String, _ note: ParkedNote, id: String, tag: UInt64
    ) throws(RedisFault) {
        try change(tag, ParkingScripts.noteParkedConversation, keyCount: 1) { command in
            command.key("c:y", app, conversation)
            command.part(note)
            command.end()
            command.arg(id)
            command.arg(Self.conversationSeconds)
        }
    }

    /// The note of a conversation: a text (`StateStore.parkedNote`), or null.
    func readParked(app: String, conversation: String, tag: UInt64) throws(RedisFault) {
        try change(tag) { command in
            command.arg(word: "GET")
            command.key("c:y", app, conversation)
        }
    }

    /// - Returns: the note that `readParked` found; nil if nothing is parked.
    static func parkedNote(_ reply: borrowing RedisReply) -> ParkedNote? {
        reply.isNull ? nil : ParkedNote(reply.bytes)
    }

    func forgetParked(app: String, conversation: String, id: String, tag: UInt64) throws(RedisFault) {
        try change(tag, ParkingScripts.forgetParkedConversation, keyCount: 1) { command in
            command.key("c:y", app, conversation)
            command.arg(id)
        }
    }
}

extension ParkedNote {
    /// - Returns: nil for any other text.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var text = CompactText(bytes)
        guard let first = text.number() else { return nil }
        // Without the other times nobody knows how long the record was to wait: it is looked at now.
        guard first == Self.version else {
            self.init(dueMs: 0, writtenMs: 0, untilMs: .max)
            return
        }
        guard let due = text.number(), let written = text.number(), let until = text.number() else { return nil }
        self.init(dueMs: due, writtenMs: written, untilMs: until)
    }

    fileprivate static var version: Int64 { 2 }
}

extension RedisCommand {
    fileprivate mutating func part(_ note: ParkedNote) {
        part(ParkedNote.version)
        for ms in [note.dueMs, note.writtenMs, note.untilMs] {
            part(byte: UInt8(ascii: " "))
            part(StateKeys.time(ms))
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

/// Notes about messages with a chosen collapse id (`KeptOriginal`), until Redis has them. The revoke of a message without
/// its note appears next to it instead of replacing it.
///
/// A message may be read while Redis is away or takes no writes, and wait for it. Its note waits here, and is sent again before
/// anything is read over a new link, and with each heartbeat. It ends with the process.
struct OriginalNotes {
    private final class Note {
        enum State { case sent, lost }

        let app: String
        let msgID: String
        let collapseID: String
        let expireAtMs: Int64
        var ref = WorkRef.none
        var state = State.sent

        init(_ event: EventJob, _ collapseID: String) {
            app = event.app.id
            msgID = event.msgID
            self.collapseID = collapseID
            expireAtMs = event.expiresAtMs
        }
    }

    private let shard: ShardContext
    /// Less than 2 MB. Further notes are sent only once.
    private var notes = SlotTable<Note>(capacity: 4_096)

    init(_ shard: ShardContext) { self.shard = shard }

    mutating func keep(_ event: EventJob, _ collapseID: String) {
        let note = Note(event, collapseID)
        if !notes.isFull { note.ref = notes.insert(note) }
        send(note)
    }

    /// Sends those again that Redis did not take.
    func sendAgain() {
        notes.forEach { if $0.state == .lost { send($0) } }
    }

    mutating func didStore(_ ref: WorkRef) { notes.remove(ref) }

    mutating func didFail(_ ref: WorkRef, _ fault: RedisFault) {
        if fault.isLasting { return notes.remove(ref) }
        notes.find(ref)?.state = .lost
    }

    private func send(_ note: Note) {
        do throws(RedisFault) {
            try shard.store.keepOriginal(
                app: note.app, msgID: note.msgID, KeptOriginal(collapseID: note.collapseID),
                expireAtMs: note.expireAtMs, nowMs: shard.nowMs, tag: Tag(note.ref, .keptOriginal).bits)
            note.state = .sent
        } catch {
            note.state = .lost
        }
    }
}

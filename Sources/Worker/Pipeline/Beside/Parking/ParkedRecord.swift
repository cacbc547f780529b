// SPDX-License-Identifier: Apache-2.0
import PushCore

/// The open part of one recipient of a parked event, or an event with all its recipients.
///
/// The reader continues like after a crash: the claim shows whether the message was counted, and the devices that were pushed; the
/// journal has the devices that ended. `Deferred` is the stored form.
struct ParkedRecord: Sendable, Equatable {
    var app: String
    /// The recipient; nil for the event with all its recipients.
    var uid: String?
    /// The event as read from its topic.
    var raw: [UInt8]
    var cause: ParkCause
    /// The cause's name, if a later version wrote it: the recipient is decided again when it is due.
    var laterCause: String?
    /// It is looked at again then. In the topic this and the other times are Unix ms by the writer's clock; in memory they are
    /// on the shard's steady clock (`taken`, `leaving`).
    var dueMs: Int64
    /// When it was written, or read.
    var writtenMs: Int64
    /// The end of the event's life, Unix ms: known where the record is made, and not written.
    var expiresAtMs = Int64.max
    /// The event's source, which gives its order among the conversation's other records.
    var source = EventSource()
    /// Identifies it among the conversation's other records: kind and id of the deduplicated event.
    var id: String
    /// The conversation; of a Live Activity its id.
    var conversation = ""
    /// The chunk's part of the group (`ChunkPlan.part`); nil if it is no chunk.
    var part: UInt8?
    /// The name of its chunk's record (`RecordPlace.name`); nil if it is no chunk.
    var chunkName: UInt16?
    /// The process that parked this event because an earlier one of the conversation was unfinished; nil if none was.
    var process: String?
    /// The APNs client with the problem that it waits for, as `AppContext.Client.name`; nil for other causes.
    var client: String?
    /// Waiting devices; empty if nothing was decided yet.
    var devices: [String] = []
    /// The user's devices behind which later work waits; an empty text for all. None in an event with all its recipients.
    var notedDevices: [String] { uid == nil ? [] : devices.isEmpty ? [""] : devices }
    /// The end of the hold for a desktop; nil: none is held.
    var holdUntilMs: Int64?
    var facts: ParkedFacts = []
    var silentConnections: [SilentConnection] = []
    /// The journal so far. Its ends count with the event of this record.
    var journal = Journal()
    /// Names of parked records with the same work (`RecordPlace.name`): what their tries finished counts with this one.
    var formerNames: [UInt16] = []
    /// Parts of the stored form that a later version wrote.
    var later: [UInt8] = []

    struct SilentConnection: Sendable, Equatable {
        var device: String
        var epoch: Int64
    }

    /// Larger events stay in memory: with the line before it the record might exceed the broker's limit.
    static let rawMax = InputLimit.parkedBytes

    /// The kind of a recipient's pair, if Redis refused its mark; nil for other records.
    var dedupKind: PairKind? {
        guard uid != nil, facts.contains(.owesClaim) else { return nil }
        return id.first.flatMap { PairKind(rawValue: String($0)) }
    }

    /// The recipient's dedup key, if Redis refused its mark.
    var dedupKey: PushID? {
        guard let uid, let kind = dedupKind else { return nil }
        return PushIDPrefix(app: app, uid: uid, kind: kind, id: String(id.dropFirst())).id()
    }

    /// The same work goes to another record.
    mutating func noteFormer(_ place: RecordPlace) {
        if !place.isCounted { formerNames = formerNames.suffix(7) + [place.name] }
    }

    /// The topic's key.
    var key: String { Deferred.key(app: app, conversation: conversation, part: part) }

    /// Whether pushes did something since the other record was written, which Redis may not know.
    func hasProgress(since other: ParkedRecord) -> Bool {
        !journal.ends.elementsEqual(other.journal.ends) || silentConnections != other.silentConnections
            || facts.subtracting(.owed) != other.facts.subtracting(.owed)
    }

    /// The record as it was read, on the steady clock. A delay counts from now, and is at most the delay at the time of
    /// writing: the writer's clock may have been wrong, or this one may be.
    func taken(nowMs: Int64, steadyMs: Int64) -> ParkedRecord {
        func steady(_ ms: Int64) -> Int64 {
            steadyMs &+ ParkedNote.leftMs(until: ms, writtenMs: writtenMs, nowMs: nowMs)
        }
        var record = self
        record.dueMs = steady(dueMs)
        record.holdUntilMs = holdUntilMs.map(steady)
        record.writtenMs = steadyMs
        return record
    }

    /// The record as it is written, on the wall clock.
    func leaving(nowMs: Int64, steadyMs: Int64) -> ParkedRecord {
        let shift = nowMs &- steadyMs
        var record = self
        record.dueMs = dueMs &+ shift
        record.holdUntilMs = holdUntilMs.map { $0 &+ shift }
        record.writtenMs = nowMs
        return record
    }

    init(
        app: String, uid: String?, raw: [UInt8], cause: ParkCause, dueMs: Int64, writtenMs: Int64, id: String
    ) {
        self.app = app
        self.uid = uid
        self.raw = raw
        self.cause = cause
        self.dueMs = dueMs
        self.writtenMs = writtenMs
        self.id = id
    }
}

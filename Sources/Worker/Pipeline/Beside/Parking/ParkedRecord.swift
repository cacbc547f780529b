// SPDX-License-Identifier: Apache-2.0
import PushCore

/// One recipient's part of a record of `carillon.parked` (`Deferred`), or an event with all its recipients.
///
/// The reader continues like after a crash: the claim shows whether the message was counted, and the devices that were pushed; the
/// journal has the devices that ended. `Deferred` is the stored form.
struct ParkedRecord: Sendable, Equatable {
    var event: ParkedEvent
    /// The recipient; nil for the event with all its recipients.
    var uid: String?
    var cause: ParkCause
    /// The cause's name, if a later version wrote it: the recipient is decided again when it is due.
    var laterCause: String?
    /// The time of the next look at it. In the topic this and the other times are Unix ms by the writer's clock; in memory they are
    /// on the shard's steady clock (`taken`, `leaving`).
    var dueMs: Int64
    /// When it was written, or read.
    var writtenMs: Int64
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

    var app: String { event.app }
    var raw: [UInt8] { event.raw }
    var id: String { event.id }
    var source: EventSource { event.source }
    var conversation: String { event.conversation }
    var part: UInt8? { event.part }

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

    init(_ event: ParkedEvent, uid: String?, cause: ParkCause, dueMs: Int64, writtenMs: Int64) {
        self.event = event
        self.uid = uid
        self.cause = cause
        self.dueMs = dueMs
        self.writtenMs = writtenMs
    }
}

/// The event of a `ParkedRecord`, the same for all its recipients.
struct ParkedEvent: Sendable, Equatable {
    let app: String
    /// Kind and id of the deduplicated event. It identifies the event among the conversation's others.
    let id: String
    /// The event as read from its topic.
    let raw: [UInt8]
    /// The event's source, which gives its order among the conversation's others.
    let source: EventSource
    /// The conversation; of a Live Activity its id.
    let conversation: String
    /// The chunk's part of the group (`ChunkPlan.part`); nil if it is no chunk.
    let part: UInt8?
    /// The name of its chunk's record (`RecordPlace.name`); nil if it is no chunk.
    let chunkName: UInt16?
    /// The end of the event's life, Unix ms: known where the record is made, and not written.
    let expiresAtMs: Int64

    init(
        app: String, id: String, raw: [UInt8], source: EventSource, conversation: String, part: UInt8? = nil,
        chunkName: UInt16? = nil, expiresAtMs: Int64 = .max
    ) {
        self.app = app
        self.id = id
        self.raw = raw
        self.source = source
        self.conversation = conversation
        self.part = part
        self.chunkName = chunkName
        self.expiresAtMs = expiresAtMs
    }
}

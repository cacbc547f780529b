// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import PushCore

/// One record of `carillon.parked` with deferred work: an event, or the open part of one recipient.
///
/// A line of JSON, and after it the original bytes of the event. The format is internal. The reader continues like
/// after a crash: the claim shows whether the message was counted, and the devices that were pushed; `done` lists the
/// devices that have their record.
struct ParkedRecord: Sendable, Equatable {
    var app: String
    /// The recipient; nil for the event with all its recipients.
    var uid: String?
    /// The event as read from its topic.
    var raw: [UInt8]
    var cause: ParkCause
    /// It is looked at again then. In the topic this and the other times are Unix ms by the writer's clock; in memory they are
    /// on the shard's steady clock (`taken`, `leaving`).
    var dueMs: Int64
    /// When it was written, or read.
    var writtenMs: Int64
    /// The end of the event's life, Unix ms: known where the record is made, and not written.
    var expiresAtMs = Int64.max
    /// The event's source, which gives its order among the user's other records.
    var source = EventSource()
    /// Identifies it among the user's other records: kind and id of the deduplicated event.
    var id: String
    /// With `uid` nil or with `process`, the conversation.
    var conversation = ""
    /// The process that parked this event because an earlier one of the conversation was unfinished; nil if none was.
    var process: String?
    /// The APNs client with the problem that it waits for, as `AppContext.Client.name`; nil for other causes.
    var client: String?
    /// Waiting devices; empty if nothing was decided yet.
    var devices: [String] = []
    /// Devices with a final record.
    var done: [String] = []
    /// The end of the hold for a desktop; nil: none is held.
    var holdUntilMs: Int64?
    var facts: ParkedFacts = []
    var silentConnections: [SilentConnection] = []
    /// The outcomes of the recipient so far, which count with this record (`MarkCounts`).
    var counts: [UInt8] = []
    /// Names of parked records with the same work (`RecordPlace.name`): what their tries finished counts with this one.
    var formerNames: [UInt16] = []
    /// The trace so far (`TraceBytes`).
    var trace: [UInt8] = []
    /// For a record that was rewritten for lack of room: the writer, so that it recognises the record.
    var mover: String?

    struct SilentConnection: Sendable, Equatable {
        var device: String
        var epoch: Int64
    }

    /// Larger events stay in memory: with the line before it the record might exceed the broker's limit.
    static let rawMax = 900_000
    private static let headMax = 1 << 20

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

    /// Common to the records of one user, or of one conversation.
    var key: String { app + (uid ?? conversation) }

    var bytes: [UInt8] {
        var writer = JSONWriter(reservingCapacity: 512 + raw.count)
        writer.beginObject()
        writer.member("v", 1)
        writer.member("park", cause.rawValue)
        writer.member("app", app)
        writer.member("uid", ifPresent: uid)
        writer.member("id", id)
        if uid == nil || process != nil { writer.member("conv", conversation) }
        writer.member("process", ifPresent: process)
        writer.member("due_ms", dueMs)
        writer.member("at_ms", writtenMs)
        if source.kafkaMs > 0 { writer.member("kafka_ms", source.kafkaMs) }
        if source.offset >= 0 {
            writer.member("partition", Int64(source.partition))
            writer.member("offset", source.offset)
        }
        writer.member("client", ifPresent: client)
        writer.texts("devices", devices)
        writer.texts("done", done)
        if let holdUntilMs { writer.member("hold_ms", holdUntilMs) }
        if !facts.isEmpty { writer.member("flags", Int64(facts.rawValue)) }
        if !silentConnections.isEmpty {
            writer.key("suspects")
            writer.beginObject()
            for silent in silentConnections {
                writer.key(escaping: silent.device)
                writer.int(silent.epoch)
            }
            writer.endObject()
        }
        if !counts.isEmpty { writer.member("counts", Hex.string(counts)) }
        if !formerNames.isEmpty {
            writer.key("names")
            writer.beginArray()
            for name in formerNames { writer.int(Int64(name)) }
            writer.endArray()
        }
        if !trace.isEmpty { writer.member("trace", Hex.string(trace)) }
        writer.member("mover", ifPresent: mover)
        writer.endObject()
        return writer.bytes + [UInt8(ascii: "\n")] + raw
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

    /// - Returns: nil for any other format.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")),
            let tree = try? JSONTree(
                parsing: UnsafeRawBufferPointer(rebasing: bytes[..<end]), maxBytes: Self.headMax, maxDepth: 4),
            tree["v"]?.int == 1, let cause = tree["park"]?.string.flatMap(ParkCause.init(rawValue:)),
            let app = tree["app"]?.string, let id = tree["id"]?.string, let dueMs = tree["due_ms"]?.int,
            let writtenMs = tree["at_ms"]?.int
        else { return nil }
        self.init(
            app: app, uid: tree["uid"]?.string, raw: Array(bytes[bytes.index(after: end)...]), cause: cause,
            dueMs: dueMs, writtenMs: writtenMs, id: id)
        conversation = tree["conv"]?.string ?? ""
        process = tree["process"]?.string
        source = EventSource(
            partition: Int32(clamping: tree["partition"]?.int ?? -1), offset: tree["offset"]?.int ?? -1,
            kafkaMs: tree["kafka_ms"]?.int ?? 0)
        client = tree["client"]?.string
        devices = tree["devices"]?.array?.compactMap(\.string) ?? []
        done = tree["done"]?.array?.compactMap(\.string) ?? []
        holdUntilMs = tree["hold_ms"]?.int
        facts = ParkedFacts(rawValue: UInt32(truncatingIfNeeded: tree["flags"]?.int ?? 0))
        silentConnections =
            tree["suspects"]?.members?.compactMap { member in
                member.value.int.map { SilentConnection(device: member.key, epoch: $0) }
            } ?? []
        counts = tree["counts"]?.string.flatMap { Hex.bytes($0.utf8) } ?? []
        formerNames = tree["names"]?.array?.compactMap(\.int).map { UInt16(truncatingIfNeeded: $0) } ?? []
        trace = tree["trace"]?.string.flatMap { Hex.bytes($0.utf8) } ?? []
        mover = tree["mover"]?.string
    }
}

extension JSONWriter {
    fileprivate mutating func texts(_ name: StaticString, _ texts: [String]) {
        if texts.isEmpty { return }
        key(name)
        beginArray()
        for text in texts { string(text) }
        endArray()
    }
}

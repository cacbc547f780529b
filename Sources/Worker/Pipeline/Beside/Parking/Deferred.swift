// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import PushCore

/// One record of `carillon.parked` with deferred work: an event, once, and its recipients that have not ended. The other case of
/// the stored form is `OwedMarks`.
///
/// A line of JSON for all its recipients, then `OpenRecipients`, then the original bytes of the event. The format is
/// internal, `v` stays 1, and later versions may add members: this one keeps those that it does not know. The reader must not
/// begin a record with a `case` or a `!…` member that it does not know (`Reading.unknown`).
struct Deferred: Sendable, Equatable {
    /// All have the same event. One without a uid means all of the event's recipients.
    var open: [ParkedRecord]
    /// Members of the head that a later version wrote.
    var later: [JSONTree.Member] = []

    static let headMax = 1 << 20
    /// Deeper than any of this version: members of later ones are kept.
    static let headDepth = 8
    /// The bytes of a record with several recipients: brokers take a little more than a million by default.
    static let recordMax = 1_000_000
    private static let known: Set<String> = [
        "v", "case", "app", "id", "conv", "part", "process", "cause", "due_ms", "at_ms", "kafka_ms", "partition",
        "offset", "client", "chunk", "names", "flags", "open", "traceparent",
    ]

    /// The form of the bytes.
    enum Reading {
        case work(Deferred)
        case marks(OwedMarks)
        /// A later version's: it waits in the topic for a worker that knows it.
        case unknown
        /// Another form.
        case other
    }

    init(_ open: [ParkedRecord], later: [JSONTree.Member] = []) {
        self.open = open
        self.later = later
    }

    var key: String { open.first?.key ?? "" }

    /// The topic's key: common to the records of one conversation, or of one part of a large group.
    static func key(app: String, conversation: String, part: UInt8?) -> String {
        app + conversation + (part.map { "#\($0)" } ?? "")
    }

    /// - Parameter places: of the recipients in the event's `to.uids`; empty if there are none, or too few to matter.
    func bytes(places: [UTF8Key: Int] = [:]) -> [UInt8] {
        guard let first = open.first else { return [] }
        var recipients = OpenRecipients(base: first, places: places)
        for record in open where record.uid != nil { recipients.append(record) }
        var writer = JSONWriter(reservingCapacity: 512)
        writer.beginObject()
        writer.member("v", 1)
        writer.member("case", "work")
        writer.member("app", first.app)
        writer.member("id", first.id)
        writer.member("conv", first.conversation)
        if let part = first.part { writer.member("part", Int64(part)) }
        if let name = first.event.chunkName { writer.member("chunk", Int64(name)) }
        writer.member("process", ifPresent: first.process)
        writer.member("cause", first.laterCause ?? first.cause.rawValue)
        writer.member("due_ms", first.dueMs)
        writer.member("at_ms", first.writtenMs)
        if first.source.kafkaMs > 0 { writer.member("kafka_ms", first.source.kafkaMs) }
        if first.source.offset >= 0 {
            writer.member("partition", Int64(first.source.partition))
            writer.member("offset", first.source.offset)
        }
        writer.member("client", ifPresent: first.client)
        writer.member("traceparent", ifPresent: first.source.traceparent?.text)
        if !first.formerNames.isEmpty {
            writer.key("names")
            writer.beginArray()
            for name in first.formerNames { writer.int(Int64(name)) }
            writer.endArray()
        }
        // All recipients have one set of facts.
        if first.uid == nil, !first.facts.isEmpty { writer.member("flags", Int64(first.facts.rawValue)) }
        if first.uid != nil { writer.member("open", Int64(recipients.bytes.count)) }
        writer.members(later)
        writer.endObject()
        return writer.bytes + [UInt8(ascii: "\n")] + recipients.bytes + first.raw
    }

    /// - Parameter uids: reads `to.uids` from the event's bytes; called only if a recipient is named by its place there.
    static func read(_ bytes: UnsafeRawBufferPointer, uids: (_ raw: [UInt8], EventSource) -> [String]?) -> Reading {
        guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")),
            let tree = try? JSONTree(
                parsing: UnsafeRawBufferPointer(rebasing: bytes[..<end]), maxBytes: headMax, maxDepth: headDepth),
            tree["v"]?.int == 1, let kind = tree["case"]?.string
        else { return .other }
        let isMarks = kind.isSame(as: "marks")
        let own = isMarks ? OwedMarks.known : known
        let later = (tree.members ?? []).filter { !own.contains($0.key) }
        if !isMarks && !kind.isSame(as: "work") || later.contains(where: { $0.key.utf8.first == UInt8(ascii: "!") }) {
            return .unknown
        }
        let rest = bytes[bytes.index(after: end)...]
        if isMarks { return OwedMarks(tree, rest, later: later).map(Reading.marks) ?? .other }
        let size = Int(clamping: tree["open"]?.int ?? 0)
        guard size >= 0, size <= rest.count, var base = base(of: tree, raw: Array(rest.dropFirst(size))) else {
            return .other
        }
        if tree["open"] == nil {
            base.facts = ParkedFacts(rawValue: UInt32(truncatingIfNeeded: tree["flags"]?.int ?? 0))
            return .work(Deferred([base], later: later))
        }
        let open = OpenRecipients.read(rest.prefix(size), base: base) { uids(base.raw, base.source) }
        return open.map { .work(Deferred($0, later: later)) } ?? .other
    }

    /// The fields that the recipients share.
    private static func base(of tree: JSONTree, raw: [UInt8]) -> ParkedRecord? {
        guard let app = tree["app"]?.string, let id = tree["id"]?.string, let cause = tree["cause"]?.string,
            let dueMs = tree["due_ms"]?.int, let writtenMs = tree["at_ms"]?.int
        else { return nil }
        let event = ParkedEvent(
            app: app, id: id, raw: raw, source: EventSource(ofHead: tree), conversation: tree["conv"]?.string ?? "",
            part: tree["part"]?.int.map { UInt8(truncatingIfNeeded: $0) },
            chunkName: tree["chunk"]?.int.map { UInt16(truncatingIfNeeded: $0) })
        var base = ParkedRecord(event, uid: nil, cause: .behind, dueMs: dueMs, writtenMs: writtenMs)
        base.take(cause: cause)
        base.process = tree["process"]?.string
        base.take(client: tree["client"]?.string)
        base.formerNames = tree["names"]?.array?.compactMap(\.int).map { UInt16(truncatingIfNeeded: $0) } ?? []
        return base
    }

    /// Records that fit the broker's limit: usually one.
    func divided(places: [UTF8Key: Int]) -> [Deferred] {
        guard open.count > 1, let first = open.first else { return [self] }
        let room = max(Self.recordMax - first.raw.count - 2_048, 50_000)
        var open = open
        var sizes = sizes(of: open, places)
        if sizes.reduce(0, +) > room {
            // Waits are not worth a further copy of the event.
            for index in open.indices { open[index].journal.leaveOutWaits() }
            sizes = self.sizes(of: open, places)
        }
        var parts: [Deferred] = []
        var (start, size) = (0, 0)
        for index in open.indices {
            if size + sizes[index] > room, index > start {
                parts.append(Deferred(Array(open[start..<index]), later: later))
                (start, size) = (index, 0)
            }
            size += sizes[index]
        }
        return parts + [Deferred(Array(open[start...]), later: later)]
    }

    private func sizes(of open: [ParkedRecord], _ places: [UTF8Key: Int]) -> [Int] {
        guard let first = open.first else { return [] }
        var recipients = OpenRecipients(base: first, places: places)
        return open.map { record in
            let before = recipients.bytes.count
            recipients.append(record)
            return recipients.bytes.count - before
        }
    }
}

extension JSONWriter {
    /// Members that a later version wrote.
    mutating func members(_ members: [JSONTree.Member]) {
        for member in members {
            key(escaping: member.key)
            tree(member.value)
        }
    }
}

extension EventSource {
    /// The source that the first line of a record names.
    init(ofHead tree: JSONTree) {
        self.init(
            partition: Int32(clamping: tree["partition"]?.int ?? -1), offset: tree["offset"]?.int ?? -1,
            kafkaMs: tree["kafka_ms"]?.int ?? 0, traceparent: tree["traceparent"]?.string.flatMap(Traceparent.init))
    }
}

extension ParkedRecord {
    /// An unknown cause is a later version's.
    mutating func take(cause text: String) {
        cause = ParkCause(rawValue: text) ?? .behind
        laterCause = ParkCause(rawValue: text) == nil ? text : nil
    }

    /// An empty name is none.
    mutating func take(client name: String?) { client = name.flatMap { $0.isEmpty ? nil : $0 } }
}

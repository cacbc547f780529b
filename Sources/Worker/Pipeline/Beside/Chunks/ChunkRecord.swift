// SPDX-License-Identifier: Apache-2.0
import JSON
import PushCore

/// One record of `carillon.chunks`: some members of a large group, with their event.
///
/// A line of JSON, and after it the original bytes of the event. The format is internal. The reader treats these
/// members like those of a small group.
struct ChunkRecord: Sendable, Equatable {
    var app: String
    var conversation: String
    /// Their part of the group (`ChunkPlan.part`). Records of one part keep their order.
    var part: Int
    var members: [MemberPage.Member]
    /// The event's source.
    var source: EventSource
    /// The event as read from its topic.
    var raw: [UInt8]

    /// A larger event's group is not divided: with the line before it the record might exceed the broker's limit.
    static let rawMax = 600_000
    private static let headMax = 1 << 20

    /// Equal for all records of one part of the group.
    var key: String { app + conversation + "#" + String(part) }

    var bytes: [UInt8] {
        var writer = JSONWriter(reservingCapacity: 512 + 40 * members.count + raw.count)
        writer.beginObject()
        writer.member("v", 1)
        writer.member("app", app)
        writer.member("conv", conversation)
        writer.member("part", Int64(part))
        if source.kafkaMs > 0 { writer.member("kafka_ms", source.kafkaMs) }
        writer.member("partition", Int64(source.partition))
        writer.member("offset", source.offset)
        writer.member("traceparent", ifPresent: source.traceparent?.text)
        writer.key("uids")
        writer.beginArray()
        for member in members { writer.string(member.uid) }
        writer.endArray()
        writer.key("levels")
        writer.beginArray()
        for member in members { writer.int(Int64(member.level.rawValue)) }
        writer.endArray()
        writer.endObject()
        return writer.bytes + [UInt8(ascii: "\n")] + raw
    }

    init(
        app: String, conversation: String, part: Int, members: [MemberPage.Member], source: EventSource, raw: [UInt8]
    ) {
        self.app = app
        self.conversation = conversation
        self.part = part
        self.members = members
        self.source = source
        self.raw = raw
    }

    /// - Returns: nil for any other format.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let head = UnsafeRawBufferPointer(rebasing: bytes[..<end])
        guard let tree = try? JSONTree(parsing: head, maxBytes: Self.headMax, maxDepth: Deferred.headDepth),
            tree["v"]?.int == 1, let app = tree["app"]?.string, let conversation = tree["conv"]?.string,
            let part = tree["part"]?.int, let uids = tree["uids"]?.array, let levels = tree["levels"]?.array,
            uids.count == levels.count
        else { return nil }
        var members: [MemberPage.Member] = []
        members.reserveCapacity(uids.count)
        for (uid, level) in zip(uids, levels) {
            guard let uid = uid.string, uid.utf8.count <= InputLimit.user else { return nil }
            let known = level.int.flatMap { MuteLevel(rawValue: Int(clamping: $0)) }
            members.append(MemberPage.Member(uid: uid, level: known ?? .unset))
        }
        self.init(
            app: app, conversation: conversation, part: Int(clamping: part), members: members,
            source: EventSource(ofHead: tree), raw: Array(bytes[bytes.index(after: end)...]))
    }
}

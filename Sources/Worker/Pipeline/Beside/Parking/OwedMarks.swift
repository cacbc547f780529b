// SPDX-License-Identifier: Apache-2.0
import JSON
import PushCore

/// The case `marks` of `Deferred`: recipients of one event with owed claims.
///
/// A line of JSON for the event, and then an entry of `Parts` for each recipient. The record has the key that deferred work of the
/// event has, so that one shard reads both. This version writes one recipient per record, because recipients end one by one.
struct OwedMarks: Sendable {
    let app: String
    /// The conversation; of a Live Activity its id.
    let conversation: String
    /// As of `ParkedRecord`.
    var part: UInt8?
    var claims: [OwedClaim]
    /// Members of the head that a later version wrote.
    var later: [JSONTree.Member] = []

    static let known: Set<String> = ["v", "case", "app", "conv", "part"]

    var key: String { Deferred.key(app: app, conversation: conversation, part: part) }

    var bytes: [UInt8] {
        var writer = JSONWriter(reservingCapacity: 512)
        writer.beginObject()
        writer.member("v", 1)
        writer.member("case", "marks")
        writer.member("app", app)
        writer.member("conv", conversation)
        if let part { writer.member("part", Int64(part)) }
        writer.members(later)
        writer.endObject()
        return claims.reduce(into: writer.bytes + [UInt8(ascii: "\n")]) { $0 += $1.entry }
    }

    init(app: String, conversation: String, part: UInt8?, claims: [OwedClaim]) {
        self.app = app
        self.conversation = conversation
        self.part = part
        self.claims = claims
    }

    /// - Returns: nil if the bytes are damaged.
    init?(_ head: JSONTree, _ entries: Slice<UnsafeRawBufferPointer>, later: [JSONTree.Member]) {
        guard let app = head["app"]?.string, app.utf8.count <= InputLimit.id, !entries.isEmpty,
            let conversation = head["conv"]?.string, conversation.utf8.count <= InputLimit.name
        else { return nil }
        self.init(
            app: app, conversation: conversation,
            part: head["part"]?.int.map { UInt8(truncatingIfNeeded: $0) }, claims: [])
        self.later = later
        var reader = PartReader(rest: entries)
        while !reader.rest.isEmpty {
            guard let entry = reader.entry(),
                let claim = OwedClaim(entry: entry, app: app, conversation: conversation)
            else { return nil }
            claims.append(claim)
        }
    }
}

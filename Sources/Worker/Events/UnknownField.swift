// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON

/// A field of a record that no reader knows, so that it has no effect.
public struct UnknownField: Equatable, Sendable {
    /// `push.body`
    public let path: String
    /// The known field that the sender probably means: `push.content`.
    public let near: String?

    /// In words, for people.
    public var words: String { "unknown field \(path)" + (near.map { ", did you mean \($0)?" } ?? "") }

    /// - Parameter root: the record that has the note's object.
    init(_ note: JSONUnknownKeys.Note, in root: JSONCursor) {
        let parent = String((root.path(to: note.object) ?? "").drop { $0 == "." })
        func place(_ name: String) -> String { parent.isEmpty ? name : "\(parent).\(name)" }
        path = place(String(note.name.prefix(64)))
        let near = NearestWord.to(note.name, among: note.known) ?? Self.synonym(of: note.name, among: note.known)
        if let near {
            self.near = place(near)
        } else {
            // An option of the push that lies beside it.
            let isOption = parent.isEmpty && PushKey.allCases.contains { "\($0.name)" == note.name }
            self.near = isOption ? "push.\(note.name)" : nil
        }
    }

    /// Words of APNs and of other push services for what a field here says.
    private static let synonyms: [(words: Set<String>, field: String)] = [
        (["alert", "body", "message", "text"], "content"),
        (["account", "user", "user_id"], "uid"), (["accounts", "users", "user_ids"], "uids"),
        (["created_at", "time", "timestamp"], "sent_ms"), (["expiration", "expiry", "ttl"], "expire_at_ms"),
        (["schedule_time", "scheduled_at", "send_after", "send_time"], "send_at_ms"),
        (["nickname"], "nick"), (["mutable_content"], "mutable"), (["interruption_level"], "interruption"),
    ]

    private static func synonym(of name: String, among known: [String]) -> String? {
        let name = name.lowercased().replacing("-", with: "_")
        return synonyms.first { $0.words.contains(name) && known.contains($0.field) }?.field
    }
}

// SPDX-License-Identifier: Apache-2.0
import EventLoop
import SimulatedSystem

/// The records of episodes.
extension Traffic {
    /// A token that APNs answers by its beginning.
    func makeToken(_ beginning: String) -> String {
        let digits = String(next("token of an episode"), radix: 16)
        return beginning + String(repeating: "0", count: 64 - beginning.count - digits.count) + digits
    }

    func sendOfEpisode(
        _ note: SentNote, kind: String, conversation: String, messageID: String?, sentMs: Int64, _ fields: String
    ) {
        let number = next("event of an episode")
        note.eventID = "ke\(number)"
        note.messageID = messageID ?? "km\(number)"
        if kind == "live_activity" { note.messageID = note.eventID }
        note.conversation = conversation
        (note.atNanos, note.writtenMs) = (system.nowNanos, system.wallMs)
        let name = kind == "live_activity" ? "" : ",\"msg_id\":\"\(note.messageID)\""
        let head =
            "{\"v\":1,\"kind\":\"\(kind)\",\"app\":\"\(Episode.app)\",\"event_id\":\"\(note.eventID)\",\"sent_ms\":\(sentMs)"
        let place = produce("im.events", conversation, head + name + fields + "}")
        story.tell(
            "episode: \(kind) \(note.messageID) (event \(note.eventID)) at im.events \(place.partition)/\(place.offset): \(fields)",
            about: [note.messageID, note.eventID])
    }

    func writeOfEpisode(_ note: SentNote, kind: String, uid: String, sentMs: Int64, _ fields: String) {
        note.eventID = "ks\(next("change of an episode"))"
        note.atNanos = system.nowNanos
        let head =
            "{\"v\":1,\"kind\":\"\(kind)\",\"app\":\"\(Episode.app)\",\"event_id\":\"\(note.eventID)\",\"sent_ms\":\(sentMs)"
        _ = produce("im.user-state", uid, head + ",\"uid\":\"\(uid)\",\(fields)}")
        story.tell("episode: \(kind) \(note.eventID) of \(uid): \(fields)", about: [note.eventID])
    }

    /// A record that nobody can use; `EVENT` in it is its id.
    func writeBad(_ note: SentNote, topic: String, _ value: String) {
        note.eventID = "kb\(next("bad record of an episode"))-"
        note.atNanos = system.nowNanos
        var parts = value.split(separator: "EVENT", omittingEmptySubsequences: false).map(String.init)
        let first = parts.removeFirst()
        let filled = parts.reduce(first) { $0 + note.eventID + $1 }
        _ = produce(topic, "bad", filled)
        story.tell("episode: a bad record of \(topic): \(filled)", about: [note.eventID])
    }
}

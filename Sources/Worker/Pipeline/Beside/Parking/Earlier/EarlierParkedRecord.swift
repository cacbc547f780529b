// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import PushCore

/// The forms of `carillon.parked` before `Deferred`: one recipient with its event, or an event with all its recipients. This
/// version only reads them.
extension ParkedRecord {
    /// - Parameter conversation: reads the conversation, or the activity, from the event's bytes.
    /// - Returns: nil for any other format.
    init?(
        earlier bytes: UnsafeRawBufferPointer, conversation: (_ raw: [UInt8], EventSource) -> String? = { _, _ in nil }
    ) {
        guard let end = bytes.firstIndex(of: UInt8(ascii: "\n")),
            let tree = try? JSONTree(
                parsing: UnsafeRawBufferPointer(rebasing: bytes[..<end]), maxBytes: Deferred.headMax, maxDepth: 4),
            tree["v"]?.int == 1, let cause = tree["park"]?.string.flatMap(ParkCause.init(rawValue:)),
            let app = tree["app"]?.string, let id = tree["id"]?.string, let dueMs = tree["due_ms"]?.int,
            let writtenMs = tree["at_ms"]?.int
        else { return nil }
        let (raw, source) = (Array(bytes[bytes.index(after: end)...]), EventSource(ofHead: tree))
        let event = ParkedEvent(
            app: app, id: id, raw: raw, source: source,
            conversation: tree["conv"]?.string ?? conversation(raw, source) ?? "")
        self.init(event, uid: tree["uid"]?.string, cause: cause, dueMs: dueMs, writtenMs: writtenMs)
        process = tree["process"]?.string
        take(client: tree["client"]?.string)
        devices = tree["devices"]?.array?.compactMap(\.string) ?? []
        holdUntilMs = tree["hold_ms"]?.int
        facts = ParkedFacts(rawValue: UInt32(truncatingIfNeeded: tree["flags"]?.int ?? 0))
        silentConnections =
            tree["suspects"]?.members?.compactMap { member in
                member.value.int.map { SilentConnection(device: member.key, epoch: $0) }
            } ?? []
        formerNames = tree["names"]?.array?.compactMap(\.int).map { UInt16(truncatingIfNeeded: $0) } ?? []
        journal = Journal(
            done: tree["done"]?.array?.compactMap(\.string) ?? [],
            counts: tree["counts"]?.string.flatMap { Hex.bytes($0.utf8) } ?? [],
            trace: tree["trace"]?.string.flatMap { Hex.bytes($0.utf8) } ?? [], writtenMs: writtenMs)
    }
}

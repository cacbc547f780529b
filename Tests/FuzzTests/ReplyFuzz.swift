// SPDX-License-Identifier: Apache-2.0
@testable import Redis

/// Redis' bytes mean the same however the network cuts them, and every accessor stays inside them.
enum ReplyFuzz {
    private static let bytesMax = 4096

    static func run(_ bytes: UnsafeRawBufferPointer) -> [String] {
        let piece = Int(bytes.first ?? 0) % 16 + 1
        let stream = Array(bytes.dropFirst().prefix(1 << 16))
        guard let whole = read(stream, by: 4096), let cut = read(stream, by: piece) else { return ["no reader"] }
        var complaints = whole.texts == cut.texts ? [] : ["in pieces of \(piece): \(cut.texts), not \(whole.texts)"]
        let held = max(whole.heldBytes, cut.heldBytes)
        if held > heldMax { complaints.append("\(held) bytes are held") }
        if whole.texts.contains(badMap) { complaints.append("a map of slots that cannot be") }
        return complaints
    }

    private static let badMap = "bad map"

    /// The reply as a map of a cluster's slots: none, or one that can be.
    private static func isGoodMap(_ reply: borrowing RedisReply) -> Bool {
        guard let map = SlotMap(reply, asker: "h") else { return true }
        return (1...KeySlot.count).contains(map.servedCount) && !map.masters.isEmpty
            && map.masters.allSatisfy { !$0.host.isEmpty && $0.port > 0 }
    }

    /// Storage for one reply at the limit, its text not yet whole, and one line; whatever the bytes announce.
    private static let heldMax = 160_000

    private static func read(_ stream: [UInt8], by piece: Int) -> (texts: [String], heldBytes: Int)? {
        guard var reader = try? ReplyReader(replyBytesMax: bytesMax) else { return nil }
        var texts: [String] = []
        var heldBytes = 0
        var rest = stream[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(piece))
            rest = rest.dropFirst(part.count)
            part.withUnsafeBytes { reader.feed($0) }
            reading: while true {
                switch reader.next() {
                case .needsBytes: break reading
                case .broken: return (texts + ["broken"], heldBytes)
                case .tooLarge:
                    texts.append("too large")
                    reader.release()
                case .reply:
                    texts.append(text(RedisReply(reader.arena, 0)))
                    if !isGoodMap(RedisReply(reader.arena, 0)) { texts.append(badMap) }
                    reader.release()
                }
            }
            heldBytes = max(heldBytes, reader.heldBytes)
        }
        return (texts, heldBytes)
    }

    /// The reply as text, through the accessors that callers have.
    private static func text(_ reply: borrowing RedisReply) -> String {
        switch reply.kind {
        case .integer: return ":\(reply.int64 ?? Int64.min)"
        case .null: return "nil"
        case .string, .status: return "\(reply.string?.debugDescription ?? "\(Array(reply.bytes))")"
        case .error:
            let leads = Redirect(errorReply: reply.bytes, asker: "h").map { " to \($0.slot) at \($0.address)" } ?? ""
            return "-\(RedisFault(errorReply: reply.bytes).code)\(leads)"
        case .array:
            var items: [String] = []
            reply.forEach { items.append(text($0)) }
            _ = reply[reply.count].int64
            return "[" + items.joined(separator: ",") + "]"
        }
    }
}

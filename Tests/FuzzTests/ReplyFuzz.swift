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
        return complaints
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
        case .error: return "-\(RedisFault(errorReply: reply.bytes).code)"
        case .array:
            var items: [String] = []
            reply.forEach { items.append(text($0)) }
            _ = reply[reply.count].int64
            return "[" + items.joined(separator: ",") + "]"
        }
    }
}

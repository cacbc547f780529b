import PushCore

@testable import Redis
@testable import Worker

/// What stands in Redis, by whoever wrote it, is read or counts as absent.
///
/// The input is a row of texts, each ended by a zero byte; they come as the answers of all reads.
enum StoredFuzz {
    static func run(_ bytes: UnsafeRawBufferPointer) -> [String] {
        let texts = bytes.prefix(1 << 16).split(separator: 0, omittingEmptySubsequences: false).map { [UInt8]($0) }
        guard var reader = try? ReplyReader(replyBytesMax: 1 << 20) else { return ["no reader"] }
        var stream: [UInt8] = Array("*\(texts.count)\r\n".utf8)
        for text in texts { stream += Array("$\(text.count)\r\n".utf8) + text + [13, 10] }
        for start in stride(from: 0, to: stream.count, by: 4096) {
            stream[start..<min(start + 4096, stream.count)].withUnsafeBytes { reader.feed($0) }
        }
        guard reader.next() == .reply else { return [] }
        return read(RedisReply(reader.arena, 0))
    }

    private static func read(_ row: borrowing RedisReply) -> [String] {
        var recipient = Recipient(uid: "u")
        _ = RecipientReplies.conversation(row, into: &recipient)
        RecipientReplies.user(row, into: &recipient)
        RecipientReplies.presence(row, into: &recipient)
        RecipientReplies.member(row[0], into: &recipient)
        _ = [ClaimReply(row)?.badge, MemberPage(row).map { Int64(clamping: $0.cursor) }]
        var complaints: [String] = []
        var place = 0
        row.forEach { text in
            _ = [PairMark(text)?.isRevoked, PairMark.isFinished(text), DueUser(member: text.bytes) == nil]
            _ = BadgeReading(base: text).badge(size: Int64(place))
            if let mark = PairMark(text) {
                mark.trace.withUnsafeBytes { _ = TraceRecord($0, kind: .message, id: "m") }
            }
            for token in recipient.tokens {
                let standing = OwnerReply.standing(text, uid: "u", token: token)
                let owner = OwnerReply(text)
                if standing == .owned, owner?.uid != "u" || owner?.isBound != true {
                    complaints.append("\(String(describing: owner)) owns it as u")
                }
            }
            place += 1
        }
        for token in recipient.tokens { complaints += rewritten(token) }
        return complaints
    }

    /// A token that was read is written as it was understood.
    private static func rewritten(_ token: BoundToken) -> [String] {
        let field = TokenText.field(device: token.device, token.record)
        let words = TokenText.words(token.record).map { $0 == "=" ? "-" : $0 }
        let text = TokenText.head(token.record, version: token.version) + words.joined()
        let again = Array(field.utf8).withUnsafeBytes { field in
            Array(text.utf8).withUnsafeBytes { TokenText.token(field: field, record: $0) }
        }
        // Times are bounded when they are written, and empty words are absent ones.
        guard let again else { return [] }
        return again.device == token.device && again.record.hex == token.record.hex && again.version == token.version
            ? [] : ["\(token) is read again as \(again)"]
    }
}

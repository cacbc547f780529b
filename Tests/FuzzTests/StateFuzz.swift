// SPDX-License-Identifier: Apache-2.0
import APNs
import PushCore

@testable import Redis
@testable import Worker

/// What stands in Redis, in any shape: every reader of it ends, what it lets through is within the contract's bounds, and a
/// decision about it can be taken.
enum StateFuzz {
    /// The texts of a reply stand one after the other, parted by a byte that no UTF-8 has.
    static func run(_ bytes: UnsafeRawBufferPointer) -> [String] {
        let texts = bytes.split(separator: 0xFF, omittingEmptySubsequences: false).map { Array($0) }
        guard var reader = try? ReplyReader(replyBytesMax: 64 << 20) else { return ["no reader"] }
        feed(texts, to: &reader)
        guard reader.next() == .reply else { return ["no reply of \(texts.count) texts"] }
        let reply = RedisReply(reader.arena, 0)
        var recipient = Recipient(uid: "u")
        _ = RecipientReplies.conversation(reply, into: &recipient)
        RecipientReplies.user(reply, into: &recipient)
        RecipientReplies.presence(reply, into: &recipient)
        RecipientReplies.member(reply[0], into: &recipient)
        var complaints = check(recipient) + singles(reply[0])
        for name in StateStore.devices(reply) where name.utf8.count > 128 { complaints.append("a long device") }
        for member in MemberPage(reply)?.members ?? [] where member.uid.utf8.count > 128 {
            complaints.append("a long member")
        }
        for token in recipient.tokens {
            complaints += rewritten(token)
            reply.forEach { complaints += owned($0, token) }
        }
        decideAbout(&recipient)
        return complaints
    }

    /// Whose a token is says the same whichever way it is asked.
    private static func owned(_ reply: borrowing RedisReply, _ token: BoundToken) -> [String] {
        let owner = OwnerReply(reply)
        guard OwnerReply.standing(reply, uid: "u", token: token) == .owned else { return [] }
        return owner?.uid == "u" && owner?.isBound == true ? [] : ["\(String(describing: owner)) owns it as u"]
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

    private static func feed(_ texts: [[UInt8]], to reader: inout ReplyReader) {
        var wire = Array("*\(texts.count)\r\n".utf8)
        for text in texts { wire += Array("$\(text.count)\r\n".utf8) + text + [0x0D, 0x0A] }
        var rest = wire[...]
        while !rest.isEmpty {
            let part = rest.prefix(4096)
            rest = rest.dropFirst(part.count)
            part.withUnsafeBytes { reader.feed($0) }
        }
    }

    private static func check(_ recipient: Recipient) -> [String] {
        var complaints: [String] = []
        if recipient.tokens.count > RecipientReplies.devicesMax
            || recipient.presence.count > RecipientReplies.devicesMax
        {
            complaints.append("more devices than a user has")
        }
        for token in recipient.tokens {
            let record = token.record
            if DeviceToken(record.hex) == nil { complaints.append("a token that cannot be pushed to") }
            let words = [record.credential, record.contentKey, record.language, record.zone].compactMap { $0 }
            if token.device.utf8.count > 128 || words.contains(where: { $0.utf8.count > 64 }) {
                complaints.append("a token over its bounds")
            }
        }
        for entry in recipient.presence
        where entry.device.utf8.count > 128 || entry.gateway.utf8.count > 256
            || entry.activeConversation?.utf8.count ?? 0 > 128
        {
            complaints.append("presence over its bounds")
        }
        let settings = recipient.settings
        if settings.language?.utf8.count ?? 0 > 64 || settings.phone?.utf8.count ?? 0 > 20 {
            complaints.append("settings over their bounds")
        }
        let minutes = 0..<1440
        if settings.dnd?.windows.contains(where: { !minutes.contains($0.start) || !minutes.contains($0.end) }) == true {
            complaints.append("DND that are none")
        }
        return complaints
    }

    /// Records that are one text.
    private static func singles(_ reply: borrowing RedisReply) -> [String] {
        var complaints: [String] = []
        if let owner = OwnerReply(reply), owner.uid.utf8.count > 128 { complaints.append("a long owner") }
        if let user = DueUser(member: reply.bytes), user.uid.utf8.count > 128 { complaints.append("a long due user") }
        for size in [Int64.min, 0, .max] where BadgeReading(base: reply).badge(size: size) < 0 {
            complaints.append("a badge below 0")
        }
        _ = ClaimReply(reply)
        if let mark = PairMark(reply) {
            for device in mark.notes?.doneDevices ?? [] where device.utf8.count > 128 {
                complaints.append("a long device")
            }
            let record = mark.trace.withUnsafeBytes { TraceRecord($0, kind: .message, id: "m") }
            for device in record?.devices ?? [] where device.device?.utf8.count ?? 0 > 256 {
                complaints.append("a long name in a trace")
            }
            _ = record?.facts.steps
        }
        return complaints
    }

    private static func decideAbout(_ recipient: inout Recipient) {
        var leases = LeaseCache()
        for entry in recipient.presence.prefix(2) {
            leases.store(entry.gateway, epoch: entry.gatewayEpoch, nowNanos: 0)
        }
        leases.apply(to: &recipient, nowNanos: 0)
        let policy = AppPolicy(id: "im", topic: "t")
        let message = Message(
            msgID: "m", expireAtMs: .max, conversation: .init(id: "c", type: .group), from: .init(uid: "a"),
            to: .init(uids: ["u"]))
        for now in [Int64(0), 1_700_000_000_000, 253_402_300_799_999] {
            _ = decide(message, sentMs: 0, for: recipient, policy: policy, zones: DecisionFuzz.zones, now: now)
            _ = DNDState.endMs(for: recipient, policy: policy, zones: DecisionFuzz.zones, now: now)
        }
    }
}

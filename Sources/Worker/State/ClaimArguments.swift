import PushCore
import Redis

/// What follows the keys in a claim: encoded once for all members of a group who are claimed in one turn.
struct ClaimArguments {
    /// Whose arguments are kept. Members of a group share their texts, which makes them quick to compare.
    private struct Subject: Equatable {
        // What tells most claims apart comes first.
        var seq: Int64?
        var nowMs: Int64
        var sentMs: Int64
        var expireAtMs: Int64
        var counted: Bool
        var kind: PairKind
        var id: String
        var conversation: String
        var revoke: Message.Revoke?
    }

    private var subject: Subject?
    private var encoded: [UInt8] = []
    private var count = 0

    /// Writes the arguments that `StateScripts.claim` names.
    mutating func write(_ request: borrowing ClaimRequest, to command: inout RedisCommand) {
        // Comparing and keeping would cost a single recipient as much as it saves.
        guard request.isOneOfMany else { return Self.encode(request, to: &command) }
        let wanted = Subject(
            seq: request.seq, nowMs: request.nowMs, sentMs: request.sentMs, expireAtMs: request.expireAtMs,
            counted: request.counted, kind: request.kind, id: request.id, conversation: request.conversation,
            revoke: request.revoke)
        if wanted == subject { return encoded.withUnsafeBytes { command.append(encoded: $0, arguments: count) } }
        let (start, before) = (command.encodedCount, command.count)
        Self.encode(request, to: &command)
        command.withArguments(from: start) { encoded.replaceSubrange(encoded.indices, with: $0) }
        count = command.count - before
        subject = wanted
    }

    private static func encode(_ request: borrowing ClaimRequest, to command: inout RedisCommand) {
        let sentMs = StateKeys.time(request.sentMs)
        // A negative sequence cannot be compared, so it is none.
        let seq = request.seq.flatMap { $0 < 0 ? nil : $0 }
        let digest = StateKeys.digest(request.conversation)
        command.arg(request.counted ? "c" : "o")
        command.arg(StateKeys.markSeconds(expireAtMs: request.expireAtMs, nowMs: request.nowMs))
        command.field("r", request.conversation)
        command.digestPart(digest)
        command.part(sentMs)
        command.part(byte: UInt8(ascii: " "))
        if let seq { command.part(seq) }
        command.part(byte: UInt8(ascii: " "))
        command.part(byte: request.kind.letter)
        command.part(request.id)
        command.end()
        command.arg(sentMs)
        command.optional(seq)
        command.arg(StateKeys.time(request.nowMs))
        guard let revoke = request.revoke else { return }
        command.arg(revoke.badge == .decrease ? "x" : "k")
        command.digestPart(digest)
        command.end()
        command.part(byte: UInt8(ascii: " "))
        command.part(byte: PairKind.message.letter)
        command.part(revoke.targetMsgID)
        command.end()
    }
}

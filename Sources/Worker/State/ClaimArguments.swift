import PushCore
import Redis

/// What follows the keys in a claim: encoded once for all recipients of a message who are claimed in one turn.
struct ClaimArguments {
    /// Of the last claim.
    private var subject: ClaimSubject?
    private var counted = false
    private var nowMs: Int64 = 0
    /// Kept from the second claim in a row on: most messages have one recipient.
    private var encoded: [UInt8] = []
    private var count = 0

    /// Writes the arguments that `StateScripts.claim` names.
    mutating func write(_ request: borrowing ClaimRequest, to command: inout RedisCommand) {
        guard request.subject === subject, request.counted == counted, request.nowMs == nowMs else {
            subject = request.subject
            counted = request.counted
            nowMs = request.nowMs
            count = 0
            return Self.encode(request, to: &command)
        }
        if count > 0 { return encoded.withUnsafeBytes { command.append(encoded: $0, arguments: count) } }
        let (start, before) = (command.encodedCount, command.count)
        Self.encode(request, to: &command)
        command.withArguments(from: start) { encoded.replaceSubrange(encoded.indices, with: $0) }
        count = command.count - before
    }

    private static func encode(_ request: borrowing ClaimRequest, to command: inout RedisCommand) {
        let subject = request.subject
        let digest = StateKeys.digest(subject.conversation)
        command.arg(request.counted ? "c" : "o")
        command.arg(StateKeys.markSeconds(expireAtMs: subject.expireAtMs, nowMs: request.nowMs))
        command.field("r", subject.conversation)
        command.ledgerMember(subject, digest: digest)
        command.arg(StateKeys.time(subject.sentMs))
        command.optional(subject.comparableSeq)
        command.arg(StateKeys.time(request.nowMs))
        guard let revoke = subject.revoke else { return }
        command.arg(revoke.badge == .decrease ? "x" : "k")
        command.digestPart(digest)
        command.end()
        command.part(byte: UInt8(ascii: " "))
        command.part(byte: PairKind.message.letter)
        command.part(revoke.targetMsgID)
        command.end()
    }
}

extension RedisCommand {
    /// What stands for a message in the ledger, as one argument: `<digest><sent> <seq or empty> <kind><id>`.
    mutating func ledgerMember(_ subject: ClaimSubject, digest: UInt64) {
        digestPart(digest)
        part(StateKeys.time(subject.sentMs))
        part(byte: UInt8(ascii: " "))
        if let seq = subject.comparableSeq { part(seq) }
        part(byte: UInt8(ascii: " "))
        part(byte: subject.kind.letter)
        part(subject.id)
        end()
    }
}

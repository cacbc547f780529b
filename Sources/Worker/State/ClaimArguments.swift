// SPDX-License-Identifier: Apache-2.0
import PushCore
import Redis

extension RedisCommand {
    /// The arguments of a claim after the keys, in the order of `ClaimScripts.claim`.
    ///
    /// - Parameters:
    ///   - wasAdded: plain commands have just added it to the ledger.
    ///   - withoutDevice: it is to be recorded without a device.
    mutating func claimArguments(
        _ subject: ClaimSubject, counted: Bool, wasAdded: Bool = false, withoutDevice: WithoutDevice? = nil,
        nowMs: Int64
    ) {
        let digest = StateKeys.digest(subject.conversation)
        part(word: wasAdded ? "a" : counted ? "c" : subject.clientCounts || withoutDevice != nil ? "q" : "o")
        if let withoutDevice { part(withoutDevice.text) }
        end()
        arg(StateKeys.markSeconds(expireAtMs: subject.expireAtMs, nowMs: nowMs))
        field("r", subject.conversation)
        ledgerMember(subject, digest: digest)
        arg(StateKeys.time(subject.sentMs))
        optional(subject.comparableSeq)
        arg(StateKeys.time(nowMs))
        guard let revoke = subject.revoke else { return }
        arg(revoke.badge == .decrease ? "x" : "k")
        digestPart(digest)
        end()
        part(byte: UInt8(ascii: " "))
        part(byte: PairKind.message.letter)
        part(revoke.targetMsgID)
        end()
        digestPart(StateKeys.digest(revoke.targetMsgID))
        end()
        if subject.clearsOnRead { arg(word: "1") }
    }

    /// The keys of one user in a claim, in the order of `ClaimScripts.claim`.
    mutating func claimKeys(_ subject: ClaimSubject, app: String, uid: String) {
        key("c:d", app, uid, subject.kind, suffix: subject.id)
        key("c:s", app, uid)
        key("c:l", app, uid)
        key("c:x", app, uid)
        if let revoke = subject.revoke { key("c:d", app, uid, .message, suffix: revoke.targetMsgID) }
    }

    /// A message's entry in the ledger as one argument: `<digest><sent> <seq or empty> <kind><id>`.
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

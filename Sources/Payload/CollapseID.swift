// SPDX-License-Identifier: Apache-2.0
import Crypto
public import PushCore

/// The `apns-collapse-id`: pushes with the same id replace each other on the device.
public enum CollapseID {
    /// The key that is taken out of `push.payload` (NIM).
    static let payloadKey = "apns-collapse-id"

    /// Apple: at most 64 bytes.
    private static let bytesMax = 64

    /// The known facts about the message that a revoke names.
    public enum Original: Sendable, Equatable {
        /// The collapse id that its sender chose; nil: the sender chose none.
        case known(String?)
        case unknown
    }

    /// Always one: a revoke can only replace a push that had one.
    ///
    /// A revoke has that of its target, which it replaces on the device. If the target's sender chose none, it follows from the
    /// target's id. A revoke of an unknown message has its own, if it names one.
    public static func choose(
        _ message: borrowing Message, profile: PayloadProfile, original: Original = .known(nil)
    ) -> [UInt8] {
        if message.kind == .revoke, let target = message.revoke?.targetMsgID {
            switch original {
            case .known(let chosen?) where !chosen.isEmpty: return Array(fitted(chosen).utf8)
            case .unknown: if let given = given(message, profile: profile) { return Array(given.utf8) }
            case .known: break
            }
            return hashed(target)
        }
        if let given = given(message, profile: profile) { return Array(given.utf8) }
        return hashed(message.msgID)
    }

    /// The sender's id as sent; nil if it derives from the message id.
    public static func given(_ message: borrowing Message, profile: PayloadProfile) -> String? {
        if let given = message.push.collapseID, !given.isEmpty { return fitted(given) }
        let lifted = message.push.payload?.members(in: profile)?.value(of: payloadKey)?.string
        return lifted.flatMap { $0.isEmpty ? nil : fitted($0) }
    }

    /// For a push that merges several messages of a conversation, beginning with this one. It replaces none of their
    /// pushes.
    public static func merged(conversation: String, oldest msgID: String) -> [UInt8] {
        var hash = SipHash128(key0: 0x636f_6c6c_6170_7365, key1: 0x6275_7273_7473_3031)
        hash.update(lengthThen: conversation)
        hash.update(lengthThen: msgID)
        return hash.finishHex()
    }

    /// The given id if it is valid in a header, else its SHA-256 in hexadecimal.
    static func fitted(_ text: String) -> String {
        let utf8 = text.utf8
        let isFit =
            utf8.count <= bytesMax && utf8.allSatisfy { (0x20...0x7e).contains($0) }
            && utf8.first != 0x20 && utf8.last != 0x20
        return isFit ? text : SHA256.hex(Array(utf8))
    }

    /// Equal in every worker, and short, because headers that do not repeat cost bytes in HPACK.
    private static func hashed(_ msgID: String) -> [UInt8] {
        var hash = SipHash128(key0: 0x636f_6c6c_6170_7365, key1: 0x6361_7269_6c6c_6f6e)
        hash.update(lengthThen: msgID)
        return hash.finishHex()
    }
}

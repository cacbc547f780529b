// SPDX-License-Identifier: Apache-2.0
public import PushCore

/// The number that the sender of a message gives to an app that counts nothing (`badge: sender`, Getui).
public enum SenderBadge {
    private static let key = "badge"

    /// The number in the payloads of a message; nil: they have none. A digest's alert has none in any case.
    public static func number(of message: borrowing Message, profile: PayloadProfile) -> Int64? {
        guard !message.push.silent, case .object(let aps)? = LiftedKeys(message, profile).aps else { return nil }
        return text(in: aps).flatMap { Int64($0) }
    }

    /// The integer in `aps.badge` as it is written; nil: there is none, and no badge is sent.
    static func text(in aps: [JSONValue.Member]) -> String? {
        guard case .number(let text) = aps.value(of: key), Int64(text) != nil else { return nil }
        return text
    }
}

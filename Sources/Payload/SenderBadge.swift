// SPDX-License-Identifier: Apache-2.0
import PushCore

/// The number that the sender of a message gives to an app that counts nothing (`badge: sender`, Getui).
enum SenderBadge {
    private static let key = "badge"

    /// The integer in `aps.badge` as it is written; nil: there is none, and no badge is sent.
    static func text(in aps: [JSONValue.Member]) -> String? {
        guard case .number(let text) = aps.value(of: key), Int64(text) != nil else { return nil }
        return text
    }
}

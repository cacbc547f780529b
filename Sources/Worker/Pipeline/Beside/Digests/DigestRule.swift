// SPDX-License-Identifier: Apache-2.0
import PushCore

/// Decides which messages go into the digest at the end of DND (`dnd_digest`).
enum DigestRule {
    /// The end of the DND windows and the snooze that alone hold this message, Unix ms; nil if it goes into no digest.
    static func endMs(
        _ message: borrowing Message, _ decision: borrowing Decision, for recipient: borrowing Recipient,
        policy: borrowing AppPolicy, zones: some ZoneTable, now: Int64
    ) -> Int64? {
        guard decision.counted, decision.alert == .deny(.dnd), message.kind == .message else { return nil }
        return DNDState.endMs(for: recipient, policy: policy, zones: zones, now: now)
    }
}

import PushCore

/// Which messages are told in the digest at the end of quiet hours (`dnd_digest`).
enum DigestRule {
    /// When the quiet hours end that alone hold this message back, Unix ms; nil: no digest tells of it.
    static func endMs(
        _ message: borrowing Message, _ decision: borrowing Decision, for recipient: borrowing Recipient,
        policy: borrowing AppPolicy, zones: some ZoneTable, now: Int64
    ) -> Int64? {
        guard decision.counted, decision.alert == .deny(.dnd), message.kind == .message else { return nil }
        return QuietHours.endMs(for: recipient, policy: policy, zones: zones, now: now)
    }
}

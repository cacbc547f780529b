// SPDX-License-Identifier: Apache-2.0
import PushCore
import Testing

@testable import Worker

struct TraceSentenceTests {
    /// 2023-11-14 22:13:20 UTC.
    private static let atMs: Int64 = 1_700_000_000_000

    private static func sentence(_ device: TraceRecord.Device, facts: DecisionFacts = .decided) -> String? {
        let record = TraceRecord(
            atMs: atMs, sentMs: atMs, kind: .message, msgID: "m", eventID: "e", facts: facts, devices: [device])
        return TraceSentence.all(record).first?.text
    }

    @Test(
        arguments: [
            (
                .init(device: "phone", verdict: .accepted, reason: "ok", badge: 3, atMs: atMs),
                "Pushed to phone at 22:13:20 UTC, badge 3: APNs accepted it."
            ),
            (
                .init(device: "pc", verdict: .online, reason: "acked", atMs: atMs),
                "Delivered to pc at 22:13:20 UTC by its connection, and acknowledged."
            ),
            (
                .init(device: "pc", verdict: .online, reason: "ok", atMs: atMs),
                "Sent to pc at 22:13:20 UTC by its connection, which wants no ack."
            ),
            (
                .init(device: "phone", verdict: .rejected, reason: "Unregistered", status: 410, atMs: atMs),
                "Not pushed to phone: APNs refused it with 410 (Unregistered) at 22:13:20 UTC."
            ),
            (
                .init(verdict: .suppressed, reason: "no_token", atMs: atMs),
                "Not pushed: the user has no usable token and no live device."
            ),
            (.init(verdict: .suppressed, reason: "a later version's", atMs: atMs), "Not pushed: a later version's."),
            (
                .init(device: "phone", verdict: .parked, reason: "rate", atMs: atMs),
                "Waits for phone since 22:13:20 UTC: the app is over its limit."
            ),
        ] as [(TraceRecord.Device, String)])
    func anOutcomeIsOneSentence(device: TraceRecord.Device, expected: String) {
        #expect(Self.sentence(device) == expected)
    }

    /// The low bits of the facts are the levels and links as stored: level 5 of the user's own mute.
    @Test(
        arguments: [
            ("conv_muted", nil, "Not pushed: the user muted the conversation (level 5)."),
            (
                "conv_muted", atMs + 3_600_000,
                "Not pushed: the user muted the conversation until 23:13:20 UTC (level 5)."
            ),
            (
                "conv_muted", atMs + 86_400_000,
                "Not pushed: the user muted the conversation until 2023-11-15 22:13:20 UTC (level 5)."
            ),
            ("dnd", nil, "Not pushed: the user's quiet hours."),
            ("dnd", atMs + 7_200_000, "Not pushed: the user's quiet hours until 2023-11-15 00:13:20 UTC."),
        ] as [(String, Int64?, String)])
    func aDenialNamesItsEnd(reason: String, endMs: Int64?, expected: String) {
        let seconds = UInt64((endMs ?? 0) / 1000)
        let facts = DecisionFacts(rawValue: DecisionFacts.decided.rawValue | 5 << 16 | 1 << 20 | seconds << 32)
        #expect(Self.sentence(.init(verdict: .suppressed, reason: reason, atMs: Self.atMs), facts: facts) == expected)
    }

    @Test func withoutAnyOutcomeItIsInProgress() {
        let record = TraceRecord(
            atMs: 0, sentMs: 0, kind: .message, msgID: "m", eventID: "e", facts: .decided)
        #expect(TraceSentence.all(record).map(\.text) == ["No result yet: it is in progress."])
    }
}

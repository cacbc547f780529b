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
                .init(device: "phone", verdict: .accepted, reason: "forced", badge: 3, atMs: atMs),
                "Pushed to phone at 22:13:20 UTC, badge 3, forced by push.force: APNs accepted it."
            ),
            (
                .init(device: "pc", verdict: .suppressed, reason: "no_token", atMs: atMs),
                "Not pushed to pc: no ack arrived, and the device has no token."
            ),
            (
                .init(device: "pc", verdict: .online, reason: "acked", atMs: atMs),
                "Delivered to pc at 22:13:20 UTC by the long connection, and acknowledged."
            ),
            (
                .init(device: "pc", verdict: .online, reason: "ok", atMs: atMs),
                "Sent to pc at 22:13:20 UTC by the long connection; no ack is wanted."
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
                "The push to phone has waited since 22:13:20 UTC: the app is over its rate (limits.rate)."
            ),
        ] as [(TraceRecord.Device, String)])
    func anOutcomeIsOneSentence(device: TraceRecord.Device, expected: String) {
        #expect(Self.sentence(device) == expected)
    }

    /// The low bits of the facts are the levels and links as stored: level 5 of the user's own mute.
    @Test(
        arguments: [
            ("conv_muted", nil, "Not pushed: the user muted the conversation (level 5: no message alerts)."),
            (
                "conv_muted", atMs + 3_600_000,
                "Not pushed: the user muted the conversation until 23:13:20 UTC (level 5: no message alerts)."
            ),
            (
                "conv_muted", atMs + 86_400_000,
                "Not pushed: the user muted the conversation until 2023-11-15 22:13:20 UTC (level 5: no message alerts)."
            ),
            ("dnd", nil, "Not pushed: a DND window of the user is active."),
            ("dnd", atMs + 7_200_000, "Not pushed: a DND window of the user is active until 2023-11-15 00:13:20 UTC."),
        ] as [(String, Int64?, String)])
    func aDenialNamesItsEnd(reason: String, endMs: Int64?, expected: String) {
        let seconds = UInt64((endMs ?? 0) / 1000)
        let facts = DecisionFacts(rawValue: DecisionFacts.decided.rawValue | 5 << 16 | 1 << 20 | seconds << 32)
        #expect(Self.sentence(.init(verdict: .suppressed, reason: reason, atMs: Self.atMs), facts: facts) == expected)
    }

    @Test func `a level of the user's settings, a snooze and a device without alerts have words`() {
        let head = DecisionFacts.decided.rawValue
        func sentence(_ reason: String, _ bits: UInt64, device: String? = nil) -> String? {
            Self.sentence(
                .init(device: device, verdict: .suppressed, reason: reason, atMs: Self.atMs),
                facts: DecisionFacts(rawValue: head | bits))
        }
        #expect(
            sentence("conv_muted", 5 << 16 | 4 << 20)
                == "Not pushed: the user's settings.levels mute it (level 5: no message alerts).")
        let end = UInt64((Self.atMs + 3_600_000) / 1000) << 32
        #expect(
            sentence("dnd", DecisionFacts.snoozed.rawValue | end)
                == "Not pushed: the user snoozes all alerts until 23:13:20 UTC.")
        #expect(
            sentence("alerts_off", 0, device: "phone")
                == "Not pushed to phone: the device shows no alerts (bind.token.alerts is false).")
        // A link that this version does not know.
        #expect(sentence("conv_muted", 5 << 16 | 7 << 20) == "Not pushed: the conversation is muted.")
    }

    /// Of two devices that waited, one has ended. A wait for an ack ends with the new decision.
    @Test func aWaitThatHasEndedIsPast() {
        let (phone, pad) = ("phone", "pad")
        let record = TraceRecord(
            atMs: Self.atMs, sentMs: Self.atMs, kind: .message, msgID: "m", eventID: "e", facts: .decided,
            devices: [
                .init(device: phone, verdict: .parked, reason: "no_ack", atMs: Self.atMs),
                .init(device: phone, verdict: .parked, reason: "desktop_first", atMs: Self.atMs),
                .init(device: pad, verdict: .parked, reason: "burst", atMs: Self.atMs),
                .init(device: phone, verdict: .suppressed, reason: "desktop_online", atMs: Self.atMs),
            ])
        let sentences = TraceSentence.all(record)
        #expect(sentences.map(\.tone) == [.past, .past, .waits, .bad])
        #expect(
            sentences.map(\.text) == [
                "No ack of phone arrived in time, so the worker decided again at 22:13:20 UTC.",
                "The push to phone waited from 22:13:20 UTC: the user's desktop comes first.",
                "The push to pad has waited since 22:13:20 UTC: alerts of its conversation are merged (coalesce).",
                "Not pushed to phone: the user's desktop has it, and push_when_desktop_online is off.",
            ])
    }

    @Test func aWaitOfTheUserEndsWithAnyDevice() {
        let record = TraceRecord(
            atMs: Self.atMs, sentMs: Self.atMs, kind: .message, msgID: "m", eventID: "e", facts: .decided,
            devices: [
                .init(verdict: .parked, reason: "share", atMs: Self.atMs),
                .init(device: "phone", verdict: .accepted, reason: "ok", atMs: Self.atMs),
            ])
        #expect(
            TraceSentence.all(record).first?.text
                == "It waited from 22:13:20 UTC: the app is over its share of a worker's memory (limits.share).")
    }

    @Test func withoutAnyOutcomeItIsInProgress() {
        let record = TraceRecord(
            atMs: 0, sentMs: 0, kind: .message, msgID: "m", eventID: "e", facts: .decided)
        #expect(TraceSentence.all(record).map(\.text) == ["No result yet: it is in progress."])
    }
}

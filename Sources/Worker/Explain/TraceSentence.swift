// SPDX-License-Identifier: Apache-2.0
public import PushCore
import Telemetry

/// The result of a message for a user in one sentence, for people: on the page and in `carillon trace`.
public enum TraceSentence {
    /// Whether the sentence is good news.
    public enum Tone: Sendable {
        case good, waits, bad
    }

    /// A sentence for each device; those without a device are about the user.
    public static func all(_ record: TraceRecord) -> [(tone: Tone, text: String)] {
        guard !record.devices.isEmpty else { return [(.waits, "No result yet: it is in progress.")] }
        return record.devices.map { (tone($0.verdict), text($0, of: record)) }
    }

    private static func tone(_ verdict: Verdict) -> Tone {
        switch verdict {
        case .accepted, .online: .good
        case .parked: .waits
        case .rejected, .expired, .suppressed: .bad
        }
    }

    private static func text(_ device: TraceRecord.Device, of record: TraceRecord) -> String {
        let name = device.device ?? ""
        let to = name.isEmpty ? "" : " to \(name)"
        switch device.verdict {
        case .accepted:
            let badge = device.badge.map { ", badge \($0)" } ?? ""
            return "Pushed\(to) at \(clock(device.atMs))\(badge): APNs accepted it."
        case .online where device.reason == Reason.acked.rawValue:
            return "Delivered\(to) at \(clock(device.atMs)) by its connection, and acknowledged."
        case .online:
            return "Sent\(to) at \(clock(device.atMs)) by its connection, which wants no ack."
        case .suppressed:
            return "Not pushed\(to): \(why(device, of: record))."
        case .expired:
            return "Not pushed\(to): it expired before it could be sent."
        case .rejected:
            let status = device.status.map { " with \($0)" } ?? ""
            return "Not pushed\(to): APNs refused it\(status) (\(device.reason)) at \(clock(device.atMs))."
        case .parked:
            return "Waits\(name.isEmpty ? "" : " for \(name)") since \(clock(device.atMs)): \(wait(device.reason))."
        }
    }

    /// A suppression in words; `reason` itself if it is not known.
    private static func why(_ device: TraceRecord.Device, of record: TraceRecord) -> String {
        let until = record.facts.deniedUntilMs.map { " until \(end($0, seenAtMs: device.atMs))" } ?? ""
        return switch Reason(rawValue: device.reason) {
        case .convMuted: muted(record.facts, until)
        case .dnd: Reason.dnd.words + until
        case nil: device.reason
        case let reason?: reason.words
        }
    }

    /// - Parameter until: the end of the mute, with a leading space; empty for none.
    private static func muted(_ facts: DecisionFacts, _ until: String) -> String {
        switch facts.link {
        case .user: "the user muted the conversation\(until) (level \(facts.level.rawValue))"
        case .group: "the group is muted (level \(facts.level.rawValue))"
        case .app: "the app mutes it (level \(facts.level.rawValue))"
        case .none: Reason.convMuted.words
        }
    }

    private static func wait(_ reason: String) -> String {
        switch reason {
        case "no_ack": "no ack arrived in time, and it is decided again"
        case "desktop_first": "the user's desktop comes first"
        case "burst": "the window of a burst is open"
        case "unavailable": "APNs is away or unavailable"
        case "credential": "APNs refuses the credential"
        case "retry_after": "APNs asked to wait"
        case "rate", "share": "the app is over its limit"
        case "behind": "an earlier push of the device waits"
        case "unclaimed": "Redis refuses writes"
        default: reason
        }
    }

    /// The time of the day in UTC, with the date if that is another day.
    private static func end(_ ms: Int64, seenAtMs: Int64) -> String {
        let dayMs: Int64 = 86_400_000
        guard ms / dayMs != seenAtMs / dayMs else { return clock(ms) }
        return "\(Timestamp.text(seconds: ms / 1000).prefix(10)) \(clock(ms))"
    }

    /// The time of the day in UTC.
    public static func clock(_ ms: Int64) -> String {
        // Redis may contain any number, but a date has four-digit years.
        guard (0...253_402_300_799_999).contains(ms) else { return "\(ms) ms" }
        return "\(Timestamp.text(seconds: ms / 1000).dropFirst(11).prefix(8)) UTC"
    }
}

extension Reason {
    /// Why nothing was pushed, in words.
    public var words: String {
        switch self {
        case .ok, .forced: "nothing speaks against it"
        case .noRecipients: "no recipient is left"
        case .acked: "the long connection delivered it"
        case .connectionOnly: "its strategy is the long connection alone"
        case .expired: "it expired before it could be sent"
        case .alreadyRead: "the user had read it"
        case .msgPushOff: "the message itself wants no push"
        case .convMuted: "the conversation is muted"
        case .dnd: "the user's quiet hours"
        case .desktopOnline: "the user's desktop has it, and phones stay silent then"
        case .noToken: "the user has no usable token and no live device"
        case .payloadTooLarge: "it is too large for APNs even without its text"
        case .revoked: "it was revoked before"
        case .tokenMoved: "the token belongs to another user or device by now"
        case .activityOver: "the Live Activity is over"
        case .coalesced: "a later push includes it"
        }
    }
}

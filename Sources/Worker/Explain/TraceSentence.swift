// SPDX-License-Identifier: Apache-2.0
import Digits
public import PushCore
import Telemetry

/// The result of a message for a user in sentences, for people: on the page and in `carillon trace`.
public enum TraceSentence {
    /// Whether the sentence is good news. `past` is a wait that has ended.
    public enum Tone: Sendable {
        case good, waits, bad, past
    }

    /// A sentence for each device; those without a device are about the user.
    public static func all(_ record: TraceRecord) -> [(tone: Tone, text: String)] {
        guard !record.devices.isEmpty else { return [(.waits, "No result yet: it is in progress.")] }
        var sentences: [(tone: Tone, text: String)] = []
        // Devices that ended later; the empty one is the user as a whole.
        var ended: Set<UTF8Key> = []
        for device in record.devices.reversed() {
            let name = UTF8Key(device.device ?? "")
            if device.verdict == .parked {
                let isOver = name.text.isEmpty ? !ended.isEmpty : ended.contains(name) || ended.contains(UTF8Key(""))
                sentences.append((isOver ? .past : .waits, wait(device, isOver: isOver)))
            } else {
                ended.insert(name)
                sentences.append((tone(device.verdict), text(device, of: record)))
            }
        }
        return sentences.reversed()
    }

    private static func tone(_ verdict: Verdict) -> Tone {
        switch verdict {
        case .accepted, .online: .good
        case .parked: .waits
        case .rejected, .expired, .suppressed: .bad
        }
    }

    private static func text(_ device: TraceRecord.Device, of record: TraceRecord) -> String {
        let to = device.device.map { " to \($0)" } ?? ""
        switch device.verdict {
        case .accepted:
            let badge = device.badge.map { ", badge \($0)" } ?? ""
            let forced = device.reason == Reason.forced.rawValue ? ", forced by push.force" : ""
            return "Pushed\(to) at \(clock(device.atMs))\(badge)\(forced): APNs accepted it."
        case .online where device.reason == Reason.acked.rawValue:
            return "Delivered\(to) at \(clock(device.atMs)) by the long connection, and acknowledged."
        case .online:
            return "Sent\(to) at \(clock(device.atMs)) by the long connection; no ack is wanted."
        case .suppressed:
            return "Not pushed\(to): \(why(device, of: record))."
        case .expired:
            return "Not pushed\(to): it expired before it could be sent."
        case .rejected:
            let status = device.status.map { " with \($0)" } ?? ""
            return "Not pushed\(to): APNs refused it\(status) (\(device.reason)) at \(clock(device.atMs))."
        case .parked:
            return wait(device, isOver: false)
        }
    }

    private static func wait(_ device: TraceRecord.Device, isOver: Bool) -> String {
        let time = clock(device.atMs)
        if device.reason == "no_ack" {
            let name = device.device.map { " of \($0)" } ?? ""
            return "No ack\(name) arrived in time, so the worker decided again at \(time)."
        }
        let push = device.device.map { "The push to \($0)" } ?? "It"
        return "\(push) \(isOver ? "waited from" : "has waited since") \(time): \(cause(ofWait: device.reason))."
    }

    /// A suppression in words; `reason` itself if it is not known.
    private static func why(_ device: TraceRecord.Device, of record: TraceRecord) -> String {
        let until = record.facts.deniedUntilMs.map { " until \(end($0, seenAtMs: device.atMs))" } ?? ""
        return switch Reason(rawValue: device.reason) {
        case .convMuted: muted(record.facts, until)
        case .dnd: (record.facts.contains(.snoozed) ? "the user snoozes all alerts" : Reason.dnd.words) + until
        case .noToken where device.device != nil: "no ack arrived, and the device has no token"
        case nil: device.reason
        case let reason?: reason.words
        }
    }

    /// - Parameter until: the end of the mute, with a leading space; empty for none.
    private static func muted(_ facts: DecisionFacts, _ until: String) -> String {
        let level = "level \(facts.level.rawValue): \(facts.level.rule)"
        return switch facts.link {
        case .user: "the user muted the conversation\(until) (\(level))"
        case .group: "the group is muted (\(level))"
        case .settings: "the user's settings.levels mute it (\(level))"
        case .app: "the app's default_levels mute it (\(level))"
        case .none: Reason.convMuted.words
        }
    }

    private static func cause(ofWait reason: String) -> String {
        switch reason {
        case "desktop_first": "the user's desktop comes first"
        case "burst": "alerts of its conversation are merged (coalesce)"
        case "unavailable": "APNs is away or unavailable"
        case "credential": "APNs refuses the credential"
        case "retry_after": "APNs asked to wait (429, or a Retry-After)"
        case "rate": "the app is over its rate (limits.rate)"
        case "share": "the app is over its share of a worker's memory (limits.share)"
        case "behind": "an earlier push of the device, or an earlier event of the user or conversation, waits"
        case "scheduled": "it is scheduled (push.send_at_ms)"
        case "background": "the device had its background pushes of the hour (limits.background_per_hour)"
        case "unclaimed": "Redis refuses writes, and an ack is awaited"
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

extension MuteLevel {
    /// The messages that it lets alert, in words.
    public var rule: String {
        switch self {
        case .unset: "not set"
        case .all: "every message alerts"
        case .mentions: "only mentions in groups alert"
        case .mentionsOfMe: "only mentions of the user in groups alert"
        case .mentionsOfAll: "only mentions of all in groups alert"
        case .blocked: "no message alerts"
        }
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
        case .msgPushOff: "the message itself wants no push (push.enabled is false, or a custom type has no content)"
        case .convMuted: "the conversation is muted"
        case .dnd: "a DND window of the user is active"
        case .desktopOnline: "the user's desktop has it, and push_when_desktop_online is off"
        case .noToken: "the user has no usable token and no live device"
        case .payloadTooLarge: "it is too large for APNs even without its text"
        case .revoked: "it was revoked before"
        case .tokenMoved: "the token belongs to another user or device by now"
        case .activityOver: "the Live Activity is over"
        case .coalesced: "a later push includes it"
        case .alertsOff: "the device shows no alerts (bind.token.alerts is false)"
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
import Console
import Digits
import EventLoop
import JSON
import PushCore
import Worker

/// Output of a user's state for people and programs.
enum UserText {
    // MARK: - People

    static func people(_ facts: UserFacts, of policy: AppPolicy, uid: String) -> TerminalText {
        let app = policy.id
        var text: TerminalText = "\(Style.bold("\(uid)")) of app \(app)\n"
        if facts.isEmpty {
            text +=
                "  \(Style.yellow("no token, setting, mute, badge or presence is stored: check the id and the app"))\n"
        }
        text += row("badge", "\(facts.badge)")
        for (name, value) in settings(facts.settings) { text += row(name, "\(value)") }
        text += rows(ofMutes: facts.mutes, nowMs: Loop.wallMs())
        if facts.tokens.isEmpty { text += row("tokens", Style.dim("none bound: nothing can be pushed")) }
        for token in facts.tokens { text += row("token", line(token, policy)) }
        for part in facts.unreadable {
            let key = part == "presence" ? " p:{\(app):\(uid)}" : ""
            text += row(part, Style.red("not readable: its key\(key) in Redis has a wrong type and counts as absent"))
        }
        if facts.presence.isEmpty, facts.malformedPresence.isEmpty, !facts.unreadable.contains("presence") {
            text += row("presence", Style.dim("none: no gateway has written any"))
        }
        for device in facts.presence { text += row("presence", line(device, facts)) }
        for field in facts.malformedPresence {
            let words = Style.red("malformed, counts as absent (the form: docs/contract/redis.md#presence)")
            text += row("presence", "\(field.device)  \(words): \(field.value)")
        }
        return text
    }

    private static func row(_ name: String, _ value: TerminalText) -> TerminalText {
        "  \(Style.dim(Style.padded("\(name)", to: 26)))\(value)\n"
    }

    private static func settings(_ settings: UserSettings) -> [(String, String)] {
        var rows: [(String, String)] = []
        if let dnd = settings.dnd {
            let windows = dnd.windows.map(words).joined(separator: " and ")
            let zone = dnd.zone.map(words(ofZone:)) ?? "the device's zone, else the app's"
            rows.append(("dnd", "\(dnd.on ? "on" : "off"), \(windows) in \(zone), level \(dnd.level)"))
        } else {
            rows.append(("dnd", "not set"))
        }
        rows.append(("show_detail", String(settings.showDetail)))
        rows.append(("push_when_desktop_online", String(settings.pushWhenDesktopOnline)))
        if settings.holdSeconds > 0 { rows.append(("hold_s", "\(settings.holdSeconds) s")) }
        if let language = settings.language { rows.append(("lang", language)) }
        for type in Conversation.Kind.allCases {
            guard let level = settings.levels[type], level != .unset else { continue }
            rows.append(("levels.\(type.rawValue)", "\(level.rawValue): \(level.rule)"))
        }
        if settings.snoozeUntilMs > 0 {
            let isOver = settings.snoozeUntilMs <= Loop.wallMs()
            rows.append(
                ("snooze_until_ms", "\(time(settings.snoozeUntilMs))\(isOver ? ", over" : ", no alert until then")"))
        }
        return rows
    }

    private static let shownMutesMax = 20

    /// Only mutes that hold, since an ended one decides nothing.
    private static func rows(ofMutes mutes: [MutedConversation], nowMs: Int64) -> TerminalText {
        let holding = mutes.filter { $0.mute.level != .unset && $0.mute.isActive(at: nowMs) }
        var text: TerminalText = ""
        for muted in holding.prefix(shownMutesMax) {
            let end = muted.mute.untilMs.map { " until \(time($0))" } ?? ""
            text += row(
                "mute", "\(muted.conversation)  level \(muted.mute.level.rawValue)\(end): \(muted.mute.level.rule)")
        }
        let left = holding.count - shownMutesMax
        if left > 0 { text += row("mute", Style.dim("and \(left) more: --json lists all")) }
        return text
    }

    private static func words(_ window: DNDWindow) -> String {
        let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
        let named = window.days.numbers.map { days[$0 - 1] }.joined(separator: " ")
        return "\(clock(window.start))-\(clock(window.end))\(window.days == .all ? "" : " from \(named)")"
    }

    /// A zone that an older worker stored may be unknown: decisions pass over it.
    private static func words(ofZone zone: String) -> String {
        isKnown(zone) ? zone : "\(zone), an unknown zone that is ignored: the device's zone counts, else the app's"
    }

    private static func isKnown(_ zone: String) -> Bool { SystemZones().offset(of: zone, at: 0) != nil }

    private static func clock(_ minute: Int) -> String {
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : String(number) }
        return "\(two(minute / 60)):\(two(minute % 60))"
    }

    private static func line(_ token: BoundToken, _ policy: AppPolicy) -> TerminalText {
        let record = token.record
        var parts: [TerminalText] = [
            "\(token.device)", "\(record.type.rawValue)", "hash \(TokenHash.short(record.hex))",
            "\(record.environment.rawValue)", "\(record.topic)", "bind_ver \(token.version)",
            "bound \(time(record.boundMs))",
        ]
        let topics = policy.allowedTopics ?? [policy.topic]
        if !topics.containsSame(policy.bareTopic(record.topic, of: record.type)) {
            parts.append(Style.yellow("not the app's topic \(topics.joined(separator: ", "))"))
        }
        for (name, value) in [
            ("cert", record.credential), ("content_key", record.contentKey), ("lang", record.language),
            ("tz", record.zone), ("activity", record.activityID),
        ] {
            guard let value else { continue }
            let isUnknown = name == "tz" && !value.isEmpty && !isKnown(value)
            parts.append("\(name) \(value)\(isUnknown ? " (unknown, ignored)" : "" as String)")
        }
        if !record.showsAlerts {
            parts.append(Style.yellow("shows no alerts (alerts is false in its bind): none is pushed to it"))
        }
        return parts.joined(separator: "  ")
    }

    private static func line(_ device: DevicePresence, _ facts: UserFacts) -> TerminalText {
        var parts: [TerminalText] = ["\(device.device)", "\(device.platform.rawValue)", "\(device.state.rawValue)"]
        let lease = facts.leases[device.gateway]
        if lease != device.gatewayEpoch {
            parts.append(
                Style.yellow(
                    "void: gw:{\(device.gateway)} holds \(lease.map { "epoch \($0)" } ?? "no lease" as String), "
                        + "this is of epoch \(device.gatewayEpoch)"))
        } else {
            parts.append(liveness(device))
            parts.append("gateway \(device.gateway)")
        }
        parts.append("conn_epoch \(device.connectionEpoch)")
        parts.append("last seen \(time(device.lastMs))")
        if let active = device.activeConversation { parts.append("looks at \(active)") }
        return parts.joined(separator: "  ")
    }

    private static func liveness(_ device: DevicePresence) -> TerminalText {
        switch device.liveness(at: Loop.wallMs()) {
        case .dead: "not live: the route is APNs"
        case .foreground: Style.green("live in foreground")
        case .background: Style.green("live in background")
        }
    }

    private static func time(_ ms: Int64) -> String { TimeText.iso(ms) }

    // MARK: - Programs

    static func json(_ facts: UserFacts, app: String, uid: String) -> String {
        var writer = JSONWriter(reservingCapacity: 1024)
        writer.beginObject()
        writer.member("app", app)
        writer.member("uid", uid)
        writer.member("badge", facts.badge)
        writer.key("settings")
        write(facts.settings, to: &writer)
        writer.key("mutes")
        writer.beginArray()
        for muted in facts.mutes {
            writer.beginObject()
            writer.member("conv", muted.conversation)
            writer.member("level", Int64(muted.mute.level.rawValue))
            if let until = muted.mute.untilMs { writer.member("until_ms", until) }
            writer.endObject()
        }
        writer.endArray()
        writer.key("tokens")
        writer.beginArray()
        for token in facts.tokens { write(token, to: &writer) }
        writer.endArray()
        writer.key("presence")
        writer.beginArray()
        for device in facts.presence { write(device, facts, to: &writer) }
        writer.endArray()
        writer.key("malformed_presence")
        writer.beginArray()
        for field in facts.malformedPresence {
            writer.beginObject()
            writer.member("device", field.device)
            writer.member("value", field.value)
            writer.endObject()
        }
        writer.endArray()
        writer.key("unreadable")
        writer.beginArray()
        for part in facts.unreadable { writer.string(part) }
        writer.endArray()
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }

    private static func write(_ settings: UserSettings, to writer: inout JSONWriter) {
        writer.beginObject()
        if let dnd = settings.dnd {
            writer.key("dnd")
            writer.beginObject()
            writer.member("on", dnd.on)
            write(dnd.windows, to: &writer)
            writer.member("tz", ifPresent: dnd.zone)
            if let zone = dnd.zone, !isKnown(zone) { writer.member("tz_unknown", true) }
            writer.member("level", Int64(dnd.level))
            writer.endObject()
        }
        writer.member("show_detail", settings.showDetail)
        writer.member("push_when_desktop_online", settings.pushWhenDesktopOnline)
        writer.member("hold_s", Int64(settings.holdSeconds))
        writer.member("lang", ifPresent: settings.language)
        if !settings.levels.isEmpty {
            writer.key("levels")
            writer.beginObject()
            for type in Conversation.Kind.allCases {
                guard let level = settings.levels[type] else { continue }
                writer.key(escaping: type.rawValue)
                writer.int(Int64(level.rawValue))
            }
            writer.endObject()
        }
        if settings.snoozeUntilMs > 0 { writer.member("snooze_until_ms", settings.snoozeUntilMs) }
        writer.endObject()
    }

    /// As a `settings` record gives them: one window by its parts, several as a list.
    private static func write(_ windows: [DNDWindow], to writer: inout JSONWriter) {
        if windows.count == 1, let window = windows.first { return write(window, to: &writer) }
        writer.key("windows")
        writer.beginArray()
        for window in windows {
            writer.beginObject()
            write(window, to: &writer)
            writer.endObject()
        }
        writer.endArray()
    }

    private static func write(_ window: DNDWindow, to writer: inout JSONWriter) {
        writer.member("start", clock(window.start))
        writer.member("end", clock(window.end))
        if window.days == .all { return }
        writer.key("days")
        writer.beginArray()
        for day in window.days.numbers { writer.int(Int64(day)) }
        writer.endArray()
    }

    private static func write(_ token: BoundToken, to writer: inout JSONWriter) {
        let record = token.record
        writer.beginObject()
        writer.member("device", token.device)
        writer.member("type", record.type.rawValue)
        writer.member("token_hash", TokenHash.short(record.hex))
        writer.member("env", record.environment.rawValue)
        writer.member("topic", record.topic)
        writer.member("bind_ver", token.version)
        writer.member("bound_ms", record.boundMs)
        writer.member("alerts", record.showsAlerts)
        writer.member("cert", ifPresent: record.credential)
        writer.member("content_key", ifPresent: record.contentKey)
        writer.member("lang", ifPresent: record.language)
        writer.member("tz", ifPresent: record.zone)
        if let zone = record.zone, !zone.isEmpty, !isKnown(zone) { writer.member("tz_unknown", true) }
        writer.member("activity_id", ifPresent: record.activityID)
        writer.member("attributes_type", ifPresent: record.attributesType)
        writer.endObject()
    }

    private static func write(_ device: DevicePresence, _ facts: UserFacts, to writer: inout JSONWriter) {
        let isHeld = facts.leases[device.gateway] == device.gatewayEpoch
        writer.beginObject()
        writer.member("device", device.device)
        writer.member("platform", device.platform.rawValue)
        writer.member("state", device.state.rawValue)
        writer.member("gateway", device.gateway)
        writer.member("lease_held", isHeld)
        writer.member("live", isHeld && device.liveness(at: Loop.wallMs()).isLive)
        writer.member("conn_epoch", device.connectionEpoch)
        writer.member("last_ms", device.lastMs)
        writer.member("active_conv", ifPresent: device.activeConversation)
        writer.endObject()
    }
}

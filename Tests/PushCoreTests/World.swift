// SPDX-License-Identifier: Apache-2.0
import Digits
import PushCore

/// Fixed offsets, so that no test depends on a machine's zone files.
struct TestZones: ZoneTable {
    func offset(of zone: String, at ms: Int64) -> Int? {
        switch zone {
        case "UTC": 0
        case "Asia/Shanghai": 8 * 3600
        case "America/New_York": -5 * 3600
        case "Asia/Kathmandu": 5 * 3600 + 45 * 60
        case "Pacific/Kiritimati": 14 * 3600
        default: nil
        }
    }
}

/// What a row's words build.
struct World {
    /// 2023-11-15T00:00:00Z.
    static let midnight: Int64 = 1_700_006_400_000
    static let hourMs = 3_600_000.0

    var now = midnight + 12 * 3_600_000
    var ageMs: Int64 = 1000
    var sentMs: Int64 { now - ageMs }
    /// The row is about a Live Activity.
    var activity: LiveActivity?
    var activityState = ActivityState()
    var message = Message(
        msgID: "m1", serverSeq: 10, expireAtMs: .max, conversation: Conversation(id: "c", type: .p2p),
        from: .init(uid: "you"), to: .init(uids: ["me"]))
    var recipient = Recipient(uid: "me")
    var policy = AppPolicy(id: "im", topic: "com.example.im")

    init() {
        message.push.content = "hello"
        policy.defaultZone = "UTC"
        policy.templateIDs = [UTF8Key("known")]
        policy.argumentTemplates = [UTF8Key("bare"): [], UTF8Key("filled"): [UTF8Key("text")]]
    }

    init(_ row: DecisionRow) {
        self.init()
        for word in row.app.split(separator: " ") { readApp(word) }
        for word in row.message.split(separator: " ") { readMessage(word) }
        for word in row.recipient.split(separator: " ") { readRecipient(word) }
    }

    /// `chain` `overrides` `strategy=n` `at=hh:mm` `zone=z` `level.<type>=n`
    mutating func readApp(_ word: Substring) {
        let (key, value) = Self.pair(word)
        switch key {
        case "chain": policy.dndMode = .chain
        case "overrides": policy.forceOverridesDND = true
        case "strategy": policy.strategy = Strategy(rawValue: Self.int(value)) ?? policy.strategy
        case "at": now = Self.midnight + Int64(Self.minutes(value)) * 60_000
        case "zone": policy.defaultZone = String(value)
        case "level.p2p": policy.defaultLevels[.p2p] = Self.level(value)
        case "level.group": policy.defaultLevels[.group] = Self.level(value)
        case "level.ultra": policy.defaultLevels[.ultra] = Self.level(value)
        case "level.system": policy.defaultLevels[.system] = Self.level(value)
        case "level.custom": policy.defaultLevels[.custom] = Self.level(value)
        default: preconditionFailure("no such word for an app: \(word)")
        }
    }

    /// A conversation type; `off` `customtype` `nocontent` `emptycontent` `template=known|other|bare|filled[:<text>]`
    /// `nobadge` `silent` `voip` `strategy=n`
    /// `@me` `@all` `@other` `force=all|me|other|nobody` `revoke=decrease|keep|count` `noseq` `expires=<ms from now>`
    /// `from=me` `exclude=me|other` `devices=<device>[,…]` `tokens=<hex>[,…]` (a recipient's tokens are `aa0`, `aa1`, …); `la=start|update|end` makes it a record about activity `a`, `la.id=` about another;
    /// `age=<hours>` since it was sent
    mutating func readMessage(_ word: Substring) {
        if let type = Conversation.Kind(rawValue: String(word)) {
            message.conversation.type = type
            return
        }
        let (key, value) = Self.pair(word)
        switch key {
        case "off": message.push.enabled = false
        case "customtype": message.isCustomType = true
        case "nocontent": message.push.content = nil
        case "emptycontent": message.push.content = ""
        case "template":
            let (id, text) = Self.pair(value, at: ":")
            message.push.template = .init(id: String(id), args: text.isEmpty ? [:] : [UTF8Key("text"): String(text)])
        case "nobadge": message.push.badge = false
        case "silent": message.push.silent = true
        case "voip": message.push.voip = true
        case "strategy": message.push.strategy = Strategy(rawValue: Self.int(value))
        case "@me": mention { $0.uids.append("me") }
        case "@other": mention { $0.uids.append("somebody") }
        case "@all": mention { $0.all = true }
        case "force": readForce(value)
        case "keepmute": message.push.force.liftsMute = false
        case "revoke":
            message.kind = .revoke
            message.revoke = .init(targetMsgID: "m0", badge: .init(rawValue: String(value)) ?? .decrease)
        case "noseq": message.serverSeq = nil
        case "from": message.from.uid = String(value)
        case "exclude": message.to.exclude.append(String(value))
        case "devices":
            message.to.limit = DeviceLimit(
                devices: value.split(separator: ",").map(String.init), tokens: message.to.limit?.tokens)
        case "tokens":
            message.to.limit = DeviceLimit(
                devices: message.to.limit?.devices, tokens: value.split(separator: ",").map(String.init))
        case "la":
            guard let action = LiveActivity.Action(rawValue: String(value)) else { preconditionFailure("\(word)") }
            activity = LiveActivity(uids: ["me"], activityID: "a", action: action, state: .object([]))
        case "la.id": activity?.activityID = String(value)
        case "age": ageMs = Self.hours(value)
        case "expires": message.expireAtMs = now + Int64(Self.int(value))
        default: preconditionFailure("no such word for a message: \(word)")
        }
    }

    private mutating func readForce(_ value: Substring) {
        switch value {
        case "all": message.push.force.mode = .all
        case "me": message.push.force = .init(mode: .list, uids: ["x", "me"])
        case "other": message.push.force = .init(mode: .list, uids: ["x"])
        case "nobody": message.push.force = .init(mode: .list)
        default: preconditionFailure("no such force: \(value)")
        }
    }

    /// `<device>=<state>[,…]` presence, the platform by the device's name (`phone` ios, `pad` ipad, `droid` android,
    /// `pc` `mac` `web`): states `fg` `off` `bg`, then `l` (raises local alerts), `since=<seconds ago>`, `open` (the
    /// conversation is open), `suspect`. `alert:<device>[@zone][#bound]` `voip:` `activity:` `start:` tokens.
    /// `mute=<level>[,until=<ms from now>]` `group=<level>` `read.seq=n` `read.ms=<ms from sent>` `revoked`
    /// `started=<hours ago>` `ended` (the Live Activity)
    /// `alertsoff:<device>` an alert token of a device that shows no alerts. `levels.<type>=n` `snooze=<ms from now>`
    /// `dnd=hh:mm-hh:mm[,zone[,level]]` `dndoff=…` `nodesktop` (push_when_desktop_online false) `hold=<seconds>`
    mutating func readRecipient(_ word: Substring) {
        if let colon = word.firstIndex(of: ":"), let type = TokenRecord.Kind(rawValue: String(word[..<colon])) {
            readToken(type, word[word.index(after: colon)...])
            return
        }
        if word.hasPrefix("alertsoff:") {
            return readToken(.alert, word.dropFirst("alertsoff:".count), showsAlerts: false)
        }
        let (key, value) = Self.pair(word)
        switch key {
        case "mute": recipient.mute = readMute(value)
        case "group": recipient.groupLevel = Self.level(value)
        case "read.seq": recipient.read = .init(seq: Int64(Self.int(value)), ms: recipient.read?.ms)
        case "read.ms": recipient.read = .init(seq: recipient.read?.seq, ms: sentMs + Int64(Self.int(value)))
        case "revoked": recipient.isRevoked = true
        case "started": activityState.startedMs = now - Self.hours(value)
        case "ended": activityState.isEnded = true
        case "dnd": recipient.settings.dnd = Self.window(value, on: true)
        case "dndoff": recipient.settings.dnd = Self.window(value, on: false)
        case "nodesktop": recipient.settings.pushWhenDesktopOnline = false
        case "hold": recipient.settings.holdSeconds = Int16(Self.int(value))
        case "snooze": recipient.settings.snoozeUntilMs = now + Int64(Self.int(value))
        case _ where key.hasPrefix("levels."):
            guard let type = Conversation.Kind(rawValue: String(key.dropFirst("levels.".count))) else {
                preconditionFailure("no such type: \(key)")
            }
            recipient.settings.levels[type] = Self.level(value)
        default: readPresence(String(key), value)
        }
    }

    private mutating func mention(_ change: (inout Message.Mention) -> Void) {
        var mention = message.mention ?? .init()
        change(&mention)
        message.mention = mention
    }

    private mutating func readToken(_ type: TokenRecord.Kind, _ text: Substring, showsAlerts: Bool = true) {
        let parts = text.split(separator: "#")
        let named = parts[0].split(separator: "@")
        let bound = parts.count > 1 ? Int64(Self.int(parts[1])) : 1
        let record = TokenRecord(
            hex: "aa\(recipient.tokens.count)", environment: .production, topic: "com.example.im", type: type,
            zone: named.count > 1 ? String(named[1]) : nil, activityID: type == .activity ? "a" : nil, boundMs: bound,
            showsAlerts: showsAlerts)
        recipient.tokens.append(BoundToken(device: String(named[0]), record: record, version: bound))
    }

    private func readMute(_ value: Substring) -> Recipient.Mute {
        let parts = value.split(separator: ",")
        let until = parts.dropFirst().first.map { now + Int64(Self.int(Self.pair($0).value)) }
        return .init(level: Self.level(parts[0]), untilMs: until)
    }

    private mutating func readPresence(_ device: String, _ value: Substring) {
        let platforms: [String: DevicePresence.Platform] = [
            "phone": .ios, "pad": .ipad, "droid": .android, "pc": .pc, "mac": .mac, "web": .web,
        ]
        guard let platform = platforms[device] else { preconditionFailure("no such word for a recipient: \(device)") }
        var presence = DevicePresence(
            device: device, state: .off, platform: platform, gateway: "g1", gatewayEpoch: 1, connectionEpoch: 1,
            lastMs: now)
        for part in value.split(separator: ",") {
            let (key, value) = Self.pair(part)
            switch key {
            case "fg", "bg", "off": presence.state = .init(rawValue: String(key)) ?? .off
            case "l": presence.raisesLocalAlert = true
            case "since": presence.backgroundSinceMs = now - Int64(Self.int(value)) * 1000
            case "open": presence.activeConversation = message.conversation.id
            case "elsewhere": presence.activeConversation = "another"
            case "suspect": presence.isSuspect = true
            default: preconditionFailure("no such word for presence: \(part)")
            }
        }
        recipient.presence.append(presence)
    }

    private static func window(_ value: Substring, on: Bool) -> UserSettings.DoNotDisturb {
        let parts = value.split(separator: ",")
        let times = parts[0].split(separator: "-")
        let zone = parts.count > 1 && parts[1] != "-" ? String(parts[1]) : nil
        return .init(
            on: on, start: minutes(times[0]), end: minutes(times[1]), zone: zone,
            level: parts.count > 2 ? int(parts[2]) : 5)
    }

    private static func pair(_ word: Substring, at mark: Character = "=") -> (key: Substring, value: Substring) {
        guard let equals = word.firstIndex(of: mark) else { return (word, "") }
        return (word[..<equals], word[word.index(after: equals)...])
    }

    private static func int(_ text: Substring) -> Int {
        guard let number = Int(text) else { preconditionFailure("no number: \(text)") }
        return number
    }

    private static func hours(_ text: Substring) -> Int64 {
        guard let hours = Double(text) else { preconditionFailure("no number of hours: \(text)") }
        return Int64(hours * hourMs)
    }

    private static func level(_ text: Substring) -> MuteLevel {
        guard let level = MuteLevel(rawValue: int(text)) else { preconditionFailure("no mute level: \(text)") }
        return level
    }

    private static func minutes(_ text: Substring) -> Int {
        let parts = text.split(separator: ":")
        return int(parts[0]) * 60 + int(parts[1])
    }
}

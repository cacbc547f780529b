import PushCore
import Testing

/// One line of a decision table: `what it shows | message | recipient | app | decision`.
///
/// Words are separated by blanks. The message goes to `me` from `you`, with content, in p2p, sent a second ago; the
/// clock stands at 12:00 UTC unless `at=`. What the words mean stands in the functions that read them, below.
struct DecisionRow: CustomTestStringConvertible, Sendable {
    let name: String
    let message: String
    let recipient: String
    let app: String
    let expected: String

    var testDescription: String { name }

    init(_ line: Substring) {
        let fields = line.split(separator: "|", omittingEmptySubsequences: false).map { Self.squeezed($0) }
        precondition(fields.count == 5, "a row has five fields: \(line)")
        (name, message, recipient, app, expected) = (fields[0], fields[1], fields[2], fields[3], fields[4])
    }

    static func table(_ text: String) -> [DecisionRow] {
        text.split(separator: "\n").filter { !$0.hasPrefix("#") && $0.contains("|") }.map(DecisionRow.init)
    }

    private static func squeezed(_ text: Substring) -> String {
        text.split(separator: " ").joined(separator: " ")
    }

    /// 2023-11-15T00:00:00Z.
    static let midnight: Int64 = 1_700_006_400_000

    func decide(_ trace: inout some DecisionTrace) -> Decision {
        var world = World()
        for word in app.split(separator: " ") { world.readApp(word) }
        for word in message.split(separator: " ") { world.readMessage(word) }
        for word in recipient.split(separator: " ") { world.readRecipient(word) }
        return PushCore.decide(
            world.message, sentMs: world.sentMs, for: world.recipient, policy: world.policy, zones: TestZones(),
            now: world.now, trace: &trace)
    }
}

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
    var now = DecisionRow.midnight + 12 * 3_600_000
    var sentMs: Int64 { now - 1000 }
    var message = Message(
        msgID: "m1", serverSeq: 10, expireAtMs: .max, conversation: Conversation(id: "c", type: .p2p),
        from: .init(uid: "you"), to: .init(uids: ["me"]))
    var recipient = Recipient(uid: "me")
    var policy = AppPolicy(id: "im", topic: "com.example.im")

    init() {
        message.push.content = "hello"
        policy.defaultZone = "UTC"
    }

    /// `chain` `overrides` `strategy=n` `at=hh:mm` `zone=z` `level.<type>=n`
    mutating func readApp(_ word: Substring) {
        let (key, value) = Self.pair(word)
        switch key {
        case "chain": policy.dndMode = .chain
        case "overrides": policy.forceOverridesDND = true
        case "strategy": policy.strategy = Strategy(rawValue: Self.int(value)) ?? policy.strategy
        case "at": now = DecisionRow.midnight + Int64(Self.minutes(value)) * 60_000
        case "zone": policy.defaultZone = String(value)
        case "level.p2p": policy.defaultLevels[.p2p] = Self.level(value)
        case "level.group": policy.defaultLevels[.group] = Self.level(value)
        case "level.ultra": policy.defaultLevels[.ultra] = Self.level(value)
        case "level.system": policy.defaultLevels[.system] = Self.level(value)
        case "level.custom": policy.defaultLevels[.custom] = Self.level(value)
        default: preconditionFailure("no such word for an app: \(word)")
        }
    }

    /// A conversation type; `off` `customtype` `nocontent` `emptycontent` `nobadge` `silent` `voip` `strategy=n`
    /// `@me` `@all` `@other` `force=all|me|other|nobody` `revoke=decrease|keep|count` `noseq` `expires=<ms from now>`
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
        case "nobadge": message.push.badge = false
        case "silent": message.push.silent = true
        case "voip": message.push.voip = true
        case "strategy": message.push.strategy = Strategy(rawValue: Self.int(value))
        case "@me": mention { $0.uids.append("me") }
        case "@other": mention { $0.uids.append("somebody") }
        case "@all": mention { $0.all = true }
        case "force": readForce(value)
        case "revoke":
            message.kind = .revoke
            message.revoke = .init(targetMsgID: "m0", badge: .init(rawValue: String(value)) ?? .decrease)
        case "noseq": message.serverSeq = nil
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
    /// `dnd=hh:mm-hh:mm[,zone[,level]]` `dndoff=…` `nodesktop` (push_when_desktop_online false) `hold=<seconds>`
    mutating func readRecipient(_ word: Substring) {
        if let colon = word.firstIndex(of: ":"), let type = TokenRecord.Kind(rawValue: String(word[..<colon])) {
            readToken(type, word[word.index(after: colon)...])
            return
        }
        let (key, value) = Self.pair(word)
        switch key {
        case "mute": recipient.mute = readMute(value)
        case "group": recipient.groupLevel = Self.level(value)
        case "read.seq": recipient.read = .init(seq: Int64(Self.int(value)), ms: recipient.read?.ms)
        case "read.ms": recipient.read = .init(seq: recipient.read?.seq, ms: sentMs + Int64(Self.int(value)))
        case "revoked": recipient.isRevoked = true
        case "dnd": recipient.settings.dnd = Self.window(value, on: true)
        case "dndoff": recipient.settings.dnd = Self.window(value, on: false)
        case "nodesktop": recipient.settings.pushWhenDesktopOnline = false
        case "hold": recipient.settings.holdSeconds = Self.int(value)
        default: readPresence(String(key), value)
        }
    }

    private mutating func mention(_ change: (inout Message.Mention) -> Void) {
        var mention = message.mention ?? .init()
        change(&mention)
        message.mention = mention
    }

    private mutating func readToken(_ type: TokenRecord.Kind, _ text: Substring) {
        let parts = text.split(separator: "#")
        let named = parts[0].split(separator: "@")
        let bound = parts.count > 1 ? Int64(Self.int(parts[1])) : 1
        let record = TokenRecord(
            hex: "aa\(recipient.tokens.count)", environment: .production, topic: "com.example.im", type: type,
            zone: named.count > 1 ? String(named[1]) : nil, boundMs: bound)
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

    private static func pair(_ word: Substring) -> (key: Substring, value: Substring) {
        guard let equals = word.firstIndex(of: "=") else { return (word, "") }
        return (word[..<equals], word[word.index(after: equals)...])
    }

    private static func int(_ text: Substring) -> Int {
        guard let number = Int(text) else { preconditionFailure("no number: \(text)") }
        return number
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

extension Decision {
    /// `allow|forced|<reason>`, `+1|+0`, then per route `device=…`: `apns` `apns+copy` `alert/<ack ms>` `quiet`
    /// `hold/<ms>` `wait` `<reason>`; at the end `no_token` where nobody is reached.
    var words: String {
        var words: [String] = []
        switch alert {
        case .allow(let forced): words.append(forced ? "forced" : "allow")
        case .deny(let reason): words.append(reason.rawValue)
        }
        words.append(counted ? "+1" : "+0")
        for route in routes { words.append("\(route.device)=\(route.way.word)") }
        if reachesNobody { words.append("no_token") }
        return words.joined(separator: " ")
    }
}

extension Route.Way {
    fileprivate var word: String {
        switch self {
        case .apns(_, let copyTo): copyTo == nil ? "apns" : "apns+copy"
        case .connection(_, let alert, let ack):
            alert ? "alert/\(ack.map { String($0) } ?? "no ack")" : ack == nil ? "quiet" : "quiet with ack"
        case .hold(_, let ms): ms.map { "hold/\($0)" } ?? "wait"
        case .none(let reason): reason.rawValue
        }
    }
}

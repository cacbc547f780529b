// SPDX-License-Identifier: Apache-2.0
import Digits
import JSON
import Payload
public import PushCore

/// The input topic of a record: each has its own kinds.
public enum RecordClass: Sendable {
    case events, userState
}

/// Parses the bytes of a record into an ``Event``, or reports why they are invalid (contract sections 0 and 2).
///
/// One per shard: it keeps the parser's buffers. No record can make it trap. Records above `maxBytes` are refused
/// unread.
public final class EventReader {
    private var apps: Set<UTF8Key>
    /// The ids of the apps in their order, for the error of an unknown one.
    private var appNames: [String]
    /// The app of the last record: the next one usually has the same, and a comparison is cheaper than a new text and a hash.
    private var lastApp: String?
    private let parser: JSONParser
    /// One for each of the records that are checked together and then read together (`check`).
    private let checked: [JSONParser]
    /// How many these are at most, and the size of a longer record, which would make a parser grow.
    static let checkedMax = 16
    static let checkedBytesMax = 4096
    /// For a payload that is a text: the record's parser is in use then.
    private(set) lazy var payloadParser = JSONParser(maxBytes: TextCut.bytes(ofCharacters: InputLimit.payload))
    private let unknownKeys: JSONUnknownKeys
    private let recordKeys: JSONKeyTable<RecordKey>
    private let partKeys: JSONKeyTable<PartKey>
    private let pushKeys: JSONKeyTable<PushKey>
    private let activityKeys: JSONKeyTable<ActivityKey>
    private let tokenKeys: JSONKeyTable<TokenKey>
    private let quietKeys: JSONKeyTable<QuietKey>
    private let levelKeys: JSONKeyTable<LevelKey>
    let zones: SystemZones

    /// - Parameters:
    ///   - apps: the ids of the configured apps.
    ///   - maxBytes: maximum size of a record; Kafka's own default is 1 MiB.
    ///   - zones: the time zones that settings and binds may name.
    public init(apps: some Sequence<String>, maxBytes: Int = 1 << 20, zones: SystemZones = SystemZones()) {
        self.zones = zones
        appNames = Array(apps)
        self.apps = Set(appNames.map { UTF8Key($0) })
        let unknown = JSONUnknownKeys()
        unknownKeys = unknown
        recordKeys = JSONKeyTable(unknown: unknown)
        partKeys = JSONKeyTable(unknown: unknown)
        pushKeys = JSONKeyTable(unknown: unknown)
        activityKeys = JSONKeyTable(unknown: unknown)
        tokenKeys = JSONKeyTable(unknown: unknown)
        quietKeys = JSONKeyTable(unknown: unknown)
        levelKeys = JSONKeyTable(unknown: unknown)
        parser = JSONParser(maxBytes: maxBytes)
        checked = (0..<Self.checkedMax).map { _ in JSONParser(maxBytes: Self.checkedBytesMax) }
    }

    /// Adds a configured app.
    func add(app id: String) {
        if apps.insert(UTF8Key(id)).inserted { appNames.append(id) }
    }

    /// - Parameter latestMs: A later `sent_ms` counts as this time (`latestMs(kafkaMs:nowMs:)`).
    /// - Throws: Why the bytes are no event.
    public func read(
        _ bytes: UnsafeRawBufferPointer, of topic: RecordClass, latestMs: Int64 = .max
    ) throws(BadRecord) -> Event {
        parser.check(bytes)
        return try read(bytes, parser, topic, latestMs)
    }

    /// Checks a record that `read` then reads from the same place.
    ///
    /// The code of both is larger than the processor's first cache: record by record, each would fetch all of it.
    func check(_ bytes: UnsafeRawBufferPointer, place: Int) { checked[place].check(bytes) }

    func read(
        _ bytes: UnsafeRawBufferPointer, place: Int, of topic: RecordClass, latestMs: Int64
    ) throws(BadRecord) -> Event {
        try read(bytes, checked[place], topic, latestMs)
    }

    private func read(
        _ bytes: UnsafeRawBufferPointer, _ parser: JSONParser, _ topic: RecordClass, _ latestMs: Int64
    ) throws(BadRecord) -> Event {
        unknownKeys.count = 0
        let parsed = try parser.read(bytes) { (root) throws(BadRecord) in try event(root, topic, latestMs) }
        switch parsed {
        case .read(let event): return event
        case .refused(let fault): throw badRecord(fault)
        }
    }

    /// Whether the last record that was read has fields that no reader knows.
    var hadUnknownFields: Bool { unknownKeys.count != 0 }

    /// The fields of a record that no reader knows. A record that cannot be read names those in front of its error.
    public func unknownFields(_ bytes: [UInt8]) -> [UnknownField] {
        defer { unknownKeys.notes = nil }
        for topic in [RecordClass.events, .userState] {
            unknownKeys.notes = []
            let fields = parse(bytes) { root in
                let isElsewhere: Bool
                do throws(BadRecord) {
                    _ = try event(root, topic, .max)
                    isElsewhere = false
                } catch {
                    isElsewhere = error.rule == .wrongTopic
                }
                return isElsewhere ? nil : (unknownKeys.notes ?? []).map { UnknownField($0, in: root) }
            }
            if let fields = fields ?? [] { return fields }
        }
        return []
    }

    public func read(
        _ bytes: [UInt8], of topic: RecordClass, latestMs: Int64 = .max
    ) throws(BadRecord) -> Event {
        try bytes.withUnsafeBufferPointer { (buffer) throws(BadRecord) in
            try read(UnsafeRawBufferPointer(buffer), of: topic, latestMs: latestMs)
        }
    }

    /// The latest time that a record's `sent_ms` may name: the record's Kafka time; the present time if the Kafka time is
    /// absent or later (contract section 0, "Times").
    ///
    /// A Kafka time that is only a little later is right: the worker's clock may be late, and another worker that reads the record
    /// again must find the same time. The badge's ledger knows a message by it.
    ///
    /// - Parameter kafkaMs: 0 or nil if the record has no Kafka time.
    public static func latestMs(kafkaMs: Int64?, nowMs: Int64) -> Int64 {
        isKafkaTime(kafkaMs: kafkaMs ?? 0, nowMs: nowMs) ? kafkaMs ?? nowMs : nowMs
    }

    /// A clock is right as long as it is off by this at most.
    static let clockToleranceMs: Int64 = 60_000

    /// Whether a record's time does not depend on its reader's clock.
    static func isKafkaTime(kafkaMs: Int64, nowMs: Int64) -> Bool {
        kafkaMs > 0 && kafkaMs &- clockToleranceMs <= nowMs
    }

    /// Looks into bytes that were read as an event before; nil if they are no JSON.
    func parse<Result>(_ bytes: [UInt8], _ body: (JSONCursor) -> Result) -> Result? {
        guard case .read(let result) = parser.parse(bytes, body) else { return nil }
        return result
    }

    private func badRecord(_ fault: JSONFault) -> BadRecord {
        switch fault.code {
        case .empty: BadRecord(.empty, "empty record")
        case .tooLong: BadRecord(.tooLong, "record longer than \(parser.maxBytes) bytes")
        case .tooDeep: BadRecord(.tooDeep, fault.description, byte: fault.byte)
        case .notUTF8: BadRecord(.notUTF8, fault.description, byte: fault.byte)
        case .byteOrderMark: BadRecord(.byteOrderMark, fault.description)
        case .badString, .unclosedString: BadRecord(.brokenString, fault.description, byte: fault.byte)
        case .badNumber, .badStructure, .outOfMemory: BadRecord(.brokenJSON, fault.description, byte: fault.byte)
        }
    }

    private func event(
        _ root: JSONCursor, _ topic: RecordClass, _ latestMs: Int64
    ) throws(BadRecord) -> Event {
        guard root.isObject else { throw BadRecord(.wrongType, "must be an object", byte: root.offset) }
        let record = FieldScope(recordKeys.fields(of: root), path: "$")
        guard try record.requiredInt(.version) == 1 else {
            throw record.fault(.unknownVersion, "unknown version, known is 1", .version, try record.required(.version))
        }
        let kind = try record.requiredString(.kind)
        let app = try app(of: record)
        let id = try record.requiredIdentifier(.eventID, bytes: InputLimit.id)
        var sentMs = min(try record.requiredTime(.sentMs), latestMs)
        let body = try body(kind, of: record, on: topic, sentMs: &sentMs)
        return Event(app: app, id: id, sentMs: sentMs, body: body)
    }

    private func app(of record: FieldScope<RecordKey>) throws(BadRecord) -> String {
        if let lastApp, try record.required(.app).isString(lastApp) { return lastApp }
        let app = try record.requiredIdentifier(.app, bytes: InputLimit.id)
        guard apps.contains(UTF8Key(app)) else {
            throw record.fault(.unknownApp, unknownApp(app), .app, try record.required(.app))
        }
        lastApp = app
        return app
    }

    private func body(
        _ kind: String, of record: FieldScope<RecordKey>, on topic: RecordClass, sentMs: inout Int64
    ) throws(BadRecord) -> Event.Body {
        guard let home = Self.home(of: kind) else {
            throw record.fault(.unknownKind, "unknown kind", .kind, try record.required(.kind))
        }
        guard home == topic else {
            let name = home == .events ? "events" : "user-state"
            throw record.fault(
                .wrongTopic, "this kind belongs on the \(name) topic", .kind, try record.required(.kind))
        }
        switch kind {
        case "message":
            let message = try message(record, .message, sentMs: sentMs)
            if let sendAtMs = message.push.sendAtMs { sentMs = sendAtMs }
            return .message(SharedMessage(message))
        case "revoke": return .message(SharedMessage(try message(record, .revoke, sentMs: sentMs)))
        case "live_activity": return .liveActivity(try liveActivity(record))
        default: return .userState(try userState(record, kind: kind, sentMs: sentMs))
        }
    }

    /// Names as many apps as a short header has room for.
    private func unknownApp(_ app: String) -> String {
        var named = ""
        var count = 0
        for name in appNames where named.utf8.count < 160 {
            named += (count == 0 ? "" : ", ") + Self.printable(name)
            count += 1
        }
        let rest = appNames.count > count ? " and \(appNames.count - count) more" : ""
        return "unknown app \"\(Self.printable(app))\", known are \(named)\(rest)"
    }

    /// Controls and marks that nobody sees are escaped; a text that grows too long by it is cut.
    private static func printable(_ text: String) -> String {
        var shown = ""
        for scalar in text.unicodeScalars {
            if shown.utf8.count > 128 { return shown + "…" }
            let isPlain = scalar == " " || (scalar != "\"" && scalar != "\\" && !BlankText.isBlank(scalar))
            shown += isPlain ? String(scalar) : "\\u{\(String(scalar.value, radix: 16))}"
        }
        return shown
    }

    private static func home(of kind: String) -> RecordClass? {
        switch kind {
        case "message", "revoke", "live_activity": .events
        case "bind", "unbind", "settings", "mute", "read", "badge_report", "ack", "open_report", "arrived_report",
            "forget":
            .userState
        default: nil
        }
    }

    // MARK: DND
    // `dnd` of a `settings` record (contract section 2, note 2).

    private func readDND(_ object: JSONCursor, into change: inout UserState.SettingsChange) throws(BadRecord) {
        let dnd = FieldScope(quietKeys.fields(of: object), path: "$.dnd")
        change.dndOn = try dnd.bool(.on)
        change.dndStart = try minuteOfDay(dnd, .start)
        change.dndEnd = try minuteOfDay(dnd, .end)
        change.dndDays = try days(dnd)
        change.dndZone = try zone(dnd, .tz)
        change.dndLevel = try dnd.int(.level).map { Int(truncatingIfNeeded: $0) }
        if let level = change.dndLevel, level != 1, level != 5 {
            throw dnd.outOfRange(.level, "must be 1 or 5")
        }
        if let start = change.dndStart, start == change.dndEnd {
            throw dnd.outOfRange(.end, "start and end must differ")
        }
        let hasSingleWindow = change.dndStart != nil || change.dndEnd != nil || change.dndDays != nil
        guard let list = try dnd.list(.windows, of: "windows", atMost: InputLimit.windows) else { return }
        if hasSingleWindow {
            throw dnd.outOfRange(.windows, "cannot be given together with start, end or days")
        }
        // The list's elements use the same table of keys: the fields of `dnd` are not read any more.
        var windows: [DNDWindow] = []
        for element in list.elements { windows.append(try window(element, windows.count)) }
        change.dndWindows = windows
    }

    private func window(_ element: JSONCursor, _ index: Int) throws(BadRecord) -> DNDWindow {
        do throws(BadRecord) {
            guard element.isObject else {
                throw BadRecord(.wrongType, "must be an object", at: "", byte: element.offset)
            }
            let part = FieldScope(quietKeys.fields(of: element), path: "")
            guard let start = try minuteOfDay(part, .start) else { throw part.missing(.start) }
            guard let end = try minuteOfDay(part, .end) else { throw part.missing(.end) }
            if start == end { throw part.outOfRange(.end, "start and end must differ") }
            return DNDWindow(start: start, end: end, days: try days(part) ?? .all)
        } catch {
            throw BadRecord(error.rule, error.why, at: "$.dnd.windows[\(index)]\(error.path)", byte: error.byte)
        }
    }

    private func days(_ scope: FieldScope<QuietKey>) throws(BadRecord) -> DNDWindow.Days? {
        guard let list = try scope.list(.days, of: "days", atMost: InputLimit.elements) else { return nil }
        var days: DNDWindow.Days = []
        var index = 0
        for element in list.elements {
            guard let number = element.int else {
                throw scope.fault(.wrongType, "must be a 64-bit integer", .days, element, item: index)
            }
            guard (1...7).contains(number) else {
                throw scope.fault(.outOfRange, "must be from 1 (Monday) to 7", .days, element, item: index)
            }
            days.insert(DNDWindow.Days(day: Int(number)))
            index += 1
        }
        return days
    }

    /// A time zone that the system knows, or an empty text.
    func zone<Key>(_ scope: FieldScope<Key>, _ key: Key) throws(BadRecord) -> String? {
        guard let zone = try scope.string(key, bytes: InputLimit.word) else { return nil }
        if zone.isEmpty || zones.knows(zone) { return zone }
        let hint = zones.nearest(to: zone).map { "; the nearest name is \($0)" } ?? ""
        throw scope.outOfRange(key, "is not a time zone of this system\(hint)")
    }

    /// `22:00` as minutes of the day.
    private func minuteOfDay(_ dnd: FieldScope<QuietKey>, _ key: QuietKey) throws(BadRecord) -> Int? {
        guard let text = try dnd.string(key) else { return nil }
        let digits = Array(text.utf8)
        guard digits.count == 5, digits[2] == UInt8(ascii: ":"),
            let hour = Self.twoDigits(digits[0], digits[1]), hour < 24,
            let minute = Self.twoDigits(digits[3], digits[4]), minute < 60
        else { throw dnd.outOfRange(key, "must be a time of day like 22:00") }
        return hour * 60 + minute
    }

    private static func twoDigits(_ tens: UInt8, _ ones: UInt8) -> Int? {
        let zero = UInt8(ascii: "0")
        guard tens >= zero, tens <= zero + 9, ones >= zero, ones <= zero + 9 else { return nil }
        return Int(tens - zero) * 10 + Int(ones - zero)
    }

    /// The error of a `settings` record that the stored settings make wrong.
    func windowFault(_ fault: DNDWindow.Fault, in bytes: [UInt8]) -> BadRecord {
        let parsed = parse(bytes) { root in
            let object = root["dnd"]
            let end = object?["end"]
            return switch fault {
            case .noStart: ("$.dnd.start", object?.offset)
            case .noEnd: ("$.dnd.end", object?.offset)
            case .sameEnds: end == nil ? ("$.dnd.start", object?["start"]?.offset) : ("$.dnd.end", end?.offset)
            }
        }
        let (path, byte) = parsed ?? ("$.dnd", 0)
        if case .sameEnds = fault {
            return BadRecord(.outOfRange, "start and end must differ", at: path, byte: byte ?? 0)
        }
        return BadRecord(.missing, BadRecord.missingWindow.why, at: path, byte: byte ?? 0)
    }

    // MARK: Live activity

    func liveActivity(_ record: FieldScope<RecordKey>) throws(BadRecord) -> LiveActivity {
        guard let object = try record.object(.la) else { throw record.missing(.la) }
        let la = FieldScope(activityKeys.fields(of: object), path: "$.la")
        let action = try la.requiredWord(.event, LiveActivity.Action.self, "start, update, end")
        let channel = try channel(la, action, record)
        let uids = channel == nil ? try recipients(record, of: action) : nil
        guard let state = try la.value(.state) else { throw la.missing(.state) }
        let alert = try alert(la)
        let attributes = try la.value(.attributes)
        let attributesType = try la.filled(.attributesType)
        if action == .start, attributesType == nil || attributes == nil || !hasTitleOrBody(alert) {
            throw incompleteStart(la, attributesType == nil, attributes == nil, !hasTitleOrBody(alert))
        }
        return LiveActivity(
            msgID: try record.filled(.msgID, bytes: InputLimit.id),
            uids: uids ?? [],
            activityID: try la.requiredIdentifier(.activityID),
            action: action,
            state: state,
            attributesType: attributesType,
            attributes: attributes,
            alert: alert,
            staleMs: try la.time(.staleMs, mayBeZero: true),
            dismissalMs: try la.time(.dismissalMs, mayBeZero: true),
            relevance: try relevance(la),
            priority: try la.word(.priority, PushOptions.Priority.self, "high, normal, low") ?? .high,
            // For a start only; other events ignore it.
            input: action == .start ? try input(la) : .unsaid,
            isForAllBound: uids == nil && channel == nil,
            channel: channel)
    }

    /// - Returns: nil for all users who bound the activity. A start must name its recipients, because nobody has bound
    ///   it yet.
    private func recipients(
        _ record: FieldScope<RecordKey>, of action: LiveActivity.Action
    ) throws(BadRecord) -> [String]? {
        guard let to = try record.object(.to) else {
            if action == .start { throw record.missing(.to) }
            return nil
        }
        let audience = FieldScope(partKeys.fields(of: to), path: "$.to")
        for key in [PartKey.devices, .tokens] where audience.fields[key] != nil {
            throw audience.outOfRange(key, "cannot be given in a live_activity")
        }
        let uids = try audience.uids(.uids, atMost: InputLimit.recipients)
        if uids == nil, action == .start { throw audience.missing(.uids) }
        return uids
    }

    /// A broadcast reaches who subscribed to the channel: it names no users, and starts nothing.
    private func channel(
        _ la: FieldScope<ActivityKey>, _ action: LiveActivity.Action, _ record: FieldScope<RecordKey>
    ) throws(BadRecord) -> String? {
        guard let channel = try channelID(la, .channel, bytes: InputLimit.user) else { return nil }
        if action == .start { throw la.outOfRange(.channel, "cannot be given in a start") }
        if record.fields[.to] != nil { throw la.outOfRange(.channel, "cannot be given together with to") }
        return channel
    }

    /// A channel's id is base64, as APNs returned it ("Sending channel management requests").
    private func channelID(
        _ la: FieldScope<ActivityKey>, _ key: ActivityKey, bytes: Int = InputLimit.name
    ) throws(BadRecord) -> String? {
        guard let channel = try la.filled(key, bytes: bytes) else { return nil }
        guard channel.utf8.allSatisfy(Self.isBase64) else {
            throw la.outOfRange(key, "must be a channel id in base64")
        }
        return channel
    }

    /// At most one of both.
    private func input(_ la: FieldScope<ActivityKey>) throws(BadRecord) -> LiveActivity.Input {
        let takesToken = try la.bool(.inputPushToken) ?? false
        guard let channel = try channelID(la, .inputPushChannel) else { return takesToken ? .token : .unsaid }
        if takesToken { throw la.outOfRange(.inputPushChannel, "cannot be given together with input_push_token") }
        return .channel(channel)
    }

    private static func isBase64(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="):
            true
        default: false
        }
    }

    /// An alert is an object or, as everywhere in `aps`, a plain string.
    private func alert(_ la: FieldScope<ActivityKey>) throws(BadRecord) -> JSONValue? {
        guard let value = la.fields[.alert] else { return nil }
        guard value.isObject || value.kind == .string else {
            throw la.fault(.wrongType, "must be an object or a string", .alert, value)
        }
        let alert = try la.value(.alert, value)
        return BlankText.showsNothing(alert: alert) ? nil : alert
    }

    /// A plain string is the body. A subtitle alone is neither.
    private func hasTitleOrBody(_ alert: JSONValue?) -> Bool {
        guard case .object(let members)? = alert else { return alert != nil }
        let parts = members.filter { !$0.isNamed("subtitle") && !$0.isNamed("subtitle-loc-key") }
        return !BlankText.showsNothing(alert: .object(parts))
    }

    /// iOS shows no activity without them. The error names all that are missing, at the first of them.
    private func incompleteStart(
        _ la: FieldScope<ActivityKey>, _ lacksType: Bool, _ lacksAttributes: Bool, _ lacksAlert: Bool
    ) -> BadRecord {
        let lacking: [(ActivityKey, String)] = [
            lacksType ? (.attributesType, "attributes_type") : nil,
            lacksAttributes ? (.attributes, "attributes") : nil,
            lacksAlert ? (.alert, "an alert with a title or a body") : nil,
        ].compactMap(\.self)
        let names = lacking.map(\.1).joined(separator: ", ")
        let key = lacking.first?.0 ?? .alert
        return la.fault(.missing, "a start needs \(names)", key, la.fields[key] ?? la.fields.object)
    }

    private func relevance(_ la: FieldScope<ActivityKey>) throws(BadRecord) -> String? {
        guard let value = la.fields[.relevance] else { return nil }
        guard let number = value.numberText else { throw la.fault(.wrongType, "must be a number", .relevance, value) }
        return number
    }

    // MARK: Message

    func message(
        _ record: FieldScope<RecordKey>, _ kind: Message.Kind, sentMs: Int64
    ) throws(BadRecord) -> Message {
        let conversation = try conversation(record)
        let expireAtMs = try record.time(.expireAtMs)
        var message = Message(
            kind: kind,
            msgID: try record.requiredIdentifier(.msgID, bytes: InputLimit.id),
            serverSeq: try record.int(.serverSeq),
            expireAtMs: expireAtMs ?? sentMs &+ InputLimit.dayMs,
            conversation: conversation,
            from: try sender(record),
            to: try audience(record, required: !conversation.type.hasMembers),
            mention: try mention(record),
            typeName: try record.string(.typeName),
            isCustomType: try record.bool(.custom) ?? false,
            push: try pushOptions(record, kind, sentMs: sentMs),
            revoke: try revoke(record, required: kind == .revoke))
        if let atMs = message.push.sendAtMs, expireAtMs == nil { message.expireAtMs = atMs &+ InputLimit.dayMs }
        return message
    }

    private func conversation(_ record: FieldScope<RecordKey>) throws(BadRecord) -> Conversation {
        guard let object = try record.object(.conv) else { throw record.missing(.conv) }
        let part = FieldScope(partKeys.fields(of: object), path: "$.conv")
        return Conversation(
            id: try part.requiredIdentifier(.id, bytes: InputLimit.user),
            type: try part.requiredWord(.type, Conversation.Kind.self, "p2p, group, ultra, system, custom"),
            name: try part.text(.label, limit: InputLimit.conversationName))
    }

    private func sender(_ record: FieldScope<RecordKey>) throws(BadRecord) -> Message.Sender {
        guard let object = try record.object(.from) else { throw record.missing(.from) }
        let part = FieldScope(partKeys.fields(of: object), path: "$.from")
        return Message.Sender(
            uid: try part.requiredIdentifier(.uid, bytes: InputLimit.user),
            nick: try part.text(.nick, limit: InputLimit.nick),
            device: try part.filled(.device, bytes: InputLimit.user),
            avatar: try part.filled(.avatar, bytes: InputLimit.url))
    }

    private func audience(
        _ record: FieldScope<RecordKey>, required: Bool
    ) throws(BadRecord) -> Message.Audience {
        guard let object = try record.object(.to) else {
            if required { throw record.missing(.to) }
            return Message.Audience()
        }
        let part = FieldScope(partKeys.fields(of: object), path: "$.to")
        let uids = try part.uids(.uids, atMost: InputLimit.recipients)
        let limit = try deviceLimit(part)
        if limit?.tokens == nil {
            if required, uids == nil { throw part.missing(.uids) }
        } else if uids != nil {
            throw part.outOfRange(.tokens, "cannot be given with uids")
        }
        return Message.Audience(uids: uids, exclude: try part.uids(.exclude, mayBeEmpty: true) ?? [], limit: limit)
    }

    private func deviceLimit(_ part: FieldScope<PartKey>) throws(BadRecord) -> DeviceLimit? {
        let devices = try part.identifiers(.devices, bytes: InputLimit.user, atMost: InputLimit.addressed)
        let tokens = try part.hexTokens(.tokens, atMost: InputLimit.addressed)
        return devices == nil && tokens == nil ? nil : DeviceLimit(devices: devices, tokens: tokens)
    }

    private func mention(_ record: FieldScope<RecordKey>) throws(BadRecord) -> Message.Mention? {
        guard let object = try record.object(.mention) else { return nil }
        let part = FieldScope(partKeys.fields(of: object), path: "$.mention")
        return Message.Mention(all: try part.bool(.all) ?? false, uids: try part.uids(.uids, mayBeEmpty: true) ?? [])
    }

    private func revoke(_ record: FieldScope<RecordKey>, required: Bool) throws(BadRecord) -> Message.Revoke? {
        // In an ordinary message the field has no meaning.
        guard required else { return nil }
        guard let object = try record.object(.revoke) else { throw record.missing(.revoke) }
        let part = FieldScope(partKeys.fields(of: object), path: "$.revoke")
        return Message.Revoke(
            targetMsgID: try part.requiredIdentifier(.targetMsgID, bytes: InputLimit.id),
            badge: try part.word(.badge, Message.Revoke.Badge.self, "decrease, keep, count") ?? .decrease)
    }

    private func pushOptions(
        _ record: FieldScope<RecordKey>, _ kind: Message.Kind, sentMs: Int64
    ) throws(BadRecord) -> PushOptions {
        guard let object = try record.object(.push) else { return PushOptions() }
        let push = FieldScope(pushKeys.fields(of: object), path: "$.push")
        return PushOptions(
            enabled: try push.bool(.enabled) ?? true,
            title: try push.text(.title, limit: InputLimit.title),
            content: try push.text(.content, limit: InputLimit.content),
            prefix: try push.bool(.prefix) ?? true,
            badge: try push.bool(.badge) ?? true,
            force: try force(push),
            forceDetail: try push.bool(.forceDetail) ?? false,
            payload: try payload(push),
            aps: try push.value(.aps),
            profile: try push.word(.profile, PayloadProfile.self, "nim, rc, wps, raw"),
            sound: try push.string(.sound),
            threadID: try push.string(.threadID),
            category: try push.string(.category),
            interruption: try interruption(push),
            collapseID: try push.string(.collapseID),
            silent: try push.bool(.silent) ?? false,
            voip: try push.bool(.voip) ?? false,
            priority: try push.word(.priority, PushOptions.Priority.self, "high, normal, low") ?? .high,
            strategy: try push.int(.strategy, in: 1...4).flatMap { Strategy(rawValue: $0) },
            sms: try push.bool(.sms) ?? false,
            subtitle: try push.text(.subtitle, limit: InputLimit.title),
            image: try push.filled(.image, bytes: InputLimit.url),
            template: try template(push),
            taskID: try push.filled(.taskID, bytes: InputLimit.task),
            isMutable: try push.bool(.mutable) ?? true,
            sendAtMs: try sendAtMs(push, kind, sentMs: sentMs))
    }

    /// - Returns: nil for a message that is decided when it comes: without the field, and with a time that is not after `sent_ms`.
    private func sendAtMs(
        _ push: FieldScope<PushKey>, _ kind: Message.Kind, sentMs: Int64
    ) throws(BadRecord) -> Int64? {
        guard let atMs = try push.time(.sendAtMs) else { return nil }
        let value = try push.required(.sendAtMs)
        if kind == .revoke { throw push.outOfRange(.sendAtMs, "cannot be given in a revoke") }
        guard atMs &- sentMs <= InputLimit.scheduleMs else {
            throw push.outOfRange(.sendAtMs, "must be at most 7 days after sent_ms")
        }
        guard value.documentCount <= InputLimit.parkedBytes else {
            throw push.fault(
                .tooLong, "a scheduled message has at most \(InputLimit.parkedBytes) bytes", .sendAtMs, value)
        }
        return atMs > sentMs ? atMs : nil
    }

    private func interruption(_ push: FieldScope<PushKey>) throws(BadRecord) -> String? {
        try push.word(
            .interruption, PushOptions.Interruption.self, "passive, active, time-sensitive, critical")?.rawValue
    }

    private func force(_ push: FieldScope<PushKey>) throws(BadRecord) -> PushOptions.Force {
        guard let object = try push.object(.force) else { return PushOptions.Force() }
        let part = FieldScope(partKeys.fields(of: object), path: "$.push.force")
        return PushOptions.Force(
            mode: try part.word(.mode, PushOptions.Force.Mode.self, "none, list, all") ?? .none,
            uids: try part.uids(.uids, atMost: InputLimit.forced, mayBeEmpty: true) ?? [],
            content: try part.text(.content, limit: InputLimit.content),
            liftsMute: try part.bool(.liftMute) ?? true)
    }

    private func template(_ push: FieldScope<PushKey>) throws(BadRecord) -> PushOptions.Template? {
        guard let object = try push.object(.template) else { return nil }
        let part = FieldScope(partKeys.fields(of: object), path: "$.push.template")
        return PushOptions.Template(
            id: try part.requiredIdentifier(.id), args: try part.texts(.args, limit: InputLimit.content))
    }

    private func payload(_ push: FieldScope<PushKey>) throws(BadRecord) -> CustomPayload? {
        guard let value = push.fields[.payload] else { return nil }
        if let utf8 = value.utf8 { return try payload(utf8, value, push) }
        guard value.isObject else { throw push.fault(.wrongType, "must be an object or a string", .payload, value) }
        guard case .object(let members) = try push.value(.payload, value) else { return nil }
        // The limit counts compact JSON with no more escapes than needed. Most records are shorter as a whole.
        if value.documentCount > InputLimit.payload, let source = value.sourceBytes, source.count > InputLimit.payload {
            var writer = JSONWriter()
            writer.value(.object(members))
            if Self.isLong(writer.count, { String(decoding: writer.bytes, as: UTF8.self) }) {
                throw Self.longPayload(push, value)
            }
        }
        return .object(members)
    }

    /// A payload that is a text; an empty one is absent.
    private func payload(
        _ utf8: UnsafeBufferPointer<UInt8>, _ value: JSONCursor, _ push: FieldScope<PushKey>
    ) throws(BadRecord) -> CustomPayload? {
        if utf8.isEmpty { return nil }
        guard !Self.isLong(utf8.count, { String(decoding: utf8, as: UTF8.self) }) else {
            throw Self.longPayload(push, value)
        }
        return .text(String(decoding: utf8, as: UTF8.self), members: members(spelledBy: utf8))
    }

    /// The members of this JSON text if it is an object; nil for every other text.
    private func members(spelledBy utf8: UnsafeBufferPointer<UInt8>) -> [JSONValue.Member]? {
        guard utf8.first(where: { ![0x20, 0x09, 0x0a, 0x0d].contains($0) }) == UInt8(ascii: "{") else { return nil }
        let parsed = payloadParser.parse(UnsafeRawBufferPointer(utf8)) { root in try? JSONValue(root) }
        guard case .read(.object(let members)) = parsed else { return nil }
        return members
    }

    private static func longPayload(_ push: FieldScope<PushKey>, _ value: JSONCursor) -> BadRecord {
        push.fault(.longPayload, "longer than \(InputLimit.payload) characters", .payload, value)
    }

    private static func isLong(_ bytes: Int, _ text: () -> String) -> Bool {
        if bytes <= InputLimit.payload { return false }
        return bytes > TextCut.bytes(ofCharacters: InputLimit.payload) || text().count > InputLimit.payload
    }

    // MARK: User state

    func userState(
        _ record: FieldScope<RecordKey>, kind: String, sentMs: Int64
    ) throws(BadRecord) -> UserState {
        let uid = try record.requiredIdentifier(.uid, bytes: InputLimit.user)
        return UserState(uid: uid, change: try change(record, kind: kind, sentMs: sentMs))
    }

    private func change(
        _ record: FieldScope<RecordKey>, kind: String, sentMs: Int64
    ) throws(BadRecord) -> UserState.Change {
        switch kind {
        case "bind": return .bind(try binding(record, sentMs: sentMs))
        case "unbind": return .unbind(try unbinding(record))
        case "settings": return .settings(try settings(record))
        case "mute":
            let conversation = try record.requiredIdentifier(.convID, bytes: InputLimit.user)
            let untilMs = try record.time(.untilMs, mayBeZero: true)
            return .mute(conversation: conversation, level: try muteLevel(record), untilMs: untilMs)
        case "read":
            let conversation = try record.requiredIdentifier(.convID, bytes: InputLimit.user)
            // The client's clock made it, as those of a report.
            let upToMs = try record.time(.upToMs, mayBeZero: true).map { min($0, sentMs) }
            let mark = UserState.ReadMark(seq: try record.int(.upToSeq), ms: upToMs)
            guard mark.seq != nil || mark.ms != nil else {
                throw BadRecord(
                    .missing, "one of up_to_seq and up_to_ms is required", at: "$.up_to_seq",
                    byte: record.fields.object.offset)
            }
            return .read(conversation: conversation, upTo: mark)
        case "badge_report":
            return .badgeReport(
                device: try record.requiredIdentifier(.device, bytes: InputLimit.user),
                // The range of a badge, so that sums never overflow.
                value: min(max(try record.requiredInt(.value), 0), Int64(Int32.max)),
                clientMs: min(try record.requiredTime(.clientMs), sentMs))
        case "ack":
            let device = try record.requiredIdentifier(.device, bytes: InputLimit.user)
            let msgIDs = try record.identifiers(.msgIDs, bytes: InputLimit.id, atMost: InputLimit.acknowledged)
            guard let msgIDs else { throw record.missing(.msgIDs) }
            return .ack(device: device, connectionEpoch: try record.int(.connEpoch), msgIDs: msgIDs)
        case "forget": return .forget
        case "arrived_report": return .arrivedReport(try report(record, at: .arrivedMs, sentMs: sentMs))
        default: return .openReport(try report(record, at: .openedMs, sentMs: sentMs))
        }
    }

    /// The pid in lower case, because some systems print a UUID in capitals.
    private func report(
        _ record: FieldScope<RecordKey>, at time: RecordKey, sentMs: Int64
    ) throws(BadRecord) -> UserState.PushReport {
        UserState.PushReport(
            device: try record.requiredIdentifier(.device, bytes: InputLimit.user),
            pid: try record.requiredIdentifier(.pid).lowercased(),
            msgID: try record.filled(.msgID, bytes: InputLimit.id),
            atMs: try record.time(time).map { min($0, sentMs) })
    }

    private func muteLevel(_ record: FieldScope<RecordKey>) throws(BadRecord) -> MuteLevel {
        guard let level = try muteLevel(record, .level) else { throw record.missing(.level) }
        return level
    }

    private func muteLevel<Key>(_ scope: FieldScope<Key>, _ key: Key) throws(BadRecord) -> MuteLevel? {
        guard let number = try scope.int(key) else { return nil }
        guard let level = Int(exactly: number).flatMap({ MuteLevel(rawValue: $0) }) else {
            throw scope.outOfRange(key, "must be one of -1, 0, 1, 2, 4, 5")
        }
        return level
    }

    /// The levels of the types that the record names.
    private func levels(_ record: FieldScope<RecordKey>) throws(BadRecord) -> TypeLevels {
        guard let object = try record.object(.levels) else { return [:] }
        let part = FieldScope(levelKeys.fields(of: object), path: "$.levels")
        var levels = TypeLevels()
        for key in LevelKey.allCases {
            if let level = try muteLevel(part, key) { levels[key.type] = level }
        }
        return levels
    }

    private func token(_ record: FieldScope<RecordKey>) throws(BadRecord) -> FieldScope<TokenKey> {
        guard let object = try record.object(.token) else { throw record.missing(.token) }
        return FieldScope(tokenKeys.fields(of: object), path: "$.token")
    }

    private func binding(
        _ record: FieldScope<RecordKey>, sentMs: Int64
    ) throws(BadRecord) -> UserState.Binding {
        let token = try token(record)
        let device = try token.requiredIdentifier(.device, bytes: InputLimit.user)
        let bound = TokenRecord(
            hex: try token.hexToken(.token),
            environment: try token.requiredWord(.env, APNsEnvironment.self, "production, sandbox"),
            topic: try topic(token),
            type: try token.requiredWord(.type, TokenRecord.Kind.self, "alert, voip, activity, start"),
            credential: try token.string(.cert, bytes: InputLimit.word),
            contentKey: try token.string(.contentKey, bytes: InputLimit.word),
            language: try token.string(.lang, bytes: InputLimit.word),
            zone: try zone(token, .tz),
            activityID: try token.filled(.activityID),
            attributesType: try token.filled(.attributesType),
            boundMs: sentMs, showsAlerts: try token.bool(.alerts) ?? true)
        if bound.type == .activity, bound.activityID == nil { throw token.missing(.activityID) }
        return UserState.Binding(device: device, token: bound, version: try token.requiredInt(.bindVer))
    }

    /// A bundle id. It becomes a header of every push on a shared connection.
    private func topic(_ token: FieldScope<TokenKey>) throws(BadRecord) -> String {
        let topic = try token.requiredIdentifier(.topic)
        guard AppPolicy.isTopic(topic) else {
            throw token.outOfRange(.topic, "must be a bundle id: letters, digits, dots and hyphens")
        }
        return topic
    }

    private func unbinding(_ record: FieldScope<RecordKey>) throws(BadRecord) -> UserState.Unbinding {
        let token = try token(record)
        return UserState.Unbinding(
            device: try token.requiredIdentifier(.device, bytes: InputLimit.user),
            token: try token.hexToken(.token),
            version: try token.requiredInt(.bindVer))
    }

    private func settings(_ record: FieldScope<RecordKey>) throws(BadRecord) -> UserState.SettingsChange {
        var change = UserState.SettingsChange()
        if let object = try record.object(.dnd) { try readDND(object, into: &change) }
        change.showDetail = try record.bool(.showDetail)
        change.pushWhenDesktopOnline = try record.bool(.pushWhenDesktopOnline)
        change.holdSeconds = try record.int(.holdS, in: 0...600)
        change.language = try record.string(.lang, bytes: InputLimit.word)
        change.phone = try record.string(.phone, bytes: InputLimit.phone)
        change.levels = try levels(record)
        change.snoozeUntilMs = try record.time(.snoozeUntilMs, mayBeZero: true)
        return change
    }
}

extension BadRecord {
    /// DND is on, without a window in the record and in the stored settings.
    public static let missingWindow = BadRecord(
        .missing, "DND needs a window, and neither the record nor the stored settings name it", at: "$.dnd")
}

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
    let recordKeys: JSONKeyTable<RecordKey>
    let partKeys: JSONKeyTable<PartKey>
    let pushKeys: JSONKeyTable<PushKey>
    let activityKeys: JSONKeyTable<ActivityKey>
    let tokenKeys: JSONKeyTable<TokenKey>
    let quietKeys: JSONKeyTable<QuietKey>
    let levelKeys: JSONKeyTable<LevelKey>
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
        isRight(kafkaMs: kafkaMs ?? 0, nowMs: nowMs) ? kafkaMs ?? nowMs : nowMs
    }

    /// A clock is right as long as it is off by this at most.
    static let clockToleranceMs: Int64 = 60_000

    /// Whether a record's time does not depend on its reader's clock.
    static func isRight(kafkaMs: Int64, nowMs: Int64) -> Bool {
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
}

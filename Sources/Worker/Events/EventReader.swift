import JSON
public import PushCore

/// Which of the two input topics a record came from: each carries its own kinds.
public enum RecordClass: Sendable {
    case events, userState
}

/// Turns the bytes of a record into an ``Event``, or says why they are none (contract sections 0 and 2).
///
/// One per shard: it keeps the parser's buffers. Nothing a record can hold makes it trap; records above `maxBytes`
/// are refused unread.
public final class EventReader {
    private let apps: Set<String>
    /// The app of the last record: the next one's is mostly the same, and a comparison is cheaper than a hash.
    private var lastApp = ""
    private let parser: JSONParser
    let recordKeys = JSONKeyTable<RecordKey>()
    let partKeys = JSONKeyTable<PartKey>()
    let pushKeys = JSONKeyTable<PushKey>()
    let activityKeys = JSONKeyTable<ActivityKey>()
    let tokenKeys = JSONKeyTable<TokenKey>()
    let quietKeys = JSONKeyTable<QuietKey>()

    /// How long identifiers may be, in characters.
    enum Limit {
        static var id: Int { 64 }
        static var conversation: Int { 128 }
        static var title: Int { 100 }
        static var content: Int { 500 }
        static var forced: Int { 100 }
        static var payload: Int { 2048 }
        /// Of a conversation's name.
        static var name: Int { 100 }
        /// Of a header of ours.
        static var topic: Int { 255 }
        // In bytes.
        static var avatar: Int { 512 }
        /// `cert`, `content_key`, `lang` and `tz` of a token.
        static var tokenWord: Int { 64 }
        static var attributesType: Int { 256 }
        static var phone: Int { 20 }
        /// Apple gives no length for device tokens; today's have 64 digits, those of Live Activities some 200.
        static var tokenDigits: Int { 512 }
        /// What an event without `expire_at_ms` lives.
        static var dayMs: Int64 { 86_400_000 }
    }

    /// - Parameters:
    ///   - apps: the ids of the apps that are configured.
    ///   - maxBytes: of a record; Kafka's own default is 1 MiB.
    public init(apps: some Sequence<String>, maxBytes: Int = 1 << 20) {
        self.apps = Set(apps)
        parser = JSONParser(maxBytes: maxBytes)
    }

    public func read(_ bytes: UnsafeRawBufferPointer, of topic: RecordClass) throws(BadRecord) -> Event {
        let parsed = try parser.parse(bytes) { (root) throws(BadRecord) in try event(root, topic) }
        switch parsed {
        case .read(let event): return event
        case .refused(let fault): throw badRecord(fault)
        }
    }

    public func read(_ bytes: [UInt8], of topic: RecordClass) throws(BadRecord) -> Event {
        try bytes.withUnsafeBufferPointer { (buffer) throws(BadRecord) in
            try read(UnsafeRawBufferPointer(buffer), of: topic)
        }
    }

    private func badRecord(_ fault: JSONFault) -> BadRecord {
        switch fault.code {
        case .empty: BadRecord(.empty, "empty record")
        case .tooLong: BadRecord(.tooLong, "record longer than \(parser.maxBytes) bytes")
        case .tooDeep: BadRecord(.tooDeep, fault.description)
        case .notUTF8: BadRecord(.notUTF8, fault.description)
        case .badString, .unclosedString: BadRecord(.brokenString, fault.description)
        case .badNumber, .badStructure, .outOfMemory: BadRecord(.brokenJSON, fault.description)
        }
    }

    private func event(_ root: JSONCursor, _ topic: RecordClass) throws(BadRecord) -> Event {
        guard root.isObject else { throw BadRecord(.wrongType, "must be an object", byte: root.offset) }
        let record = FieldScope(recordKeys.fields(of: root), path: "$")
        guard try record.requiredInt(.version) == 1 else {
            throw record.fault(.unknownVersion, "unknown version, known is 1", .version, try record.required(.version))
        }
        let kind = try record.requiredString(.kind)
        let app = try record.requiredIdentifier(.app, limit: Limit.id)
        if app != lastApp {
            guard apps.contains(app) else {
                throw record.fault(.unknownApp, "unknown app", .app, try record.required(.app))
            }
            lastApp = app
        }
        let id = try record.requiredIdentifier(.eventID, limit: Limit.id)
        let sentMs = try record.requiredTime(.sentMs)
        return Event(app: app, id: id, sentMs: sentMs, body: try body(kind, of: record, on: topic, sentMs: sentMs))
    }

    private func body(
        _ kind: String, of record: FieldScope<RecordKey>, on topic: RecordClass, sentMs: Int64
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
        case "message": return .message(SharedMessage(try message(record, .message, sentMs: sentMs)))
        case "revoke": return .message(SharedMessage(try message(record, .revoke, sentMs: sentMs)))
        case "live_activity": return .liveActivity(try liveActivity(record))
        default: return .userState(try userState(record, kind: kind, sentMs: sentMs))
        }
    }

    private static func home(of kind: String) -> RecordClass? {
        switch kind {
        case "message", "revoke", "live_activity": .events
        case "bind", "unbind", "settings", "mute", "read", "badge_report", "ack", "open_report", "arrived_report":
            .userState
        default: nil
        }
    }
}

internal import Digits

/// What the worker's headers tell of a dead letter: why the record was refused, and where it stood.
public struct DeadLetterNote: Equatable, Sendable {
    /// Names of the headers that the worker writes, beside which a dead letter has none.
    public static let headerNames = ["carillon-error", "carillon-topic", "carillon-partition", "carillon-offset"]
    /// With both a record is a dead letter, whatever its topic is called.
    public static let markNames = ["carillon-error", "carillon-topic"]

    /// `carillon-error` as it stands; empty where there is none.
    public var error: String
    /// The topic, partition and offset of the refused record; nil: not told.
    public var topic: String?
    public var partition: Int32?
    public var offset: Int64?

    /// Longest error that is read, in bytes: paths have bounds of their own, others' headers have none.
    static let errorBytesMax = 1_000
    /// Kafka's own limit of a topic's name.
    static let topicBytesMax = 249

    public init(_ headers: [RecordLine.Header]) {
        error = Self.text(headers, "carillon-error", bytesMax: Self.errorBytesMax, cuts: true) ?? ""
        topic = Self.text(headers, "carillon-topic", bytesMax: Self.topicBytesMax, cuts: false)
        partition = Self.text(headers, "carillon-partition", bytesMax: 20, cuts: false).flatMap { Int32($0) }
        offset = Self.text(headers, "carillon-offset", bytesMax: 20, cuts: false).flatMap { Int64($0) }
    }

    /// Headers without the worker's own: what a record has that is tried again.
    public static func others(_ headers: [RecordLine.Header]) -> [RecordLine.Header] {
        headers.filter { !headerNames.containsSame($0.name) }
    }

    /// The last header of that name; nil where it is absent, null, no UTF-8, or too long and not to be cut.
    private static func text(
        _ headers: [RecordLine.Header], _ name: String, bytesMax: Int, cuts: Bool
    ) -> String? {
        guard let value = headers.last(where: { $0.name.isSame(as: name) })?.value else { return nil }
        if value.count <= bytesMax { return String(validating: value, as: UTF8.self) }
        return cuts ? String(decoding: value.prefix(bytesMax), as: UTF8.self) : nil
    }

    /// The rule that was broken, in words: the error without `bad_event: ` and without its place.
    public var cause: String { parts.cause }

    /// Where in the record, such as `$.to.uids[]`: indexes are left out, so that equal faults have equal paths; nil: not told.
    public var path: String? { parts.path }

    private var parts: (cause: String, path: String?) {
        let bytes = Array(error.utf8)
        var cause = bytes[...]
        let prefix = Array("bad_event: ".utf8)
        if cause.starts(with: prefix) { cause = cause.dropFirst(prefix.count) }
        let mark = Array(" at $".utf8)
        let starts = cause.indices.dropLast(max(0, mark.count - 1))
        guard let at = starts.last(where: { cause[$0...].starts(with: mark) }) else {
            return (String(decoding: cause, as: UTF8.self), nil)
        }
        var path: [UInt8] = []
        var isIndex = false
        for byte in cause[(at + mark.count - 1)...] {
            if byte == UInt8(ascii: ",") { break }
            if byte == UInt8(ascii: "]") { isIndex = false }
            if !isIndex { path.append(byte) }
            if byte == UInt8(ascii: "[") { isIndex = true }
        }
        return (String(decoding: cause[..<at], as: UTF8.self), String(decoding: path, as: UTF8.self))
    }
}

/// Which dead letters are meant; what is nil selects nothing out.
public struct DeadLetterChoice: Equatable, Sendable {
    /// Words of the error, `_` and `-` as blanks, or the rule by which the record is refused today.
    public var reason: String?
    /// The topic in which the record stood.
    public var topic: String?
    public var app: String?

    public init(reason: String? = nil, topic: String? = nil, app: String? = nil) {
        self.reason = reason
        self.topic = topic
        self.app = app
    }

    /// - Parameters:
    ///   - app: of the record; nil: it cannot be told.
    ///   - rule: by which it is refused today; nil: by none.
    public func takes(_ note: DeadLetterNote, app: String?, rule: String?) -> Bool {
        if let topic, !topic.isSame(as: note.topic) { return false }
        if let own = self.app, !own.isSame(as: app) { return false }
        guard let reason else { return true }
        if reason.isSame(as: rule) { return true }
        let (words, text) = (Self.words(reason), Self.words(note.error))
        guard !words.isEmpty, words.count <= text.count else { return false }
        return (0...(text.count - words.count)).contains { text[$0...].starts(with: words) }
    }

    private static func words(_ text: String) -> [UInt8] {
        text.utf8.map { byte in
            switch byte {
            case UInt8(ascii: "_"), UInt8(ascii: "-"): UInt8(ascii: " ")
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte + 32
            default: byte
            }
        }
    }
}

// SPDX-License-Identifier: Apache-2.0
internal import Digits

/// The contents of a dead letter's headers: why the record was refused, and its position.
public struct DeadLetterNote: Equatable, Sendable {
    /// Names of the headers that the worker writes. A dead letter has no others.
    public static let headerNames = ["carillon-error", "carillon-topic", "carillon-partition", "carillon-offset"]
    /// A record with both headers is a dead letter, whatever the topic's name.
    public static let markNames = ["carillon-error", "carillon-topic"]

    /// The text of `carillon-error`; empty if the header is absent.
    public var error: String
    /// The topic, partition and offset of the refused record; nil if unknown.
    public var topic: String?
    public var partition: Int32?
    public var offset: Int64?

    /// Longest error that is read, in bytes. The worker's paths are bounded, but headers of other writers are not.
    static let errorBytesMax = 1_000
    /// Kafka's limit for a topic name.
    static let topicBytesMax = 249

    public init(_ headers: [RecordLine.Header]) {
        error = Self.text(headers, "carillon-error", bytesMax: Self.errorBytesMax, cuts: true) ?? ""
        topic = Self.text(headers, "carillon-topic", bytesMax: Self.topicBytesMax, cuts: false)
        partition = Self.text(headers, "carillon-partition", bytesMax: 20, cuts: false).flatMap { Int32($0) }
        offset = Self.text(headers, "carillon-offset", bytesMax: 20, cuts: false).flatMap { Int64($0) }
    }

    /// The headers without the worker's own, for a record that is written again.
    public static func others(_ headers: [RecordLine.Header]) -> [RecordLine.Header] {
        headers.filter { !headerNames.containsSame($0.name) }
    }

    /// The last header of that name; nil if it is absent, null, not UTF-8, or too long and must not be cut.
    private static func text(
        _ headers: [RecordLine.Header], _ name: String, bytesMax: Int, cuts: Bool
    ) -> String? {
        guard let value = headers.last(where: { $0.name.isSame(as: name) })?.value else { return nil }
        if value.count <= bytesMax { return String(validating: value, as: UTF8.self) }
        return cuts ? String(decoding: value.prefix(bytesMax), as: UTF8.self) : nil
    }

    /// The rule that was broken, in words: the error without `bad_event: ` and without the position.
    public var cause: String { parts.cause }

    /// The path in the record, such as `$.to.uids[]`, without indexes, so that equal faults have equal paths; nil if
    /// unknown.
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

/// A selection of dead letters. A nil field matches everything.
public struct DeadLetterChoice: Equatable, Sendable {
    /// Words of the error, with `_` and `-` read as spaces, or the rule by which the record is refused today.
    public var reason: String?
    /// The topic of the refused record.
    public var topic: String?
    public var app: String?

    public init(reason: String? = nil, topic: String? = nil, app: String? = nil) {
        self.reason = reason
        self.topic = topic
        self.app = app
    }

    /// - Parameters:
    ///   - app: the record's app; nil if unknown.
    ///   - rule: the rule by which the record is refused today; nil if it is accepted.
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

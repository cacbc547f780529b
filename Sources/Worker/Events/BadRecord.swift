// SPDX-License-Identifier: Apache-2.0
/// The reason why a record of an input topic is not a valid event, and the position (contract section 0).
///
/// The error may be logged: of the record's content it repeats an unknown app's id and nothing else.
public struct BadRecord: Error, Sendable, Equatable {
    /// The broken rule: a closed set, usable as a metric's label. Each limit has its own rule.
    public enum Rule: String, Sendable, CaseIterable {
        case empty
        /// The record, in bytes.
        case tooLong = "too_long"
        case tooDeep = "too_deep"
        case notUTF8 = "not_utf8"
        /// An invalid escape, a lone surrogate, or an unterminated string.
        case brokenString = "broken_string"
        case brokenJSON = "broken_json"
        case byteOrderMark = "byte_order_mark"
        case missing
        case wrongType = "wrong_type"
        case outOfRange = "out_of_range"
        /// A time in seconds where milliseconds are expected.
        case seconds
        /// An empty list, or an empty member of one.
        case emptyList = "empty_list"
        case longIdentifier = "long_identifier"
        case longList = "long_list"
        /// `push.payload`, in characters.
        case longPayload = "long_payload"
        case unknownVersion = "unknown_version"
        case unknownKind = "unknown_kind"
        case unknownApp = "unknown_app"
        case wrongTopic = "wrong_topic"
    }

    /// The reason code of step 1 (contract section 5).
    public static let reason = "bad_event"

    public let rule: Rule
    public let why: String
    /// `$` for the record itself, otherwise for example `$.push.force.uids[3]`.
    public let path: String
    /// From 0: the start of the value, or of the object that lacks it.
    public let byte: Int

    public init(_ rule: Rule, _ why: String, at path: String = "$", byte: Int = 0) {
        self.rule = rule
        self.why = why
        self.path = path
        self.byte = byte
    }

    /// The dead letter's `carillon-error` header.
    public var header: String { "\(Self.reason): \(why) at \(path), byte \(byte)" }
}

// SPDX-License-Identifier: Apache-2.0
internal import Digits

/// Counts dead letters by cause, path, topic and app.
public struct DeadLetterTally: Sendable {
    /// Dead letters with one cause, path, topic and app.
    public struct Group: Equatable, Sendable {
        public var cause: String
        public var path: String?
        public var topic: String?
        /// Nil if the record names no app.
        public var app: String?
        public var count = 0
        /// Unix ms; nil if none has a time.
        public var oldestMs: Int64?
        public var newestMs: Int64?
        /// The number that would be accepted today.
        public var accepted = 0
        /// The rule by which the newest of the others is refused today; nil if there is none or it is unknown.
        public var rule: String?
    }

    private struct Key: Hashable {
        var words: [UTF8Key]
    }

    private var groups: [Key: Group] = [:]
    public private(set) var count = 0
    /// Dead letters that belong to no group because the number of groups reached its limit.
    public private(set) var ungrouped = 0
    /// Causes and paths come from outside, so the number of groups is bounded.
    static let groupsMax = 1_000

    public init() {}

    /// - Parameters:
    ///   - app: the record's app; nil if the record names none.
    ///   - isAccepted: true if the worker would accept the record today.
    ///   - rule: the rule by which the worker would refuse it.
    public mutating func add(
        _ note: DeadLetterNote, app: String?, atMs: Int64?, isAccepted: Bool, rule: String?
    ) {
        count += 1
        let words = [note.cause, note.path ?? "", note.topic ?? "", app ?? ""]
        let key = Key(words: words.map { UTF8Key($0) })
        guard groups[key] != nil || groups.count < Self.groupsMax else {
            ungrouped += 1
            return
        }
        var group = groups[key] ?? Group(cause: note.cause, path: note.path, topic: note.topic, app: app)
        group.count += 1
        if let atMs {
            group.oldestMs = min(group.oldestMs ?? atMs, atMs)
            group.newestMs = max(group.newestMs ?? atMs, atMs)
        }
        if isAccepted { group.accepted += 1 } else { group.rule = rule }
        groups[key] = group
    }

    /// Largest first.
    public var sorted: [Group] {
        groups.values.sorted { one, other in
            if one.count != other.count { return one.count > other.count }
            return (one.cause, one.path ?? "", one.topic ?? "", one.app ?? "")
                < (other.cause, other.path ?? "", other.topic ?? "", other.app ?? "")
        }
    }
}

internal import Digits

/// Dead letters counted by what is wrong with them, where they stood, and whose they are.
public struct DeadLetterTally: Sendable {
    /// Dead letters with one cause, path, topic and app.
    public struct Group: Equatable, Sendable {
        public var cause: String
        public var path: String?
        public var topic: String?
        /// Nil: the record does not tell it.
        public var app: String?
        public var count = 0
        /// Unix ms; nil: none of them has a time.
        public var oldestMs: Int64?
        public var newestMs: Int64?
        /// So many would be accepted today.
        public var accepted = 0
        /// The rule by which the newest of the others is refused today; nil: there is none, or it cannot be told.
        public var rule: String?
    }

    private struct Key: Hashable {
        var words: [UTF8Key]
    }

    private var groups: [Key: Group] = [:]
    public private(set) var count = 0
    /// Those of no group, since there were too many groups.
    public private(set) var ungrouped = 0
    /// Causes and paths are texts from outside.
    static let groupsMax = 1_000

    public init() {}

    /// - Parameters:
    ///   - app: of the record; nil: it does not tell it.
    ///   - isAccepted: whether the worker would take the record today.
    ///   - rule: by which it would refuse it.
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

    /// The largest first.
    public var sorted: [Group] {
        groups.values.sorted { one, other in
            if one.count != other.count { return one.count > other.count }
            return (one.cause, one.path ?? "", one.topic ?? "", one.app ?? "")
                < (other.cause, other.path ?? "", other.topic ?? "", other.app ?? "")
        }
    }
}

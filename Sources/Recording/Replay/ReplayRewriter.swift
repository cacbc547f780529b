internal import JSON

/// What is changed of a record's value before it is written again.
public struct ReplayRewriter: Sendable {
    /// Nil: times stay.
    public var shift: TimeShift?
    /// Nil: ids stay.
    public var fresh: FreshIDs?

    public init(shift: TimeShift?, fresh: FreshIDs?) {
        self.shift = shift
        self.fresh = fresh
    }

    /// What is no JSON object stays as it is, byte for byte; so does everything where nothing is to be changed.
    public func apply(to value: [UInt8]) -> [UInt8] {
        if shift == nil, fresh == nil { return value }
        guard let tree = try? JSONTree(parsing: value, maxBytes: RecordLine.bytesMax), tree.members != nil else {
            return value
        }
        var changed = shift?.apply(to: tree) ?? tree
        changed = fresh?.apply(to: changed) ?? changed
        return changed.bytes
    }
}

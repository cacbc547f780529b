// SPDX-License-Identifier: Apache-2.0
internal import JSON

/// Changes a record's value before it is written again.
public struct ReplayRewriter: Sendable {
    /// Nil leaves times unchanged.
    public var shift: TimeShift?
    /// Nil leaves ids unchanged.
    public var fresh: FreshIDs?

    public init(shift: TimeShift?, fresh: FreshIDs?) {
        self.shift = shift
        self.fresh = fresh
    }

    /// - Returns: the value unchanged, byte for byte, if it is not a JSON object or nothing is to be changed.
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

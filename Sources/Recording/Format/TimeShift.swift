// SPDX-License-Identifier: Apache-2.0
public import JSON

/// Moves recorded times to the present. Every `…_ms` moves by the same amount, so all differences remain.
public struct TimeShift: Sendable {
    public let byMs: Int64

    public init(byMs: Int64) {
        self.byMs = byMs
    }

    /// The shift that makes the newest `sent_ms` of these lines `nowMs`; nil if no line has one.
    public init?(newestOf lines: [[UInt8]], nowMs: Int64) {
        let newest = lines.compactMap { (try? JSONTree(parsing: $0))?["sent_ms"]?.int }.max()
        guard let newest else { return nil }
        self.init(byMs: nowMs &- newest)
    }

    /// - Returns: the line with its times moved. A line that is not JSON remains unchanged.
    public func apply(to line: [UInt8]) -> [UInt8] {
        guard let tree = try? JSONTree(parsing: line) else { return line }
        return apply(to: tree).bytes
    }

    /// - Returns: the value with its times moved.
    public func apply(to tree: JSONTree) -> JSONTree { move(tree) }

    private func move(_ tree: JSONTree) -> JSONTree {
        switch tree {
        case .object(let members):
            return .object(
                members.map { member in
                    // Small numbers such as `latency_ms` are not times. Only numbers after the year 2001 are moved.
                    if member.key.hasSuffix("_ms"), let ms = member.value.int, ms > 1_000_000_000_000 {
                        return JSONTree.Member(member.key, .number(String(ms &+ byMs)))
                    }
                    return JSONTree.Member(member.key, move(member.value))
                })
        case .array(let elements): return .array(elements.map(move))
        default: return tree
        }
    }
}

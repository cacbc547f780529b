// SPDX-License-Identifier: Apache-2.0
/// Which node has which slots, and who copies whom. Each node has a copy, which may be old.
struct ClusterMap {
    /// By slot; nil for a slot that no node serves.
    var owners: [Int?]
    /// By node: the master that it copies; nil for a master.
    var masters: [Int?]
    /// Rises with each change.
    var epoch = 1
    /// `cluster_state:fail`.
    var isDown = false

    /// Slots in order, joined where one node has several in sequence.
    func ranges(of node: Int? = nil) -> [(slots: ClosedRange<Int>, owner: Int)] {
        var ranges: [(slots: ClosedRange<Int>, owner: Int)] = []
        var first = 0
        while first < owners.count {
            var last = first
            while last + 1 < owners.count, owners[last + 1] == owners[first] { last += 1 }
            if let owner = owners[first], node == nil || node == owner { ranges.append((first...last, owner)) }
            first = last + 1
        }
        return ranges
    }

    func replicas(of master: Int) -> [Int] { masters.indices.filter { masters[$0] == master } }

    var servedCount: Int { owners.reduce(0) { $1 == nil ? $0 : $0 + 1 } }

    /// Masters with slots.
    var size: Int { masters.indices.filter { node in owners.contains(node) }.count }
}

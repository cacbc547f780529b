// SPDX-License-Identifier: Apache-2.0
/// Counts records that the brokers deleted before a group settled them, because retention is shorter than the group's
/// lag.
public struct RetentionGap: Sendable, Equatable {
    private struct Place: Hashable {
        var topic: String
        var partition: Int32
    }

    /// Per partition, records up to this offset are settled or counted.
    private var accounted: [Place: Int64] = [:]
    public private(set) var count: Int64 = 0

    public init() {}

    /// Takes one look at a partition. Looks come in order.
    ///
    /// - Parameters:
    ///   - start: the oldest kept offset. Counting begins at that of the first look.
    ///   - committed: the group's next offset; nil if it has committed nothing yet.
    public mutating func saw(topic: String, partition: Int32, start: Int64, committed: Int64?) {
        let place = Place(topic: topic, partition: partition)
        guard let known = accounted[place] else { return accounted[place] = max(start, committed ?? start) }
        let safe = max(known, committed ?? known)
        if start > safe { count &+= start &- safe }
        accounted[place] = max(safe, start)
    }
}

// SPDX-License-Identifier: Apache-2.0
import CRdkafka
import Telemetry

/// The partitions of a topic, and those that a group's members have.
public struct TopicShare: Equatable, Sendable {
    public let topic: String
    /// Number of the topic's partitions at the brokers.
    public let partitions: Int
    /// Number of partitions that the group has given to a member.
    public let assigned: Int

    public init(topic: String, partitions: Int, assigned: Int) {
        self.topic = topic
        self.partitions = partitions
        self.assigned = assigned
    }
}

extension KafkaConsumer {
    /// Asks the brokers which partitions of these topics the whole group has, without blocking.
    ///
    /// - Parameter done: called on another thread, with nil if the brokers did not answer in time, while the group shares out its
    ///   partitions, or if it does not say what its members have (KIP-848).
    public func askShares(
        of topics: [String], timeoutMs: Int = 5_000, _ done: @escaping @Sendable ([TopicShare]?) -> Void
    ) {
        client.askShares(of: topics, timeoutMs: timeoutMs, done)
    }
}

extension ClientHandle {
    /// On a separate thread, which ends with the answer.
    ///
    /// `rd_kafka_DescribeConsumerGroups` has the fault of 2.0.2 that `CommittedQuery` describes.
    func askShares(
        of topics: [String], group: String, timeoutMs: Int, _ done: @escaping @Sendable ([TopicShare]?) -> Void
    ) {
        let isBegun = runDetached { [self] in
            guard let assigned = assignedPartitions(of: group, timeoutMs: timeoutMs) else { return done(nil) }
            var shares: [TopicShare] = []
            for name in topics {
                guard let topic = topic(name, timeoutMs: timeoutMs), topic.error == nil else { return done(nil) }
                let held = Set(topic.partitions).intersection(assigned[name] ?? [])
                shares.append(TopicShare(topic: name, partitions: topic.partitions.count, assigned: held.count))
            }
            done(shares)
        }
        if !isBegun { done(nil) }
    }

    /// By topic, the partitions that the group's members have; nil where the group is not stable, or not known.
    private func assignedPartitions(of group: String, timeoutMs: Int) -> [String: Set<Int32>]? {
        var found: UnsafePointer<rd_kafka_group_list>?
        _ = rd_kafka_list_groups(raw, group, &found, Int32(clamping: timeoutMs))
        guard let found else { return nil }
        defer { rd_kafka_group_list_destroy(found) }
        let groups = UnsafeBufferPointer(start: found.pointee.groups, count: Int(max(0, found.pointee.group_cnt)))
        // Names are the broker's and the configuration's own.
        let known = groups.first {
            $0.group.map { String(cString: $0) } == group && $0.err == RD_KAFKA_RESP_ERR_NO_ERROR
        }
        guard let known, known.state.map({ String(cString: $0) }) == "Stable" else { return nil }
        var assigned: [String: Set<Int32>] = [:]
        let members = UnsafeBufferPointer(start: known.members, count: Int(max(0, known.member_cnt)))
        for member in members {
            let bytes = UnsafeRawBufferPointer(
                start: member.member_assignment, count: Int(max(0, member.member_assignment_size)))
            guard let share = MemberAssignment(bytes) else { return nil }
            assigned.merge(share.partitions) { $0.union($1) }
        }
        return assigned
    }
}

/// What a leader gave to a member, as bytes of the classic group protocol: version, topics with their partitions, the leader's data.
struct MemberAssignment {
    let partitions: [String: Set<Int32>]

    /// - Returns: nil for anything else.
    init?(_ bytes: UnsafeRawBufferPointer) {
        // A member without a share may have no bytes at all.
        if bytes.isEmpty {
            partitions = [:]
            return
        }
        var reader = Reader(bytes: bytes)
        guard reader.number(of: Int16.self) != nil, let topicCount = reader.number(of: Int32.self) else { return nil }
        var partitions: [String: Set<Int32>] = [:]
        for _ in 0..<max(0, topicCount) {
            guard let length = reader.number(of: Int16.self), let name = reader.take(Int(length)),
                let count = reader.number(of: Int32.self)
            else { return nil }
            let topic = String(decoding: name, as: UTF8.self)
            for _ in 0..<max(0, count) {
                guard let partition = reader.number(of: Int32.self) else { return nil }
                partitions[topic, default: []].insert(partition)
            }
        }
        self.partitions = partitions
    }

    private struct Reader {
        var bytes: UnsafeRawBufferPointer

        /// - Returns: nil where fewer bytes are left.
        mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
            guard count >= 0, count <= bytes.count else { return nil }
            defer { bytes = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(count)) }
            return UnsafeRawBufferPointer(rebasing: bytes.prefix(count))
        }

        mutating func number<Number: FixedWidthInteger>(of type: Number.Type) -> Number? {
            take(MemoryLayout<Number>.size).map { Number(bigEndian: $0.loadUnaligned(as: Number.self)) }
        }
    }
}

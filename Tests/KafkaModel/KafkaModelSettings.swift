// SPDX-License-Identifier: Apache-2.0
/// How quick and how reliable the modelled cluster and its network are. All times in nanoseconds.
package struct KafkaModelSettings {
    package var brokers = 1
    /// The cluster's name.
    package var clusterID = "model"
    /// One way of a request or an answer.
    package var delayNanos: ClosedRange<UInt64> = 100_000...2_000_000
    /// More for the answer to a fetch.
    package var fetchNanos: ClosedRange<UInt64> = 0...5_000_000
    /// Records in the answer to a fetch.
    package var fetchRecords: ClosedRange<Int> = 1...200
    /// Records that a client reads ahead.
    package var prefetchMax = 1_000
    /// How long a write lies at the broker until all replicas have it.
    package var writeNanos: ClosedRange<UInt64> = 200_000...3_000_000
    /// Between two attempts at a broker that is away.
    package var retryNanos: ClosedRange<UInt64> = 100_000_000...2_000_000_000
    /// The share of writes of which the request is lost.
    package var lostWrites = 0.0
    /// The share of writes of which the answer is lost: the broker has the records.
    package var lostWriteAnswers = 0.0
    /// The share of requests to the group's coordinator that are lost.
    package var lostGroupCalls = 0.0
    /// The share of answers for committed offsets that come seconds late.
    package var lateAnswers = 0.0
    /// `group.initial.rebalance.delay.ms`: how long an empty group waits for more members.
    package var firstJoinNanos: UInt64 = 100_000_000
    /// `offset.metadata.max.bytes`.
    package var metadataMax = 4096
    /// The brokers' Unix time at the world's time 0, in ms.
    package var wallOriginMs: Int64 = 1_700_000_000_000

    package init() {}

    func wallMs(_ nanos: UInt64) -> Int64 { wallOriginMs + Int64(nanos / 1_000_000) }
}

/// Work by due time; equal times in the order of arrival.
struct EventHeap {
    private struct Event {
        let nanos: UInt64
        let number: UInt64
        let body: () -> Void

        func isBefore(_ other: Event) -> Bool { (nanos, number) < (other.nanos, other.number) }
    }

    private var events: [Event] = []
    private var count: UInt64 = 0

    var nextNanos: UInt64? { events.first?.nanos }

    mutating func push(_ nanos: UInt64, _ body: @escaping () -> Void) {
        count += 1
        events.append(Event(nanos: nanos, number: count, body: body))
        var child = events.count - 1
        while child > 0, events[child].isBefore(events[(child - 1) / 2]) {
            events.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func pop() -> (() -> Void)? {
        guard let first = events.first else { return nil }
        let last = events.removeLast()
        if events.isEmpty { return first.body }
        events[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < events.count {
                if events[child].isBefore(events[least]) { least = child }
            }
            if least == parent { return first.body }
            events.swapAt(parent, least)
            parent = least
        }
    }
}

/// The hash of the Java client's partitioner.
enum Murmur2 {
    static func hash(_ bytes: [UInt8]) -> UInt32 {
        let factor: UInt32 = 0x5bd1_e995
        var hash = 0x9747_b28c ^ UInt32(truncatingIfNeeded: bytes.count)
        var index = 0
        while index + 4 <= bytes.count {
            var word = bytes[index..<index + 4].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            word = word &* factor
            word ^= word >> 24
            word = word &* factor
            hash = (hash &* factor) ^ word
            index += 4
        }
        let rest = bytes[index...]
        if !rest.isEmpty {
            hash ^= rest.reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            hash = hash &* factor
        }
        hash ^= hash >> 13
        hash = hash &* factor
        return hash ^ hash >> 15
    }
}

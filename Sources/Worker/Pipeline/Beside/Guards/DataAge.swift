// SPDX-License-Identifier: Apache-2.0
import Kafka

/// Whether a server of Redis has older data than it had before: a restored snapshot, a replica that was cut off for long.
///
/// Two things rise in each server: a count, with each beat of any worker, and by partition the offset below which all user
/// state is applied. A count below one that was seen here has moved back. So has an offset below one that a commit to Kafka
/// names as noted in every server, which a worker compares that has just started. The script of the beat then keeps a loss in that
/// server, which every worker sees. The loss ends once the user state of all partitions since then was applied again. A machine
/// without clock and server; one per shard.
struct DataAge {
    /// Servers, by number, with the count that was seen there last.
    private(set) var counts: [Int: Int64] = [:]
    /// By server: user state since that time is being applied again.
    private(set) var losses: [Int: StateStore.Loss] = [:]
    /// Servers that take no writes and have an older count.
    private var older: Set<Int> = []
    /// By partition: the offset that a commit names as noted in every server. Compared once by each.
    private var noted: [Int32: Int64] = [:]
    /// Servers that have not compared them.
    private var comparing: Set<Int> = []
    /// No server was known when the offsets were: the first ones that are known compare them.
    private var comparesFirst = false
    private let isCluster: Bool

    /// Fewer keys than these are no data that could be older.
    private static let keysMin: Int64 = 50

    init(isCluster: Bool = false) { self.isCluster = isCluster }

    /// Redis may lack user state that was applied before.
    var isBehind: Bool { !losses.isEmpty || !older.isEmpty }

    /// Commits to Kafka name these offsets as noted in every server.
    mutating func learn(noted offsets: [Int32: Int64], _ servers: [Int]) {
        noted = offsets
        comparing = Set(servers)
        comparesFirst = servers.isEmpty
    }

    /// The next beat of each server. The machine forgets a server that is no longer in the list, unless it has a loss.
    ///
    /// - Parameter keys: how many keys there were at the last count.
    mutating func requests(_ servers: [Int], keys: Int64) -> [StateStore.BeatRequest] {
        counts = counts.filter { servers.contains($0.key) || losses[$0.key] != nil }
        older = older.filter { servers.contains($0) }
        if comparesFirst, !servers.isEmpty {
            comparing = Set(servers)
            comparesFirst = false
        }
        return (servers + losses.keys.filter { !servers.contains($0) }).map { server in
            StateStore.BeatRequest(
                server: server, known: counts[server],
                leastKeys: isCluster ? Self.keysMin : max(Self.keysMin, keys / 2),
                // A server may be new to a cluster.
                leastKeysOfPlaces: isCluster ? nil : Self.keysMin,
                noted: comparing.contains(server) ? noted : [:])
        }
    }

    /// A server's beat was answered.
    ///
    /// - Parameter compared: the beat carried what commits name.
    mutating func didBeat(_ server: Int, _ beat: StateStore.Beat, compared: Bool = false) {
        counts[server] = max(counts[server] ?? 0, beat.count)
        losses[server] = beat.loss
        older.remove(server)
        if compared { comparing.remove(server) }
    }

    /// A server that takes no writes has this count; nil: it has none.
    mutating func didLook(_ server: Int, count: Int64?) {
        guard let known = counts[server] else { return }
        if count ?? 0 < known { older.insert(server) } else { older.remove(server) }
    }

    /// The place from which each partition must be applied again: the least offset of all losses.
    ///
    /// - Parameter assigned: the partitions of the user-state topic that this shard reads.
    func starts(_ assigned: some Sequence<Int32>) -> [Int32: KafkaTopicReader.Start] {
        var starts: [Int32: KafkaTopicReader.Start] = [:]
        for partition in assigned {
            for loss in losses.values where !loss.done.contains(partition) {
                starts[partition] = Self.earlier(starts[partition], loss.start(partition))
            }
        }
        return starts
    }

    /// An offset and a time cannot be compared: then the whole topic is read.
    private static func earlier(
        _ one: KafkaTopicReader.Start?, _ other: KafkaTopicReader.Start
    ) -> KafkaTopicReader.Start {
        switch (one, other) {
        case (nil, _): other
        case (.offset(let one)?, .offset(let other)): .offset(min(one, other))
        case (.timeMs(let one)?, .timeMs(let other)): .timeMs(min(one, other))
        default: .earliest
        }
    }
}

extension StateStore.Loss {
    /// The server's clock and those of Kafka's timestamps may differ, and a record may be applied long after it was written.
    private static let marginMs: Int64 = 3_600_000

    fileprivate func start(_ partition: Int32) -> KafkaTopicReader.Start {
        if let offset = offsets[partition] { return .offset(offset) }
        return fromMs > Self.marginMs ? .timeMs(fromMs - Self.marginMs) : .earliest
    }
}

// SPDX-License-Identifier: Apache-2.0
import Console
import EventLoop
import JSON
import Kafka
import Recording
import Worker

/// Watches the worker during a replay: its group's progress, and the topic of results.
final class ReplayWatch {
    let group: String
    private(set) var judge: ReplayJudge
    private let lag: LagWatch
    private let tail: KafkaTail
    private let parser = JSONParser()
    private let inputs: Set<String>
    private let parkedTopic: String

    /// - Parameter inputs: the topics of this replay that the worker reads.
    init(_ configuration: Configuration, inputs: Set<String>) throws {
        group = configuration.kafka.group
        self.inputs = inputs
        parkedTopic = configuration.kafka.topics.parked
        let client = configuration.kafka.client(id: "carillon-replay")
        tail = try KafkaTail(client, topic: configuration.kafka.topics.results)
        lag = LagWatch(client, topics: inputs.sorted() + [parkedTopic])
        judge = ReplayJudge(seeds: (UInt64.random(in: 0 ... .max), UInt64.random(in: 0 ... .max)))
    }

    deinit { lag.end() }

    func wrote(_ event: ReplayJudge.Event) { judge.wrote(event, atMs: Loop.wallMs()) }

    /// Takes the available results. Returns their number.
    @discardableResult
    func poll(max: Int = 2000) -> Int {
        tail.take(max: max) { record in
            guard let value = record.value else { return }
            _ = parser.parse(value) { (root) throws(Never) in judge.read(root) }
        }
    }

    /// The group's progress over all topics.
    struct Standing {
        var looks = 0
        /// Records to settle, from any producer; nil if unknown.
        var lag: Int64?
        var parked: Int64 = 0
        /// Records of this replay that are settled.
        var settled = 0
        /// Records of this replay in topics that the worker reads.
        var wanted = 0
        /// Records that the brokers deleted before they were settled.
        var deleted: Int64 = 0
        /// The group has committed something in one of the topics.
        var isKnown = false
        var fault: String?
    }

    func standing(_ producers: ReplayProducers) -> Standing {
        let view = lag.last
        var standing = Standing(looks: view.looks, deleted: view.gap.count, fault: view.fault)
        for (topic, count) in producers.written where inputs.contains(topic) { standing.wanted += count }
        guard view.looks > 0 else { return standing }
        standing.lag = 0
        for partition in view.partitions {
            if partition.topic == parkedTopic {
                // Nobody reads a partition in which nothing was ever parked.
                if partition.committed != nil || partition.end > partition.start {
                    standing.parked += partition.records
                }
                continue
            }
            standing.lag = (standing.lag ?? 0) + partition.records
            guard let committed = partition.committed else { continue }
            standing.isKnown = true
            guard let index = producers.topics.firstIndex(of: partition.topic) else { continue }
            let key = ReplayProducers.PlaceKey(topic: index, partition: partition.partition)
            standing.settled += producers.places[key]?.before(committed, end: partition.end) ?? 0
        }
        return standing
    }

    /// Reads the present results, for a few seconds at most.
    func drain() {
        guard let ends = try? tail.ends(timeoutMs: 5000) else { return }
        let deadline = Loop.monotonicNanos() + 5_000_000_000
        while !tail.hasReached(ends), Loop.monotonicNanos() < deadline {
            if poll() == 0 { StopFlag.pause(milliseconds: 5) }
        }
    }
}

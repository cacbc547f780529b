// SPDX-License-Identifier: Apache-2.0
import EventLoop
package import KafkaModel
package import SimulatedSystem
package import Telemetry
package import Worker

/// A worker of the world: a process with its shards, as `carillon run` starts it.
package final class WorkerSeat {
    private struct Shard {
        let loop: Loop
        var runtime: ShardRuntime?
    }

    package let name: String
    package let process: SimulatedProcess
    package let registry = MetricsRegistry()
    private var shards: [Shard] = []
    /// It hands over and ends.
    package private(set) var isLeaving = false
    /// A Kafka client of it failed for good.
    package private(set) var hasFailed = false
    package let kafka: ModelHost
    private let system: SimulatedSystem
    private let configuration: Configuration
    private let shared: ProcessShared
    /// Called when it has ended, in whatever way.
    package var didEnd: () -> Void = {}

    package init(
        _ process: SimulatedProcess, system: SimulatedSystem, configuration: Configuration, kafka: ModelHost, log: Log,
        wallClock: WallClock = WallClock()
    ) throws {
        name = process.name
        self.system = system
        self.process = process
        self.kafka = kafka
        self.configuration = configuration
        // The world has one thread.
        nonisolated(unsafe) let clock = process
        let count = configuration.shardCount
        shared = ProcessShared(
            shardCount: count, wallClock: wallClock, seed: system.random.next(),
            occupancy: count > 1 ? DeviceOccupancy(bits: 12, nowNanos: { clock.nowNanos }) : nil,
            dedupKeys: count > 1 ? SharedKeys(bits: 8) : nil)
        for index in 0..<count {
            shards.append(Shard(loop: try process.makeLoop(count > 1 ? "\(name)-\(index)" : name)))
            try start(index, log: count > 1 ? log.with(["shard": .int(index)]) : log)
        }
    }

    private func start(_ index: Int, log: Log) throws {
        let loop = shards[index].loop
        nonisolated(unsafe) weak let seat = self
        nonisolated(unsafe) let clock = process
        shards[index].runtime = try process.result(on: loop) {
            let runtime = try ShardRuntime(
                index: index, loop: loop, configuration: configuration, registry: registry, log: log,
                beat: Heartbeat { clock.nowNanos }, shared: shared, kafka: ModelClients(kafka),
                replays: ModelReplays(host: kafka, topic: configuration.kafka.topics.userState),
                onFatal: { _ in seat?.hasFailed = true })
            nonisolated(unsafe) weak let told = runtime
            shared.occupancy?.join(
                shard: index, loop: loop, didVacate: { told?.didVacate($0) }, didRelease: { told?.didRelease($0) })
            return runtime
        }
    }

    /// A line of the worker's log without its time, which is the real one.
    package static func text(_ line: [UInt8]) -> String {
        let mark = Array(",\"level\":".utf8)
        let start = line.indices.first { line[$0...].starts(with: mark) } ?? 0
        return String(decoding: line[start...].dropFirst(mark.count).dropLast(2), as: UTF8.self)
    }

    // MARK: Looking

    private func forEachRuntime(_ body: (ShardRuntime) -> Void) {
        for shard in shards {
            guard let runtime = shard.runtime else { continue }
            process.run(on: shard.loop) { body(runtime) }
        }
    }

    /// What it still holds.
    package var leftovers: [(part: String, count: Int)] {
        var left: [(part: String, count: Int)] = []
        forEachRuntime { left += $0.leftovers }
        return left
    }

    /// States that cannot be, which a release build only counts and logs (`ShardContext.mistake`).
    package var internalErrors: Int { shards.reduce(0) { $0 + ($1.runtime?.internalErrors ?? 0) } }

    package var status: [ShardStatus] {
        var statuses: [ShardStatus] = []
        forEachRuntime { statuses.append($0.status()) }
        return statuses
    }

    /// The configuration has changed.
    package func apply(_ configuration: Configuration) { forEachRuntime { try? $0.apply(configuration) } }

    // MARK: The end

    /// Ends without notice: now, or after that many more calls that leave the process.
    package func crash(afterEffects count: Int = 0) {
        process.didStop = { [unowned self] in kafka.crash() }
        process.didEnd = { [unowned self] in letGo() }
        process.kill(afterEffects: count)
        guard count == 0 else { return }
        kafka.crash()
        process.die()
        letGo()
    }

    private func letGo() {
        for index in shards.indices {
            shared.occupancy?.part(shard: index)
            shards[index].runtime = nil
        }
        didEnd()
    }

    /// Runs no turn for that long.
    package func pause(nanos: UInt64) {
        kafka.pause()
        process.pause(nanos: nanos)
        system.after(nanos: nanos) { [weak self] in self?.kafka.goOn() }
    }

    /// Reads no more, finishes and commits its open work, leaves the group, and ends.
    package func leave(_ done: @escaping (_ isDrained: Bool) -> Void) {
        guard !isLeaving, shards.contains(where: { $0.runtime != nil }) else { return }
        isLeaving = true
        let seconds = configuration.drainSeconds
        let endNanos = process.nowNanos &+ UInt64(max(0, seconds) * 1_000_000_000)
        // All shards settle before the first leaves: a commit is refused while a member leaves.
        ofEach({ $0.settle(seconds: seconds - min(2.5, seconds / 2), $1) }) { seat, isSettled in
            seat.ofEach({ $0.leave(untilNanos: endNanos, $1) }) { seat, hasLeft in
                seat.forEachRuntime { $0.shut() }
                seat.letGo()
                seat.system.after(nanos: 0) {
                    seat.kafka.crash()
                    seat.process.die()
                    done(isSettled && hasLeft)
                }
            }
        }
    }

    /// Takes a step in each shard; afterwards `then`, outside of all turns.
    private func ofEach(
        _ step: @escaping (ShardRuntime, @escaping (Bool) -> Void) -> Void,
        then: @escaping (WorkerSeat, _ isDrained: Bool) -> Void
    ) {
        var left = shards.count { $0.runtime != nil }
        var isDrained = true
        forEachRuntime { runtime in
            step(runtime) { [system] isDone in
                isDrained = isDrained && isDone
                left -= 1
                guard left == 0 else { return }
                system.after(nanos: 0) { [weak self] in
                    guard let self, !process.isDead else { return }
                    then(self, isDrained)
                }
            }
        }
    }
}

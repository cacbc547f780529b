import EventLoop
import KafkaModel
import SimulatedSystem
import Telemetry
import Worker

/// A worker of the world: a process with one shard, as `carillon run` starts it.
final class WorkerSeat {
    let name: String
    let process: SimulatedProcess
    let loop: Loop
    private(set) var runtime: ShardRuntime?
    /// It hands over and ends.
    private(set) var isLeaving = false
    /// A Kafka client of it failed for good.
    private(set) var hasFailed = false
    private let kafka: ModelHost
    private let registry = MetricsRegistry()
    private let system: SimulatedSystem

    init(
        _ process: SimulatedProcess, system: SimulatedSystem, configuration: Configuration, kafka: ModelHost,
        story: Story
    ) throws {
        let name = process.name
        self.name = name
        self.system = system
        self.process = process
        self.kafka = kafka
        loop = try process.makeLoop(name)
        // The world has one thread.
        nonisolated(unsafe) let (story, seat) = (story, Unowned(nil as WorkerSeat?))
        let log = Log(level: .debug) { line in story.tell("\(name) says: \(Self.text(line))") }
        let shared = ProcessShared(shardCount: 1, seed: system.random.next())
        var fault: StartFault?
        process.run(on: loop) {
            do throws(StartFault) {
                runtime = try ShardRuntime(
                    index: 0, loop: loop, configuration: configuration, registry: registry, log: log,
                    beat: Heartbeat(), shared: shared, kafka: ModelClients(kafka),
                    onFatal: { seat.value?.hasFailed = true })
            } catch {
                fault = error
            }
        }
        seat.value = self
        if let fault { throw fault }
    }

    private final class Unowned<Value: AnyObject> {
        weak var value: Value?
        init(_ value: Value?) { self.value = value }
    }

    /// A line of the worker's log without its time, which is the real one.
    private static func text(_ line: [UInt8]) -> String {
        let mark = Array(",\"level\":".utf8)
        let start = line.indices.first { line[$0...].starts(with: mark) } ?? 0
        return String(decoding: line[start...].dropFirst(mark.count).dropLast(2), as: UTF8.self)
    }

    /// What it still holds.
    var leftovers: [(part: String, count: Int)] {
        guard let runtime else { return [] }
        var left: [(part: String, count: Int)] = []
        process.run(on: loop) { left = runtime.leftovers }
        return left
    }

    /// Ends without notice: now, or after that many more calls that leave the process.
    func crash(afterEffects count: Int = 0) {
        process.didStop = { [unowned self] in kafka.crash() }
        process.didEnd = { [unowned self] in runtime = nil }
        process.kill(afterEffects: count)
        guard count == 0 else { return }
        kafka.crash()
        process.die()
        runtime = nil
    }

    /// Runs no turn for that long.
    func pause(nanos: UInt64) {
        kafka.pause()
        process.pause(nanos: nanos)
        system.after(nanos: nanos) { [weak self] in self?.kafka.goOn() }
    }

    private func inNextTurn(_ body: @escaping (WorkerSeat) -> Void) {
        system.after(nanos: 0) { [weak self] in
            guard let self, !process.isDead else { return }
            process.run(on: loop) { body(self) }
        }
    }

    /// Reads no more, finishes and commits its open work, leaves the group, and ends.
    func leave(_ done: @escaping (_ isWell: Bool) -> Void) {
        guard let runtime, !isLeaving else { return }
        isLeaving = true
        process.run(on: loop) {
            runtime.settle(seconds: 10) { [unowned self] isSettled in
                inNextTurn { seat in
                    runtime.leave { hasLeft in
                        seat.inNextTurn { seat in
                            runtime.shut()
                            seat.runtime = nil
                            seat.system.after(nanos: 0) {
                                seat.kafka.crash()
                                seat.process.die()
                                done(isSettled && hasLeft)
                            }
                        }
                    }
                }
            }
        }
    }
}

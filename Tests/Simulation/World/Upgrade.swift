// SPDX-License-Identifier: Apache-2.0
import EventLoop
import KafkaModel
import RedisModel
import SimulatedFleet
import SimulatedSystem

/// A rolling upgrade: each worker that starts is of this version or of a later one. After the traffic all become the later one,
/// because records may wait for it.
final class Upgrade {
    private unowned let world: World
    /// Numbers of its own: the seeds keep the rest of their worlds.
    private var random: SmallRandom
    private var isComplete = false
    private static let second: UInt64 = 1_000_000_000

    init(_ world: World) {
        self.world = world
        random = SmallRandom(seed: world.plan.seed ^ 0x1A7E)
    }

    /// The translation of a worker that starts now; nil: it is of this version.
    func translation() -> (any RecordTranslation)? {
        isComplete || random.next(in: 0...1) == 0 ? LaterVersion(seed: random.next()) : nil
    }

    /// Once a second, until the upgrade is complete: the later version adds to keys.
    func addToKeys() {
        if isComplete { return }
        let names = world.redis.snapshots.flatMap(\.keyNames)
        LaterVersion.addToKeys(names, { world.redis.command($0) }, random: &random)
        world.system.after(nanos: Self.second) { [weak self] in self?.addToKeys() }
    }

    func complete() {
        isComplete = true
        world.story.tell("all workers become the later version")
        replaceNext()
    }

    /// The next worker of this version that runs ends, and one of the later version begins.
    private func replaceNext() {
        let earlier = world.workers.filter { !$0.process.isDead && $0.kafka.translation == nil }
        if earlier.isEmpty { return }
        if let worker = earlier.first(where: { !$0.isLeaving && !$0.process.isPaused }) {
            worker.leave { _ in }
            try? world.startWorker()
        }
        world.system.after(nanos: Self.second) { [weak self] in self?.replaceNext() }
    }
}

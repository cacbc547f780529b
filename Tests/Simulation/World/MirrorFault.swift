// SPDX-License-Identifier: Apache-2.0
import SimulatedFleet
import SimulatedSystem

/// A move of all workers to a mirrored Kafka cluster, as docs/operations.md says, with or without a Redis from a backup.
final class MirrorFault {
    private unowned let world: World
    private let system: SimulatedSystem
    private let kafka: KafkaFaults
    private let redis: RedisFaults
    /// The next step; nil: no move is in progress.
    private var next: (() -> Void)?
    private var stepNumber = 0
    private var moveNumber = 0
    private static let second: UInt64 = 1_000_000_000

    init(_ world: World, _ kafka: KafkaFaults, _ redis: RedisFaults) {
        self.world = world
        system = world.system
        self.kafka = kafka
        self.redis = redis
    }

    /// In some worlds the Redis is lost too, and was saved some time before.
    func begin() {
        guard next == nil else { return }
        moveNumber += 1
        guard system.choice(3) == 0 else { return stop(restore: nil) }
        world.story.tell("Redis saves a backup")
        let knew = world.hasCommittedStates
        let restore = redis.save()
        // The backup does not know that a phone changed hands.
        world.traffic.switchAccount()
        later(2 * Self.second...10 * Self.second) { [self] in
            stop { [self] in
                restore()
                world.moves.didRestore(knewCluster: knew)
            }
        }
    }

    /// All later steps happen now.
    func heal() { while next != nil { goOn() } }

    private func later(_ nanos: ClosedRange<UInt64>, _ body: @escaping () -> Void) {
        stepNumber += 1
        let number = stepNumber
        next = body
        system.after(nanos: system.number(nanos)) { [weak self] in if self?.stepNumber == number { self?.goOn() } }
    }

    private func goOn() {
        let body = next
        next = nil
        body?()
    }

    /// The first cluster is lost, or the operator ends the workers first.
    private func stop(restore: (() -> Void)?) {
        let isPlanned = system.choice(2) == 0
        world.story.tell("fault: all workers \(isPlanned ? "are told to end" : "end"), and move to a mirror of Kafka")
        let running = world.running.map(\.name)
        world.isMoving = true
        world.moves.didStop(system.nowNanos)
        for worker in world.workers where !worker.process.isDead {
            if isPlanned, running.contains(worker.name) {
                worker.leave { [weak world] isDrained in if !isDrained { world?.allowance.isMovedInPeace = false } }
            } else {
                crash(worker)
            }
        }
        later(isPlanned ? Self.second...30 * Self.second : 1...5 * Self.second) { [self] in move(isPlanned, restore) }
    }

    private func crash(_ worker: WorkerSeat) {
        world.allowance.isMovedInPeace = false
        worker.crash()
    }

    private func move(_ isPlanned: Bool, _ restore: (() -> Void)?) {
        for worker in world.workers where !worker.process.isDead { crash(worker) }
        let missing = world.move(to: mirror(mayMiss: !isPlanned && system.choice(2) == 0))
        kafka.didMove(lacking: missing)
        if !missing.isEmpty { world.story.tell("the mirror lacks \(missing.sorted().joined(separator: ", "))") }
        if let restore {
            world.allowance.isMovedInPeace = false
            restore()
        }
        later(1...5 * Self.second) { [self] in world.startAgain() }
    }

    /// Records that were deleted before were not mirrored, and the mirror may have been in use before.
    private func mirror(mayMiss: Bool) -> Mirror {
        let system = system
        var mirror = Mirror(clusterID: "mirror-\(moveNumber)")
        mirror.copiesMetadata = system.choice(2) == 0
        if system.choice(2) == 0 { mirror.firstOffset = { _, _ in Int64(system.choice(3000)) } }
        if mayMiss { mirror.missingCount = { topic, _ in topic == World.userState ? 0 : system.choice(4) } }
        // The recipe says: no offsets of user state.
        let translatesAll = system.choice(2) == 0
        mirror.lag = { topic, _ in topic == World.userState && !translatesAll ? nil : system.choice(6) }
        world.story.tell(
            "\(mirror.clusterID) has the group's offsets\(translatesAll ? "" : ", but for user state")"
                + (mirror.copiesMetadata ? ", with the metadata of the former ones" : ""))
        return mirror
    }
}

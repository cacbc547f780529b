// SPDX-License-Identifier: Apache-2.0
import HTTP2
import SimulatedFleet
import SimulatedSystem
import Simulator

/// What goes wrong in a run, when, and how it is made right again. A new kind of fault is a case of `FaultKind` and a
/// case of `strike`.
final class Faults {
    private unowned let world: World
    private let system: SimulatedSystem
    private let kafka: KafkaFaults
    private let redis: RedisFaults
    private static let second: UInt64 = 1_000_000_000

    init(_ world: World) {
        self.world = world
        system = world.system
        kafka = KafkaFaults(world)
        redis = RedisFaults(world)
    }

    /// Plans the faults; each strikes in the time of the traffic.
    func begin() {
        var (hidesRedis, movesPartitions) = (false, false)
        for _ in 0..<world.plan.faultCount {
            guard let kind = world.plan.faults.isEmpty ? nil : world.plan.faults[system.choice(world.plan.faults.count)]
            else { return }
            world.allowance.mayRepeat = world.allowance.mayRepeat || kind.mayRepeat
            world.allowance.mayReorder = world.allowance.mayReorder || kind.mayReorder
            world.allowance.mayMiscount = world.allowance.mayMiscount || kind.mayMiscount
            hidesRedis = hidesRedis || kind.mayHideRedis
            movesPartitions = movesPartitions || kind.mayMovePartitions
            if kind == .redisFull || kind == .redisRefusal { world.allowance.refusesWrites = true }
            if kind.mayDelay { world.allowance.slackNanos = 150 * Self.second }
            system.after(nanos: system.number(2 * Self.second...4 * Self.second + world.plan.trafficNanos)) { [self] in
                strike(kind)
            }
        }
        if hidesRedis && movesPartitions { world.allowance.mayMiscount = true }
    }

    /// All servers answer and all links carry again.
    func heal() {
        world.apns.set(Scenario())
        kafka.heal()
        redis.heal()
        for worker in world.workers {
            worker.process.setWall(aheadMs: 0)
            for address in world.redis.addresses + [APNsSeat.address] {
                let path = system.network.path(from: worker.process.host, to: address)
                path.heldUntilNanos = 0
                path.refusesUntilNanos = 0
            }
        }
    }

    private func strike(_ kind: FaultKind) {
        switch kind {
        case .crash: crash()
        case .pause: pause()
        case .restart: restart()
        case .join: join()
        case .redisLink: link(someRedis, "Redis")
        case .apnsLink: link(APNsSeat.address, "APNs")
        case .apnsAnswers: answers()
        case .apnsGoAway:
            world.story.tell("fault: APNs sends GOAWAY")
            world.apns.goAway()
        case .clock: clock()
        case .kafkaBrokers: kafka.brokers()
        case .kafkaGroup: kafka.group()
        case .kafkaWrites: kafka.writes()
        case .kafkaRefusal: kafka.refusal()
        case .kafkaSlowness: kafka.slowness()
        case .kafkaProducer: if let worker = someWorker() { kafka.failProducer(of: worker.kafka, worker.name) }
        case .kafkaRetention: kafka.retain()
        case .kafkaRecreation: kafka.recreate()
        case .redisRestart: redis.restart()
        case .redisOlderData: redis.olderData()
        case .redisFailover: redis.failOver()
        case .redisFull: redis.fill()
        case .redisRefusal: redis.refuse()
        case .redisSlowness: redis.slow()
        case .redisSlots: redis.moveSlots()
        case .reload: world.reload()
        case .clockJump: clockJump()
        }
    }

    /// Writes that Redis has lost so far.
    var losses: [Loss] { redis.losses }
    func isOfEarlierTopic(_ topic: String, _ partition: Int32, _ offset: Int64) -> Bool {
        topic == "im.events" && kafka.isOfEarlierTopic(Int(partition), offset)
    }

    /// Events that Kafka has dropped, perhaps before a worker read them.
    var lostEvents: Set<String> { kafka.lostEvents }

    private var someRedis: String { world.redis.addresses[system.choice(world.redis.addresses.count)] }

    private func someWorker() -> WorkerSeat? {
        let running = world.running
        return running.isEmpty ? nil : running[system.choice(running.count)]
    }

    // MARK: Workers

    private func crash() {
        guard let worker = someWorker() else { return }
        let effects = system.choice(20)
        world.story.tell("fault: \(worker.name) ends after \(effects) more calls")
        worker.crash(afterEffects: effects)
        startLater()
    }

    private func startLater() {
        system.after(nanos: system.number(0...20 * Self.second)) { [weak world] in try? world?.startWorker() }
    }

    private func pause() {
        guard let worker = someWorker() else { return }
        let nanos = system.number(Self.second...90 * Self.second)
        world.story.tell("fault: \(worker.name) does not run for \(nanos / 1_000_000) ms")
        worker.pause(nanos: nanos)
    }

    private func restart() {
        guard let worker = someWorker() else { return }
        world.story.tell("\(worker.name) is told to end")
        worker.leave { [weak world] isWell in
            world?.story.tell("\(worker.name) has ended, \(isWell ? "drained" : "not drained")")
        }
        startLater()
    }

    private func join() { try? world.startWorker() }

    private func clock() {
        guard let worker = someWorker() else { return }
        let ahead = Int64(system.number(0...80_000)) - 40_000
        world.story.tell("fault: the clock of \(worker.name) is \(ahead) ms ahead")
        worker.process.setWall(aheadMs: ahead)
    }

    /// It jumps by 6 to 60 minutes, and back.
    private func clockJump() {
        guard let worker = someWorker() else { return }
        let ms = Int64(system.number(360_000...3_600_000)) * (system.choice(2) == 0 ? 1 : -1)
        let nanos = system.number(Self.second...60 * Self.second)
        world.story.tell("fault: the clock of \(worker.name) jumps by \(ms) ms for \(nanos / 1_000_000) ms")
        worker.process.setWall(aheadMs: ms)
        system.after(nanos: nanos) { worker.process.setWall(aheadMs: 0) }
    }

    // MARK: Links

    private func link(_ address: String, _ server: String) {
        guard let worker = someWorker() else { return }
        let host = worker.process.host
        let path = system.network.path(from: host, to: address)
        let nanos = system.number(10_000_000...30 * Self.second)
        switch system.choice(4) {
        case 0:
            world.story.tell("fault: the links of \(worker.name) to \(server) break")
            system.network.cut(to: address, from: host)
        case 1:
            world.story.tell("fault: \(server) refuses \(worker.name) for \(nanos / 1_000_000) ms")
            path.refusesUntilNanos = system.nowNanos &+ nanos
            system.network.cut(to: address, from: host)
        case 2:
            world.story.tell("fault: nothing passes between \(worker.name) and \(server) for \(nanos / 1_000_000) ms")
            path.heldUntilNanos = system.nowNanos &+ nanos
        default:
            world.story.tell("fault: the way from \(worker.name) to \(server) is slow for \(nanos / 1_000_000) ms")
            path.delayNanos = 1_000_000...system.number(2_000_000...1_000_000_000)
            system.after(nanos: nanos) { path.delayNanos = NetworkPath.usualDelayNanos }
        }
    }

    // MARK: APNs

    private func answers() {
        let cases: [(String, ScenarioAction)] = [
            ("429", .answer(ScenarioAnswer(429, "TooManyRequests"))),
            ("500", .answer(ScenarioAnswer(500, "InternalServerError"))),
            ("503", .answer(ScenarioAnswer(503, "ServiceUnavailable"))),
            ("a refused stream", .reset(.refusedStream)),
        ]
        let (name, action) = cases[system.choice(cases.count)]
        var match = ScenarioRule.Match()
        match.share = Double(system.number(5...100)) / 100
        let nanos = system.number(100_000_000...20 * Self.second)
        world.story.tell(
            "fault: APNs answers \(name) to \(Int((match.share ?? 1) * 100)) of 100 for \(nanos / 1_000_000) ms")
        world.apns.set(Scenario(rules: [ScenarioRule(match, action)], seed: system.random.next()))
        system.after(nanos: nanos) { [weak world] in world?.apns.set(Scenario()) }
    }
}

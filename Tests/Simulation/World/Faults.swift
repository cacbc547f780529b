// SPDX-License-Identifier: Apache-2.0
import HTTP2
import RedisModel
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
    private let mirror: MirrorFault
    private static let second: UInt64 = 1_000_000_000

    init(_ world: World) {
        self.world = world
        system = world.system
        kafka = KafkaFaults(world)
        redis = RedisFaults(world)
        mirror = MirrorFault(world, kafka, redis)
    }

    /// Plans the faults; each strikes in the time of the traffic.
    func begin() {
        if world.plan.kinds.contains(.throttles) { throttleLater() }
        // Workers of both versions begin, whether or not one of them is replaced before the end.
        var kinds = Set(world.plan.faults.filter { $0 == .upgrade })
        for _ in 0..<world.plan.faultCount {
            guard let kind = world.plan.faults.isEmpty ? nil : world.plan.faults[system.choice(world.plan.faults.count)]
            else { return }
            kinds.insert(kind)
            system.after(nanos: system.number(2 * Self.second...4 * Self.second + world.plan.trafficNanos)) { [self] in
                strike(kind)
            }
        }
        allow(kinds)
        world.allowance.mayLoseDeliveries =
            world.plan.faults.contains(.kafkaRefusal) && world.plan.faults.contains(where: \.mayMovePartitions)
    }

    private func allow(_ kinds: Set<FaultKind>) {
        if kinds.isEmpty { return }
        world.allowance.isCalm = false
        world.allowance.mayRepeat = kinds.contains(where: \.mayRepeat)
        world.allowance.isMovedInPeace =
            kinds.contains(.kafkaMirror) && !kinds.contains { $0.mayRepeat && $0 != .kafkaMirror }
        world.allowance.mayMiscount =
            kinds.contains(where: \.mayMiscount)
            || kinds.contains(where: \.mayHideRedis) && kinds.contains(where: \.mayMovePartitions)
        world.allowance.mayLackNumbers = kinds.contains(where: \.mayLackNumbers)
        world.allowance.mayWait = kinds.contains(where: \.mayWait)
        if kinds.contains(where: \.mayDelay) { world.allowance.slackNanos = 150 * Self.second }
    }

    /// All servers answer and all links carry again.
    func heal() {
        if !rules.isEmpty {
            rules.removeAll()
            setRules()
        }
        mirror.heal()
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
        case .restart, .upgrade: restart()
        case .join: join()
        case .redisLink: link(someRedis, "Redis")
        case .apnsLink: link(APNsSeat.address, "APNs")
        case .apnsAnswers: refuse()
        case .apnsTokens: killToken()
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
        case .kafkaMirror: mirror.begin()
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

    /// Whether each worker that had to end drained first.
    private(set) var haveDrained = true

    /// What APNs answered by fault.
    private(set) var answers: [AnswerPeriod] = []

    /// Whether counts may be lost with the partitions that went while the slot of the statistics moved.
    var mayMiscount: Bool { redis.movesStatistics && world.plan.faults.contains(where: \.mayMovePartitions) }

    /// Violations that the faults themselves found.
    var violations: [Violation] { redis.violations }

    /// Writes that Redis has lost so far.
    var losses: [Loss] { redis.losses }

    /// When a Redis server refused writes, as far as it accepts them again.
    var refusals: [ClosedRange<UInt64>] { redis.refusals }

    /// Moves of slots, with the users and tokens of the traffic that have keys there.
    var slotMoves: [SlotMove] {
        let tags = Set(
            world.traffic.states.flatMap { state in
                ["\(state.app):\(state.uid)"] + (state.token.map { ["\(state.app):\($0)"] } ?? [])
            })
        return redis.slotMoves.map { move in
            SlotMove(
                nanos: move.nanos, tags: tags.filter { move.slots.contains(ClusterModel.slot(of: "{\($0)}")) })
        }
    }

    var replacedMasters: [ClosedRange<UInt64>] { redis.replacedMasters }

    func isOfEarlierTopic(_ topic: String, _ partition: Int32, _ offset: Int64) -> Bool {
        topic == "im.events" && kafka.isOfEarlierTopic(Int(partition), offset)
    }

    /// So many events belonged to a topic that is no more.
    var earlierEvents: Int { kafka.earlierEvents }

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
        worker.leave { [weak world, weak self] isDrained in
            self?.haveDrained = isDrained && self?.haveDrained ?? true
            world?.story.tell("\(worker.name) has ended, \(isDrained ? "drained" : "not drained")")
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

    private func refuse() {
        let cases: [(String, ScenarioAction, AnswerPeriod?)] = [
            ("429", .answer(ScenarioAnswer(429, "TooManyRequests")), period(429)),
            ("429 with Retry-After", retryLater(429, "TooManyRequests", 2), period(429, 2)),
            ("429 with a longer Retry-After", retryLater(429, "TooManyRequests", 12), period(429, 12)),
            ("500", .answer(ScenarioAnswer(500, "InternalServerError")), period(500)),
            ("503", .answer(ScenarioAnswer(503, "ServiceUnavailable")), period(503)),
            ("503 with Retry-After", retryLater(503, "ServiceUnavailable", 3), period(503, 3)),
            ("a refused stream", .reset(.refusedStream), nil),
            ("late", late(), nil),
        ]
        let (name, action, period) = cases[system.choice(cases.count)]
        var match = ScenarioRule.Match()
        match.share = Double(system.number(5...100)) / 100
        let nanos = system.number(100_000_000...20 * Self.second)
        world.story.tell(
            "fault: APNs answers \(name) to \(Int((match.share ?? 1) * 100)) of 100 for \(nanos / 1_000_000) ms")
        add(ScenarioRule(match, action), for: nanos)
        if var period {
            period.toNanos = system.nowNanos &+ nanos &+ Self.second
            answers.append(period)
        }
    }

    /// APNs makes both apps wait for 11 s, which is long enough to be parked. For one of them this lasts until the end, and that app
    /// has a flood of messages.
    private func throttleLater() {
        (world.allowance.isCalm, world.allowance.mayWait) = (false, true)
        world.allowance.isOnlyThrottled = true
        system.after(nanos: system.number(5 * Self.second...8 * Self.second)) { [self] in
            let seconds = system.number(2...5)
            world.story.tell("APNs answers 429 with Retry-After to im for \(seconds) s, and to shop until the end")
            world.traffic.flood("shop", count: 120)
            for (app, nanos) in [("im", seconds * Self.second), ("shop", nil)] {
                var match = ScenarioRule.Match()
                match.topic = Array("com.example.\(app)".utf8)
                var period = period(429, 11)
                period.app = app
                if let nanos { period.toNanos = system.nowNanos &+ nanos }
                answers.append(period)
                add(ScenarioRule(match, retryLater(429, "TooManyRequests", 11)), for: nanos)
            }
        }
    }

    private func period(_ status: Int, _ retryAfter: Int? = nil) -> AnswerPeriod {
        AnswerPeriod(fromNanos: system.nowNanos, toNanos: .max, status: status, retryAfterSeconds: retryAfter)
    }

    private func retryLater(_ status: Int, _ reason: String, _ seconds: Int) -> ScenarioAction {
        var answer = ScenarioAnswer(status, reason)
        answer.retryAfterSeconds = seconds
        return .answer(answer)
    }

    /// It takes its time, though less than a worker waits.
    private func late() -> ScenarioAction {
        var answer = ScenarioAnswer()
        answer.delayMs = Int64(system.number(200...4000))
        // The ledger has a request with its answer: it left before.
        world.allowance.slackNanos = max(world.allowance.slackNanos, 6 * Self.second)
        return .answer(answer)
    }

    /// APNs says that a token is dead, for the rest of the traffic.
    private func killToken() {
        let binds = world.traffic.states.filter { $0.tokenType == .alert }
        guard !binds.isEmpty else { return }
        let bind = binds[system.choice(binds.count)]
        let token = bind.token ?? ""
        guard !answers.contains(where: { $0.token == token }) else { return }
        var period = AnswerPeriod(fromNanos: system.nowNanos, toNanos: .max, status: 410, token: token)
        var answer = ScenarioAnswer(410, "Unregistered")
        switch system.choice(5) {
        case 0: answer = ScenarioAnswer(400, "BadDeviceToken")
        case 1: answer = ScenarioAnswer(400, "DeviceTokenNotForTopic")
        case 2: period.timestampMs = bind.sentMs - 5000
        case 3: period.timestampMs = system.wallMs
        default: break
        }
        answer.timestampMs = period.timestampMs
        period.status = answer.status
        answers.append(period)
        var match = ScenarioRule.Match()
        match.tokenPrefix = Array(token.utf8)
        world.story.tell("fault: APNs answers \(answer.status) to …\(token.suffix(4))")
        add(ScenarioRule(match, .answer(answer)), for: nil)
    }

    /// The rules at APNs by their number.
    private var rules: [Int: ScenarioRule] = [:]
    private var ruleNumber = 0

    /// - Parameter nanos: nil: until the end of the traffic.
    private func add(_ rule: ScenarioRule, for nanos: UInt64?) {
        ruleNumber += 1
        let number = ruleNumber
        rules[number] = rule
        setRules()
        guard let nanos else { return }
        system.after(nanos: nanos) { [weak self] in
            self?.rules[number] = nil
            self?.setRules()
        }
    }

    private func setRules() {
        var sorted = rules.sorted { $0.key < $1.key }.map(\.value)
        if world.plan.kit != nil { sorted = Episode.answers(originMs: world.plan.originMs) + sorted }
        world.apns.set(Scenario(rules: sorted, seed: system.random.next()))
    }
}

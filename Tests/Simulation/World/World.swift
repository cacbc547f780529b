// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Kafka
import KafkaModel
import SimulatedFleet
import SimulatedSystem
import Simulator
import Telemetry
import Worker

/// One run: a fleet of real workers with modelled servers around them, in one thread and in virtual time.
public final class World {
    let plan: Plan
    let system: SimulatedSystem
    public let story: Story
    let redis: RedisFleet
    let kafka: KafkaModel
    let apns: APNsSeat
    private(set) var workers: [WorkerSeat] = []
    private(set) var traffic: Traffic
    private var configuration: Configuration
    private var observer: Observer
    private var gateways: Gateways?
    private var workerNumber = 0
    /// Of workers with a `group.instance.id`: one that starts in place of another has its number.
    private var instances: [String: Int] = [:]
    private var faults: Faults?
    /// Nil: all workers are of this version.
    private lazy var upgrade = plan.faults.contains(.upgrade) ? Upgrade(self) : nil
    private var stranded: [Violation] = []
    private var commits = CommitJudge()
    private var bounds: BoundsJudge
    var moves = MoveJudge()
    /// All workers have ended, and none starts before Kafka's topics are in another cluster.
    var isMoving = false
    /// If Kafka had more, the topics may have new records.
    private var kafkaRunsSeen = 0
    private var looks = 0
    private var isTrafficOver = false
    /// What the faults of this run allow.
    var allowance = Allowance()
    private var casts: [Cast] = []
    /// In a world.
    private static let episodesMax = 16
    /// What was judged.
    private(set) var evidence: Evidence?

    static let group = "carillon"
    static let userState = "im.user-state"
    private static let readTopics = ["im.events", userState, "carillon.chunks", "carillon.parked"]
    private static let second: UInt64 = 1_000_000_000

    init(_ plan: Plan, _ key: SimulatedKey, keepsLog: Bool, message: String?) throws {
        self.plan = plan
        let system = SimulatedSystem(seed: plan.seed, originMs: plan.originMs)
        self.system = system
        let story = Story(keeps: keepsLog, message: message) { system.nowNanos }
        self.story = story
        redis = RedisFleet(system, plan.redis, seed: plan.seed)
        var configuration = try key.configuration(
            apps: plan.allApps.map { $0.text(key) }.joined(),
            lines: """
                state_results: true
                planner: {direct_max: \(Plan.directMax)}
                window: {records: \(plan.windowRecords)}
                """)
        configuration.redis.topology = try redis.topology()
        configuration.shards = plan.shardsPerWorker
        if plan.group == .cooperative {
            configuration.kafka.options["partition.assignment.strategy"] = "cooperative-sticky"
        }
        self.configuration = configuration
        let kafka = KafkaModel(system, partitions: Int(plan.partitions), brokers: 3)
        self.kafka = kafka
        if plan.faults.contains(.kafkaMirror) {
            // The first cluster is old: records were deleted.
            for topic in Self.readTopics {
                for partition in 0..<Int(plan.partitions) {
                    let count = Int64(system.choice(2000))
                    kafka.skipOffsets(topic, partition, count: count)
                    kafka.trim(topic, partition, to: count)
                }
            }
        }
        kafka.log = { story.tell("Kafka: \($0)") }
        apns = try APNsSeat(
            system, topics: plan.allApps.map { "com.example.\($0.id)" }, key: key.key,
            scenario: Scenario(rules: plan.kit == nil ? [] : Episode.answers(originMs: plan.originMs), seed: plan.seed))
        traffic = Traffic(plan, system: system, story: story) { written in
            let key = Array(written.key.utf8)
            let partition =
                (kafka.partition(of: key, in: written.topic) + written.partitionsOn) % Int(plan.partitions)
            let record = ModelRecord(key: key, value: Array(written.value.utf8), createdMs: written.createdMs)
            let offset = kafka.append(record, to: written.topic, partition) ?? -1
            if written.endsTransaction { kafka.skipOffsets(written.topic, partition, count: 1) }
            return (Int32(partition), offset)
        }
        bounds = BoundsJudge(plan)
        observer = Observer(story: story, partitions: Int(plan.partitions))
        kafka.didCommit = { [unowned self] in didCommit($0, $1, $2) }
        system.didTurn = { [unowned self] in if $0 != "apns" { bounds.didTurn($0, bytes: $1) } }
    }

    /// Runs to the end and judges.
    func run() throws -> [Violation] {
        story.tell(plan.text)
        for _ in 0..<plan.workers { try startWorker() }
        traffic.begin()
        for group in traffic.groups {
            redis.command(["HSET", "g:{\(group.app):\(group.id)}"] + group.levels.flatMap { [$0.uid, "\($0.level)"] })
        }
        let gateways = Gateways(traffic, system: system, story: story) { [redis] in redis.command($0) }
        self.gateways = gateways
        if plan.kinds.contains(.presence) {
            gateways.begin()
            observer.didDeliver = { [weak gateways] in gateways?.deliver($0) }
        }
        observer.didPush = { [weak self] push in
            if self?.isTrafficOver == false { self?.traffic.didArrive(push) }
        }
        watch()
        let faults = Faults(self)
        self.faults = faults
        faults.begin()
        upgrade?.addToKeys()
        system.run(nanos: max(5 * Self.second + plan.trafficNanos, playEpisodes()))
        faults.heal()
        gateways.end()
        isTrafficOver = true
        upgrade?.complete()
        story.tell("the traffic has ended, and all that was wrong is right again")
        if workers.allSatisfy({ $0.process.isDead || $0.isLeaving }) { try startWorker() }
        guard comesToRest("after the traffic") else { return finish() }
        // Claims that Redis refused are stored within this time. A master that is replaced refuses them too.
        if !faults.refusals.isEmpty || plan.faults.contains(.redisFailover) { system.run(nanos: 7 * Self.second) }
        traffic.probe()
        guard comesToRest("after the last messages") else { return finish() }
        return finish()
    }

    // MARK: Episodes

    /// When the wall clocks of a world of long lives go forward.
    private static let leapNanos = 30 * second

    /// Begins some of them. Returns when the last record of them is written.
    private func playEpisodes() -> UInt64 {
        guard let kit = plan.kit else { return 0 }
        var random = SmallRandom(seed: plan.seed ^ 0xE815)
        let fitting = (plan.leapHours == nil ? Episode.all : Episode.long).filter { episode in
            episode.fits(kit, plan.boundarySeconds) && (kit.burstTenths == 0 || episode.isOfBursts)
        }
        var end: UInt64 = 0
        if let hours = plan.leapHours {
            system.after(nanos: Self.leapNanos) { [system, kafka] in
                system.leap(ms: hours * 3_600_000)
                kafka.settings.wallOriginMs += hours * 3_600_000
            }
        }
        let channel = apns.makeChannel(of: "com.example.\(Episode.app)")
        let chosen =
            plan.episodes.isEmpty
            ? Array(
                (fitting.filter { !$0.isUsual }.shuffled(using: &random)
                    + fitting.filter(\.isUsual).shuffled(using: &random)).prefix(Self.episodesMax))
            : fitting.filter { plan.episodes.contains($0.name) }
        for episode in chosen {
            let start = random.next(in: 6 * Self.second...9 * Self.second)
            let cast = Cast(
                episode.name, uid: "k\(casts.count + 1)", app: kit, channel: channel, traffic, startNanos: start,
                leap: plan.leapHours.map { (Self.leapNanos, $0) }
            ) { [redis] in redis.command($0) }
            story.tell("episode of \(cast.uid): \(episode.name)")
            episode.play(cast)
            casts.append(cast)
            end = max(end, cast.nanos)
        }
        return end == 0 ? 0 : end + Self.second
    }

    private var episodes: Episodes? {
        guard let kit = plan.kit, plan.faultCount == 0 else { return nil }
        return Episodes(
            app: kit, observed: observer.observed, claims: casts.map { ($0.name, $0.claims) })
    }

    // MARK: Workers

    func startWorker() throws {
        if isMoving { return }
        workerNumber += 1
        let name = "worker-\(workerNumber)"
        let system = system
        let process = system.makeProcess(name, host: "127.0.1.\(workerNumber % 250 + 1)")
        // The world has one thread.
        nonisolated(unsafe) let story = story
        nonisolated(unsafe) weak let world = self
        let log = Log(level: .debug) { line in
            let text = WorkerSeat.text(line)
            story.tell("\(name) says: \(text)")
            world?.didSay(text)
        }
        var configuration = configuration
        if plan.group == .named {
            let taken = Set(workers.filter { !$0.process.isDead }.compactMap { instances[$0.name] })
            let number = (1...).first { !taken.contains($0) } ?? 0
            instances[name] = number
            configuration.kafka.options["group.instance.id"] = "instance-\(number)"
        }
        let host = ModelHost(process, kafka, system: system)
        host.translation = upgrade?.translation()
        let worker = try WorkerSeat(
            process, system: system, configuration: configuration, kafka: host, log: log)
        workers.append(worker)
        story.tell("\(name) starts" + (host.translation == nil ? "" : " as a later version"))
    }

    /// The configuration changes; running workers learn it within seconds.
    func reload() {
        story.tell("fault: the configuration is read again: \(Reload(system: system).change(&configuration))")
        for worker in workers where !worker.process.isDead && !worker.isLeaving {
            system.after(nanos: system.number(0...2 * Self.second)) { [weak self] in
                guard let self else { return }
                worker.apply(configuration)
            }
        }
    }

    private func didSay(_ line: String) { moves.didSay(line, system.nowNanos) }

    /// Some user state is applied, and committed in the present cluster.
    var hasCommittedStates: Bool {
        (0..<Int(plan.partitions)).contains { kafka.committed(Self.group, Self.userState, $0) != nil }
    }

    /// The mirror takes the place of Kafka. Returns the events that it lacks.
    func move(to mirror: Mirror) -> Set<String> {
        observe()
        moves.didMove(system.nowNanos, knewCluster: hasCommittedStates)
        let logs = mirror.takePlace(of: kafka, topics: Self.readTopics, group: Self.group)
        func offset(_ topic: String, _ partition: Int32, _ former: Int64) -> Int64 {
            logs[topic]?[Int(partition)].offsets[former] ?? -1
        }
        var (sent, states) = (traffic.sent, traffic.states)
        for index in sent.indices.dropFirst(faults?.earlierEvents ?? 0) {
            sent[index].offset = offset("im.events", sent[index].partition, sent[index].offset)
        }
        for index in states.indices {
            states[index].offset = offset(Self.userState, states[index].partition, states[index].offset)
        }
        traffic.didMove(sent, states)
        commits.didMove()
        observer.didMove(Self.readTopics, kafka)
        return Set(logs.values.joined().flatMap(\.missing).flatMap { events(in: $0.value ?? []) })
    }

    /// The events that a lost record is about. Claims that Redis owes name their messages only.
    private func events(in value: [UInt8]) -> [String] {
        if let id = Observer.eventID(in: value) { return [id] }
        let head = JudgeJSON(Array(value.prefix { $0 != UInt8(ascii: "\n") }))
        guard head?["case"]?.text == "marks" else { return [] }
        let text = String(decoding: value, as: UTF8.self)
        return traffic.sent.filter {
            $0.app == head?["app"]?.text && $0.conversation == head?["conv"]?.text && text.contains($0.messageID)
        }.map(\.eventID)
    }

    /// After a move.
    func startAgain() {
        isMoving = false
        moves.didStart(system.nowNanos)
        for _ in 0..<plan.workers { try? startWorker() }
    }

    /// Workers that run.
    var running: [WorkerSeat] {
        workers.filter { !$0.process.isDead && !$0.process.isPaused && !$0.isLeaving }
    }

    // MARK: Rest

    /// Waits until nobody has work, for half an hour at most.
    private func comesToRest(_ when: String) -> Bool {
        // The longest wait is that of a background push for the next hour.
        for step in 1...39_000 {
            system.run(nanos: Self.second / 10)
            if isAtRest { return true }
            if step % 600 == 0 { acceptLostTokens() }
        }
        var left = workers.filter { !$0.process.isDead }.flatMap { worker in
            worker.leftovers.map { "\(worker.name) holds \($0.count) \($0.part)" }
        }
        left += openPartitions
        stranded.append(
            Violation(rule: "every wait ends", text: "\(when): \(left.joined(separator: ", "))", message: ""))
        return false
    }

    /// `carillon tokens accept`: after older data a small world may have so few keys that workers wait for its operator.
    private func acceptLostTokens() {
        guard workers.contains(where: { $0.status.contains(where: \.hasLostTokens) }) else { return }
        story.tell("the operator accepts that tokens are lost")
        redis.command(["SET", "c:w:{accepted}", "\(system.wallMs)", "EX", "86400"])
    }

    private var isAtRest: Bool {
        openPartitions.isEmpty
            && workers.allSatisfy { worker in
                worker.process.isDead || !worker.process.isPaused && !worker.isLeaving && worker.leftovers.isEmpty
            }
    }

    /// Partitions whose committed offset is not their end.
    private var openPartitions: [String] {
        var open: [String] = []
        for topic in Self.readTopics {
            for partition in 0..<Int(plan.partitions) {
                // A marker at the end is committed with the next record.
                let last = plan.kinds.contains(.transactions) ? kafka.records(topic, partition).last : nil
                let end = last.map { $0.offset + 1 } ?? kafka.range(topic, partition).upperBound
                let committed = kafka.committed(Self.group, topic, partition)?.offset ?? 0
                // Nobody reads records that the topic has dropped, or markers.
                let isEmpty = plan.kinds.contains(.transactions) && last == nil || kafka.range(topic, partition).isEmpty
                if isEmpty { continue }
                if last == nil ? committed != end : committed < end {
                    open.append("\(topic) \(partition) is committed to \(committed) of \(end)")
                }
            }
        }
        return open
    }

    // MARK: Observing

    private func watch() {
        observe()
        system.after(nanos: Self.second / 100) { [weak self] in self?.watch() }
    }

    private func observe() {
        if kafkaRunsSeen != kafka.runs {
            kafkaRunsSeen = kafka.runs
            observer.read(kafka, system.nowNanos)
        }
        observer.read(apns.takeRequests(), system.nowNanos)
        looks += 1
        guard looks.isMultiple(of: 10) else { return }
        for worker in workers where !worker.process.isDead {
            bounds.look(worker.name, worker.leftovers + [(BoundsJudge.impossible, worker.internalErrors)])
        }
    }

    private func didCommit(_ topic: String, _ partition: Int32, _ offset: Int64) {
        guard topic == "im.events" || topic == Self.userState else { return }
        // Of a topic that is no more.
        guard offset <= kafka.range(topic, Int(partition)).upperBound,
            faults?.isOfEarlierTopic(topic, partition, offset) != true
        else { return }
        observer.read(kafka, system.nowNanos)
        commits.didCommit(
            topic, partition, offset, sent: traffic.sent, states: traffic.states, observer.observed,
            lost: faults?.lostEvents ?? [])
    }

    private func finish() -> [Violation] {
        observe()
        let hour: Int64 = 3_600_000
        observer.readStatistics(
            apps: plan.apps.map(\.id), hours: (plan.originMs / hour - 1)...(system.wallMs / hour + 1)
        ) { [redis] in redis.command($0) }
        let sources = Judge.Sources(
            sent: traffic.sent, states: traffic.states, apps: plan.apps, groups: traffic.groups,
            moves: gateways?.moves ?? [], movesEndNanos: gateways?.endNanos ?? .max,
            leaseLosses: gateways?.leaseLosses ?? [], renewals: gateways?.renewals ?? [:], originMs: system.originMs,
            answers: faults?.answers ?? [])
        allowance.losses = faults?.losses ?? []
        allowance.refusals = faults?.refusals ?? []
        allowance.slotMoves = faults?.slotMoves ?? []
        allowance.replacedMasters = faults?.replacedMasters ?? []
        allowance.lostEvents = faults?.lostEvents ?? []
        allowance.mayMiscount = allowance.mayMiscount || faults?.mayMiscount ?? false
        allowance.hadOneProcess = workers.count == 1
        allowance.hadOneShard = allowance.hadOneProcess && plan.shardsPerWorker == 1
        allowance.hasOddTimes = plan.kinds.contains(.oddTimes)
        allowance.isDrainedWell =
            faults?.haveDrained ?? true
            && plan.faults.allSatisfy { !$0.mayRepeat || $0 == .restart || $0 == .join || $0 == .upgrade }
        allowance.clockSlackMs =
            plan.faults.contains(.clockJump) ? 3_600_000 : plan.faults.contains(.clock) ? 45_000 : 50
        allowance.unseenClockMs = plan.faults.contains(.clock) ? 45_000 : 0
        let observed = observer.observed.without(app: Episode.app)
        evidence = Evidence(sources: sources, observed: observed, allowance: allowance, episodes: episodes)
        moves.finish(
            // The last pushes of a former worker may arrive after its end. They are not answered.
            pushes: plan.faults.contains(.apnsLink)
                ? [] : observer.observed.pushes.lazy.filter(\.isAnswered).map(\.atNanos),
            mayBeOlder: plan.faults.contains { $0 == .redisOlderData || $0 == .redisFailover })
        var judge = Judge(sources, observed: observed, allowance: allowance)
        var violations = stranded + commits.violations.prefix(5) + bounds.violations + (faults?.violations ?? [])
        violations += metricViolations() + moves.violations + (evidence?.episodes?.violations ?? [])
        violations += judge.run()
        for violation in violations {
            story.tell("VIOLATION of “\(violation.rule)”: \(violation.text)", about: [violation.message])
        }
        story.tell("\(system.turns) turns, fingerprint \(String(system.fingerprint, radix: 16))")
        return violations
    }

    /// Violations in the workers' counts of odd records.
    private func metricViolations() -> [Violation] {
        var metrics = MetricsJudge(workers.map { $0.registry.exposition(of: MetricsJudge.names) })
        if !plan.faults.contains(where: { $0 == .kafkaRetention || $0 == .kafkaRecreation }) { metrics.checkGaps() }
        for topic in ["im.events", Self.userState] {
            metrics.checkOddTimes(topic, written: traffic.oddTimes[topic] ?? 0, hasLost: !allowance.lostEvents.isEmpty)
        }
        return metrics.violations
    }

    /// Lets go of everything.
    func end() {
        for worker in workers where !worker.process.isDead { worker.crash() }
        apns.end()
        kafka.end()
        system.end()
    }
}

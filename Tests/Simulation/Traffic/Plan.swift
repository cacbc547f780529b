// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// What the seed decides before anything runs: the sizes of the world and its settings.
public struct Plan: Sendable {
    public var seed: UInt64
    public var workers = 1
    public var partitions: Int32 = 2
    public var apps: [AppSettings] = [AppSettings(id: "im")]
    /// The app of the episodes.
    public var kit: AppSettings?
    /// All apps of the configuration.
    var allApps: [AppSettings] { apps + (kit.map { [$0] } ?? []) }
    /// A world of long lives has no traffic but episodes. In their middle all wall clocks go forward by so many hours.
    public var leapHours: Int64?
    /// The names of the episodes; empty: the seed chooses some.
    public var episodes: Set<String> = []
    public var usersPerApp = 4
    public var devicesMax = 2
    public var messages = 40
    /// The time in which the traffic comes.
    public var trafficNanos: UInt64 = 20_000_000_000
    public var kinds: Set<Kind> = Set(Kind.allCases)
    /// `window.records`: unsettled records of a partition.
    public var windowRecords = 20_000
    public var faults: [FaultKind] = []
    public var faultCount = 0
    public var redis = Redis.single
    public var group = Group.eager
    public var shardsPerWorker = 1

    /// How Redis is set up.
    public enum Redis: Equatable, Sendable {
        case single
        /// A master with two replicas, and three Sentinels.
        case sentinel
        /// Masters with a replica each.
        case cluster(masters: Int)
    }

    /// How the members of the Kafka group share the partitions.
    public enum Group: String, CaseIterable, Sendable {
        case eager
        case cooperative
        /// With a `group.instance.id`.
        case named
    }

    /// A part of the traffic that a smaller world can do without.
    public enum Kind: String, CaseIterable, Sendable {
        case groups, reads, revokes, rebinds, mutes, presence
        /// The clients report badges of their own.
        case reports
        /// @ by name and @all.
        case mentions
        /// `push.force`.
        case forces
        /// DND windows.
        case quiet
        /// Details hidden from locked screens.
        case hiding
        /// Desktops beside phones, and the policy for them.
        case desktops
        /// Silent and voip pushes, vetoes, messages that do not count, prefixes.
        case variants
        /// Messages with a short life.
        case expiry
        /// Senders' lists of excluded users.
        case excludes
        /// An event that its producer writes twice.
        case doubles
        /// Alerts of a conversation merged into one.
        case bursts
        /// Live Activities.
        case activities
        /// Groups that are divided into chunks.
        case crowds
        /// Devices report pushes that arrived or were opened.
        case openings
        /// Titles, templates, payload keys, collapse ids, priorities, strategies and profiles of single messages.
        case options
        /// Languages, zones and content keys of tokens and users.
        case languages
        /// Binds of equal and lower versions, and parts of settings.
        case versions
        /// Kafka times in seconds, or of a few milliseconds.
        case oddTimes
        /// Producers write in transactions. A marker is an offset without a record.
        case transactions
        /// A message that its producer writes to two partitions at about the same time.
        case copies
        /// A user binds the token of another one's phone, which has more tokens, without an unbind.
        case switches
        /// APNs answers 429 with a long `Retry-After` to two apps, to one of them for long.
        case throttles
        /// Users' levels for types of conversations, snoozes, devices without alerts, and titles of apps.
        case choices

        /// Drawn from numbers of their own: the seeds keep the rest of their worlds.
        fileprivate static let drawnApart: [Kind] = [
            .oddTimes, .transactions, .copies, .switches, .throttles, .choices,
        ]
    }

    /// The world begins so long before the boundary of a minute; windows of quiet hours begin and end there.
    public var boundarySeconds = 0
    /// That boundary, Unix ms.
    public var boundaryMs: Int64 = Self.afternoonMs
    /// 16:00 in Shanghai, on a Friday.
    static let afternoonMs: Int64 = 1_800_000_000_000
    /// Midnight in Shanghai, before a Saturday.
    static let midnightMs: Int64 = afternoonMs + 8 * 3_600_000
    /// Summer time begins in Berlin.
    static let summerMs: Int64 = 1_806_195_600_000
    var originMs: Int64 { boundaryMs - Int64(boundarySeconds) * 1000 }

    /// `planner.direct_max`: larger groups are divided.
    static let directMax = 256

    /// A plan for all of the seed's choices.
    ///
    /// - Parameter added: in every world, whatever the seed says.
    public init(seed: UInt64, faults: [FaultKind]? = nil, added: [Kind] = []) {
        self.seed = seed
        var random = SmallRandom(seed: seed ^ 0x51A7)
        workers = Int(random.next(in: 1...3))
        partitions = Int32(random.next(in: 1...4))
        usersPerApp = Int(random.next(in: 2...8))
        devicesMax = Int(random.next(in: 1...3))
        messages = Int(random.next(in: 10...80))
        trafficNanos = random.next(in: 5...40) &* 1_000_000_000
        kinds = Set(
            Kind.allCases.filter { !Kind.drawnApart.contains($0) && random.next(in: 0...99) < $0.perCent })
        if random.next(in: 0...5) == 0 { windowRecords = Int(random.next(in: 20...60)) }
        apps = []
        for id in random.next(in: 0...2) == 0 ? ["im", "shop"] : ["im"] {
            apps.append(
                random.next(in: 0...1) == 0
                    ? AppSettings(id: id) : AppSettings(id: id, kinds: kinds, random: &random))
        }
        let chosen = (0..<random.next(in: 0...2)).compactMap { _ in
            (faults ?? FaultKind.allCases.filter { !FaultKind.drawnApart.contains($0) }).randomElement(using: &random)
        }
        self.faults = chosen
        faultCount = chosen.isEmpty ? 0 : Int(random.next(in: 1...4))
        redis = Self.drawRedis(for: chosen, &random)
        // Seeds keep their worlds: a switch that is gone was drawn here.
        _ = Bool.random(using: &random)
        group = Group.allCases.randomElement(using: &random) ?? .eager
        shardsPerWorker = random.next(in: 0...2) == 0 ? 2 : 1
        boundarySeconds = Int(random.next(in: 0...40))
        boundaryMs = [Self.afternoonMs, Self.afternoonMs, Self.midnightMs, Self.summerMs][Int(random.next(in: 0...3))]
        for kind in Kind.drawnApart {
            var own = SmallRandom(seed: seed ^ 0xA9A27 &+ UInt64(kind.place) << 32)
            if own.next(in: 0...99) < kind.perCent { kinds.insert(kind) }
        }
        if faults == nil { drawFaultsApart() }
        kinds.formUnion(added)
        drawTitles()
        if added.contains(.throttles) { (self.faults, faultCount) = ([], 0) }
        fitThrottles()
        drawKit(mayLeap: faults == nil && added.isEmpty)
    }

    /// The app of the episodes: in each world without a fault, where the ends of all are known, and in some others.
    private mutating func drawKit(mayLeap: Bool) {
        var own = SmallRandom(seed: seed ^ 0x4B17)
        let isOther = own.next(in: 0...3) == 0
        // In a small window an app's share is a few records, and whatever waits in one episode parks another.
        guard faultCount == 0 || isOther, !kinds.contains(.throttles), windowRecords >= 20_000 else { return }
        kit = AppSettings(kit: Episode.app, random: &own)
        guard mayLeap, faultCount == 0, own.next(in: 0...3) == 0, kit?.burstTenths == 0 else { return }
        leapHours = [9, 13, 29 * 24, 41 * 24][Int(own.next(in: 0...3))]
        (messages, kinds) = (0, [])
    }

    private mutating func drawFaultsApart() {
        for kind in FaultKind.drawnApart {
            var own = SmallRandom(seed: seed ^ 0xFA17 &+ UInt64(kind.place) << 32)
            guard own.next(in: 0...99) < kind.perCent else { continue }
            // Nobody upgrades while moving to another cluster.
            if kind == .upgrade, faults.contains(.kafkaMirror) { continue }
            faults.append(kind)
            faultCount += 1
        }
    }

    private mutating func drawTitles() {
        guard kinds.contains(.choices) else { return }
        var own = SmallRandom(seed: seed ^ 0x717_1E5)
        for index in apps.indices { apps[index].title = ["none", "nick", "conversation"][Int(own.next(in: 0...2))] }
    }

    /// Two apps, with time enough for work that waits; nothing else goes wrong.
    private mutating func fitThrottles() {
        guard kinds.contains(.throttles) else { return }
        if faultCount > 0 {
            kinds.remove(.throttles)
            return
        }
        if apps.count == 1 { apps.append(AppSettings(id: "shop")) }
        // In a small window the backlog of one app is many windows.
        windowRecords = seed.isMultiple(of: 2) ? 20_000 : 30
        trafficNanos = max(trafficNanos, 30_000_000_000)
    }

    /// A single server has no failover, and only a cluster has slots to move.
    private static func drawRedis(for faults: [FaultKind], _ random: inout SmallRandom) -> Redis {
        let cluster = Redis.cluster(masters: Int(random.next(in: 1...4)))
        let draw = random.next(in: 0...3)
        if faults.contains(.redisSlots) { return cluster }
        if faults.contains(.redisFailover) { return draw < 2 ? .sentinel : cluster }
        return draw == 0 ? .sentinel : draw == 1 ? cluster : .single
    }

    public var text: String {
        "seed \(seed): \(workers) workers, \(partitions) partitions, apps \(apps.map(\.text).joined(separator: "; ")), "
            + "\(usersPerApp) users each, up to \(devicesMax) devices, \(messages) messages in "
            + "\(trafficNanos / 1_000_000_000) s, with \(kinds.map(\.rawValue).sorted().joined(separator: " ")); "
            + (windowRecords < 20_000 ? "windows of \(windowRecords) records, " : "")
            + "\(shardsPerWorker) shards each, \(group.rawValue) group, Redis: \(redis); "
            + (kit.map { "episodes in \($0.text); " } ?? "") + (leapHours.map { "a leap of \($0) hours; " } ?? "")
            + "\(faultCount) faults of: \(faults.map(\.rawValue).joined(separator: " "))"
    }
}

extension Plan.Kind {
    fileprivate var place: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    /// In how many worlds of a hundred it is.
    fileprivate var perCent: UInt64 {
        switch self {
        case .groups, .reads, .revokes, .rebinds, .mutes, .presence, .variants: 75
        case .mentions, .forces, .quiet, .expiry, .excludes: 50
        case .options, .languages, .versions: 50
        case .reports, .hiding, .desktops, .activities, .bursts, .doubles, .openings: 35
        case .oddTimes, .transactions, .copies, .switches, .choices: 30
        // Only with `--kinds throttles`.
        case .throttles: 0
        case .crowds: 8
        }
    }
}

/// What can go wrong.
public enum FaultKind: String, CaseIterable, Sendable {
    /// A worker ends between two calls, and starts again.
    case crash
    /// A worker runs no turn for longer than its session.
    case pause
    /// A worker hands over and ends; another begins.
    case restart
    /// A further worker joins.
    case join
    /// Connections to Redis break, or are refused, or hang.
    case redisLink
    /// Connections to APNs break, or are refused, or hang.
    case apnsLink
    /// APNs answers 429, 500, 503, or refuses streams.
    case apnsAnswers
    /// APNs says that tokens are dead.
    case apnsTokens
    /// APNs sends GOAWAY.
    case apnsGoAway
    /// A wall clock is off by less than a minute.
    case clock
    /// Brokers of Kafka are away.
    case kafkaBrokers
    /// The group's coordinator forgets its members, or calls to it are lost.
    case kafkaGroup
    /// Writes to Kafka or their answers are lost.
    case kafkaWrites
    /// A topic takes no records.
    case kafkaRefusal
    /// Kafka is slow.
    case kafkaSlowness
    /// A producer fails for good.
    case kafkaProducer
    /// Kafka drops the oldest events, read or not.
    case kafkaRetention
    /// The topic of events is deleted and made again.
    case kafkaRecreation
    /// A Redis server ends and starts again with the same data.
    case redisRestart
    /// A Redis server ends and starts again with older data.
    case redisOlderData
    /// A replica of Redis becomes the master. The newest writes may be lost.
    case redisFailover
    /// Redis has no memory left.
    case redisFull
    /// Redis refuses commands: it loads its data, a script runs for long, it cannot save or has no replica.
    case redisRefusal
    /// Redis is slow.
    case redisSlowness
    /// Slots of a Redis Cluster move to other nodes.
    case redisSlots
    /// The configuration changes, and the workers read it again.
    case reload
    /// A wall clock jumps by more than five minutes.
    case clockJump
    /// All workers move to a mirrored Kafka cluster, some of them with a Redis from a backup.
    case kafkaMirror
    /// Some workers are of a later version, and in the end all.
    case upgrade

    /// Drawn from numbers of their own: the seeds keep the rest of their worlds.
    fileprivate static let drawnApart: [FaultKind] = [.kafkaMirror, .upgrade]
    fileprivate var place: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    /// In how many worlds of a hundred a kind that is drawn apart may strike.
    fileprivate var perCent: UInt64 {
        switch self {
        case .kafkaMirror: 12
        case .upgrade: 15
        default: 0
        }
    }
}

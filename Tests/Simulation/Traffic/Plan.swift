import EventLoop

/// What the seed decides before anything runs: the sizes of the world and its settings.
public struct Plan: Sendable {
    public var seed: UInt64
    public var workers = 1
    public var partitions: Int32 = 2
    public var apps: [String] = ["im"]
    public var usersPerApp = 4
    public var devicesMax = 2
    public var messages = 40
    /// The time in which the traffic comes.
    public var trafficNanos: UInt64 = 20_000_000_000
    public var kinds: Set<Kind> = Set(Kind.allCases)
    public var faults: [FaultKind] = []
    public var faultCount = 0

    /// A part of the traffic that a smaller world can do without.
    public enum Kind: String, CaseIterable, Sendable {
        case groups, reads, revokes, rebinds, mutes, presence, reports
    }

    /// A plan for all of the seed's choices.
    public init(seed: UInt64, faults: [FaultKind]? = nil) {
        self.seed = seed
        var random = SmallRandom(seed: seed ^ 0x51A7)
        workers = Int(random.next(in: 1...3))
        partitions = Int32(random.next(in: 1...4))
        apps = random.next(in: 0...2) == 0 ? ["im", "shop"] : ["im"]
        usersPerApp = Int(random.next(in: 2...8))
        devicesMax = Int(random.next(in: 1...3))
        messages = Int(random.next(in: 10...80))
        trafficNanos = random.next(in: 5...40) &* 1_000_000_000
        kinds = Set(Kind.allCases.filter { _ in random.next(in: 0...3) > 0 })
        let chosen = (0..<random.next(in: 0...2)).compactMap { _ in
            (faults ?? FaultKind.allCases).randomElement(using: &random)
        }
        self.faults = chosen
        faultCount = chosen.isEmpty ? 0 : Int(random.next(in: 1...4))
    }

    public var text: String {
        "seed \(seed): \(workers) workers, \(partitions) partitions, apps \(apps.joined(separator: " ")), "
            + "\(usersPerApp) users each, up to \(devicesMax) devices, \(messages) messages in "
            + "\(trafficNanos / 1_000_000_000) s, with \(kinds.map(\.rawValue).sorted().joined(separator: " ")); "
            + "\(faultCount) faults of: \(faults.map(\.rawValue).joined(separator: " "))"
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
    /// APNs sends GOAWAY.
    case apnsGoAway
    /// A wall clock is off by less than a minute.
    case clock
}

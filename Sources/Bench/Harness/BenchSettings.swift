// SPDX-License-Identifier: Apache-2.0
import Console
import Glibc

/// The options of a bench.
struct BenchSettings {
    /// Messages of the throughput phase, and requests of `h2load`.
    var events: Int
    var users: Int
    /// Messages per second of the latency phase; `seconds` is its length.
    var rate: Int
    var seconds: Int
    var inFlight: Int
    var shards: Int
    var results: String
    var rounds: Int
    /// Pushes that the worker holds in the memory phase; 0 skips the phase.
    var held: Int
    var usesRedisTCP: Bool
    /// This program's worker uses a Redis Cluster of three masters, the other program's worker a single server.
    var usesCluster: Bool
    var printsJSON: Bool
    /// Only decision and rendering.
    var isDecideOnly: Bool
    /// Members of the groups that the throughput phase writes to; nil: its messages are 1:1.
    var group: Int?
    /// Every member muted the group, so nothing is sent.
    var isMuted: Bool
    /// APNs is away. Each push is made and handed to the APNs client, and stays there.
    var isUnsent: Bool

    /// Records of the throughput phase.
    var records: Int { group.map { max(1, events / $0) } ?? events }
    /// Recipients of these records.
    var recipients: Int { group.map { records * $0 } ?? events }
    var pushes: Int { sendsNothing ? 0 : recipients }
    var sendsNothing: Bool { isMuted || isUnsent }
    /// The parts of a group member's cost, if nothing is sent.
    var scope: String? {
        if isMuted {
            return "denied members: read, decided, one record in push.results, the mark with its trace; nothing is sent"
        }
        guard isUnsent else { return nil }
        return "before sending: read, decided, claimed with the badge, rendered, handed to the APNs client"
    }
    /// Members of the giant group that drains while 1:1 messages are measured; nil without that phase.
    var beside: Int?
    /// With `--beside`: CPU per push is measured with each of these numbers of workers in turn.
    var workers: [Int]
    var keeps: Bool
    /// Shows the time of a push by stage.
    var showsStages: Bool
    /// File of the HTML report.
    var htmlPath: String?
    var comparePath: String?
    /// The given options, without those about the report.
    private let given: [String]
    /// Path of the carillon executable to compare with.
    var against: String?
    /// Only the APNs client, compared with h2load.
    var isAPNsOnly: Bool
    /// The disturbance that the client is exposed to instead.
    var disturbance: Disturbance?
    /// This process is the client of `--apns`: the endpoint and the folder of its credentials.
    var apnsClient: String?
    var credentials: String?
    var connections: Int
    var streams: Int
    var window: Int

    static let options: [CommandSpec.Option] = [
        .value("events", "N", "messages of the throughput phase, one push each (200000; debug: 10000)"),
        .value("users", "N", "distinct receivers (50000, at most the events)"),
        .value("rate", "R", "messages per second of the latency phase (2000); 0 leaves it out"),
        .value("seconds", "S", "length of the latency phase (10)"),
        .value("in-flight", "N", "limits.in_flight (2000)"),
        .value("shards", "N", "the worker's shards (1)"),
        .value("results", "WHICH", "the records that the worker writes to push.results: all, failures or none (all)"),
        .value("rounds", "N", "rounds of throughput and h2load (5; debug: 1); the median counts"),
        .value("held", "N", "pushes held at once in the memory phase (100000); 0 leaves it out"),
        .flag("redis-tcp", "Redis by TCP instead of its unix socket"),
        .flag(
            "cluster", "with --against: this program on a Redis Cluster of three, the other on one server, both by TCP"),
        CommandSpec.json,
        .flag(
            "apns",
            "the APNs client alone compared with h2load, in 5 rounds; takes --events, --rounds and the next three"),
        .value("disturb", "NAME", "with --apns: the client under disturbances, against its bar: \(Disturbance.names)"),
        .value("connections", "N", "connections to APNs (1; the most there may be with --disturb far: 64)"),
        .value("streams", "N", "streams per connection (1000)"),
        .value("window", "BYTES", "the simulator's window per connection (1048576; APNs has 65535)"),
        .value("apns-client", "URL", "be the client of --apns, against a simulator with --credentials DIR"),
        .value("credentials", "DIR", "the credentials folder of that simulator"),
        .flag("decide", "decision and rendering alone, in this process: CPU per recipient"),
        .value("group", "N", "messages go to groups of N members, each event a push to every one (none: 1:1)"),
        .flag("muted", "with --group: every member muted it, so nothing is sent; all that a denied member costs"),
        .flag("unsent", "with --group: APNs is down; the cost of a member until the APNs client has its push"),
        .value(
            "beside", "N",
            "1:1 messages alone, then during one message to a group of N members: latency by lane, memory"),
        .value("workers", "N,…", "with --beside: numbers of workers that share the topics, each in turn (1)"),
        .value(
            "against", "BINARY", "this program's worker and BINARY's, both under the same load at the same time"),
        .flag("stages", "the time of a push by part: worker and Redis by stage, commands, allocations"),
        .value("html", "FILE", "the report as a page with plots, whole in itself; with --stages"),
        .value("compare", "FILE", "with --html: the --json of an earlier run, whose figures stand beside these"),
        .flag("keep", "keep the servers and a worker until ctrl-C afterwards"),
    ]

    init(_ arguments: Arguments) throws(Arguments.UsageError) {
        #if DEBUG
            let usual = 10_000
            let usualRounds = 1
        #else
            let usual = arguments.has("unsent") ? 50_000 : arguments.string("disturb") == nil ? 200_000 : 2_000_000
            // One round is not enough on a shared machine, because the other load changes within seconds.
            let usualRounds = 5
        #endif
        events = try arguments.int("events", default: usual, in: 100...2_000_000)
        let beside = arguments.has("beside") ? try arguments.int("beside", default: 0, in: 100...1_000_000) : nil
        self.beside = beside
        workers = try Self.workers(arguments.string("workers"))
        if let beside {
            users = beside + BesideBench.others
        } else {
            users = try arguments.int("users", default: min(50_000, events), in: 2...2_000_000)
        }
        isUnsent = arguments.has("unsent")
        against = try Self.executable(arguments.string("against"))
        rate = try arguments.int(
            "rate", default: beside != nil ? 500 : isUnsent || against != nil ? 0 : 2_000, in: 0...1_000_000)
        seconds = try arguments.int("seconds", default: 10, in: 1...3_600)
        inFlight = try arguments.int("in-flight", default: 2_000, in: 1...1_000_000)
        shards = try arguments.int("shards", default: 1, in: 1...64)
        results = arguments.string("results") ?? "all"
        guard ["all", "failures", "none"].contains(results) else {
            throw Arguments.UsageError(message: "--results needs all, failures or none")
        }
        isAPNsOnly = arguments.has("apns")
        if let name = arguments.string("disturb") {
            guard let disturbance = Disturbance(rawValue: name), isAPNsOnly else {
                throw Arguments.UsageError(message: "--disturb needs --apns and one of \(Disturbance.names)")
            }
            self.disturbance = disturbance
        }
        apnsClient = arguments.string("apns-client")
        credentials = arguments.string("credentials")
        guard (apnsClient == nil) == (credentials == nil) else {
            throw Arguments.UsageError(message: "--apns-client and --credentials need each other")
        }
        isDecideOnly = arguments.has("decide")
        group = arguments.has("group") ? try arguments.int("group", default: 1_000, in: 2...100_000) : nil
        isMuted = arguments.has("muted")
        guard !(isMuted || isUnsent) || group != nil else {
            throw Arguments.UsageError(message: "--muted and --unsent need --group")
        }
        guard group == nil || group ?? 0 <= users else {
            throw Arguments.UsageError(message: "--group needs no more members than there are --users")
        }
        connections = try arguments.int("connections", default: disturbance == nil ? 1 : 64, in: 1...64)
        streams = try arguments.int("streams", default: 1_000, in: 1...100_000)
        window = try arguments.int("window", default: 1 << 20, in: 65_535...(1 << 30))
        rounds = try arguments.int(
            "rounds", default: disturbance != nil || beside != nil ? 3 : isAPNsOnly || isDecideOnly ? 5 : usualRounds,
            in: 1...100)
        held = try arguments.int("held", default: isUnsent || against != nil ? 0 : 100_000, in: 0...1_000_000)
        guard !isUnsent || (rate == 0 && held == 0 && !isMuted) else {
            throw Arguments.UsageError(message: "--unsent needs --rate 0 --held 0, and excludes --muted")
        }
        // A device sends one push at a time. A second push would wait and not be made.
        guard !isUnsent || events <= users else {
            throw Arguments.UsageError(message: "--unsent needs no more --events than there are --users")
        }
        guard (beside == nil && workers == [1]) || (beside != nil && rate > 0 && group == nil && against == nil) else {
            throw Arguments.UsageError(
                message: "--workers needs --beside, which needs a --rate and excludes --group and --against")
        }
        usesCluster = arguments.has("cluster")
        guard !usesCluster || against != nil else {
            throw Arguments.UsageError(message: "--cluster needs --against, for example this program")
        }
        usesRedisTCP = arguments.has("redis-tcp") || usesCluster
        printsJSON = arguments.has("json")
        keeps = arguments.has("keep")
        htmlPath = arguments.string("html")
        comparePath = arguments.string("compare")
        given = arguments.given(without: ["html", "compare", "json", "keep", "stages"])
        guard comparePath == nil || htmlPath != nil else {
            throw Arguments.UsageError(message: "--compare needs --html")
        }
        showsStages = arguments.has("stages") || htmlPath != nil
        guard !showsStages || !(isAPNsOnly || isDecideOnly || against != nil) else {
            throw Arguments.UsageError(message: "--stages and --html exclude --apns, --decide and --against")
        }
        guard htmlPath == nil || beside == nil else {
            throw Arguments.UsageError(message: "--html excludes --beside")
        }
        let comparesAll = !(isAPNsOnly || isDecideOnly || isUnsent || keeps || rate > 0 || held > 0)
        guard against == nil || comparesAll else {
            throw Arguments.UsageError(
                message: "--against compares throughput: not with --apns, --decide, --unsent, --keep, --rate or --held")
        }
    }

    /// The settings for a report: those that every run has, then the other options that were given.
    var texts: [String] {
        let usual: KeyValuePairs = [
            "events": "\(events)", "users": "\(users)", "rounds": "\(rounds)", "shards": "\(shards)",
            "in-flight": "\(inFlight)", "results": results, "rate": "\(rate)", "seconds": "\(seconds)",
            "held": "\(held)",
        ]
        let others = given.filter { text in !usual.contains { text.hasPrefix("\($0.key) ") } }
        return usual.map { "\($0.key) \($0.value)" } + (showsStages ? ["stages"] : []) + others
    }

    /// Parses `1,2,4`; nil means one.
    private static func workers(_ text: String?) throws(Arguments.UsageError) -> [Int] {
        guard let text else { return [1] }
        let counts = text.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) ?? 0 }
        guard counts.allSatisfy({ (1...16).contains($0) }), counts.count <= 8 else {
            throw Arguments.UsageError(message: "--workers needs numbers from 1 to 16 like 1,2,4; not \"\(text)\"")
        }
        return counts
    }

    /// Makes a path that can be started: a bare name is a file in the current folder, not a command on PATH.
    private static func executable(_ path: String?) throws(Arguments.UsageError) -> String? {
        guard let path else { return nil }
        let place = path.contains("/") ? path : "./" + path
        guard access(place, X_OK) == 0 else {
            throw Arguments.UsageError(message: "--against needs a carillon executable; \"\(path)\" cannot be started")
        }
        return place
    }
}

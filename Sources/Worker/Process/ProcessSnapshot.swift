// SPDX-License-Identifier: Apache-2.0
import APNs
public import Fleet
import JSON
import Kafka
import Telemetry

/// The state of a process at one moment.
public struct ProcessSnapshot: Sendable {
    public let shards: [ShardStatus]
    /// The process is ending: it reads no more.
    public let isDraining: Bool
    /// Kafka, Redis, and each app and environment; empty before the first shard has started. The one source of health
    /// for `/readyz`, the page, `/statusz` and `carillon top`.
    public private(set) var parts: [ProcessPart]
    /// Unix ms, as of the last `date(by:nowMs:)`.
    private(set) var atMs: Int64 = 0

    /// - Parameters:
    ///   - isReloadRefused: the configuration's file, as of the last reload, cannot be used.
    ///   - lacksZones: the system has no time zones.
    ///   - notes: the conditions that the counters of the last minutes show.
    public init(
        shards: [ShardStatus] = [], isDraining: Bool = false, isReloadRefused: Bool = false, lacksZones: Bool = false,
        notes: [HealthNote] = []
    ) {
        self.shards = shards
        self.isDraining = isDraining
        parts = Self.parts(of: shards) + (shards.isEmpty ? [] : Self.configuration(isReloadRefused, lacksZones))
        if !parts.isEmpty { for note in notes { add(note) } }
        hideUnused()
    }

    /// Removes the other environments of apps to which no push went yet.
    private mutating func hideUnused() { parts.removeAll { $0.isUntried && $0.problems.isEmpty } }

    /// Notes since when each problem is known.
    mutating func date(by times: inout ProblemTimes, nowMs: Int64) {
        atMs = nowMs
        times.begin(nowMs: nowMs)
        for index in parts.indices { parts[index].date(by: &times) }
    }

    /// With the turn of the slowest shard's loop, of which a snapshot of a stuck shard says nothing.
    func withTurn(secondsAgo: Double) -> ProcessSnapshot {
        guard secondsAgo >= OperatorPages.stuckSeconds else { return self }
        var snapshot = self
        var loop = ProcessPart(.loop)
        loop.add(.down, "a shard has not turned for \(Int(secondsAgo)) s", alert: "CarillonLoopStuck")
        snapshot.parts.append(loop)
        return snapshot
    }

    private mutating func add(_ note: HealthNote) {
        let name = ProcessPart.Name(note.subject)
        let index = parts.firstIndex { part in
            // A note without an environment belongs to the app's first one.
            if case .app(let id, "") = name, case .app(let other, _) = part.name { return id == other }
            return part.name == name
        }
        let problem = ProcessPart.Problem(
            state: .degraded, text: note.text, alert: note.alert, rule: note.rule, endedMs: note.endedMs)
        if let index {
            parts[index].add(problem)
        } else {
            var part = ProcessPart(name)
            part.add(problem)
            parts.append(part)
        }
    }

    /// Each app's figures over all shards, by id.
    public var apps: [ShardStatus.App] {
        var sums: [String: ShardStatus.App] = [:]
        for app in shards.flatMap(\.apps) {
            var sum = sums[app.id] ?? ShardStatus.App(id: app.id, accepted: 0, opened: 0)
            sum.accepted &+= app.accepted
            sum.opened &+= app.opened
            sums[app.id] = sum
        }
        return sums.values.sorted { $0.id < $1.id }
    }

    /// The pushes of all shards that wait.
    var waiting: WaitingPushes {
        shards.reduce(into: WaitingPushes()) { $0.add($1.waiting) }
    }

    /// The state as a whole.
    public enum Health: String, Sendable {
        case ok, degraded, down, starting, draining
    }

    public var health: Health {
        if isDraining { return .draining }
        if parts.isEmpty { return .starting }
        if parts.contains(where: \.stopsProcess) { return .down }
        return parts.contains { $0.state != .ok } ? .degraded : .ok
    }

    /// The most important problem; nil without one.
    public var headline: String? {
        sortedParts.first.flatMap { part in part.problems.first.map { "\(part.title): \($0.text)" } }
    }

    /// Live problems first, the worst first.
    private var sortedParts: [ProcessPart] {
        parts.enumerated().sorted { ($0.element.rank, $0.offset) < ($1.element.rank, $1.offset) }.map(\.element)
    }

    /// The process works: it is neither starting nor draining, and no part is `down`.
    public var isReady: Bool { missing.isEmpty }

    /// Reasons why the process does not work, in words; empty if it is ready.
    public var missing: [String] {
        if isDraining { return ["draining"] }
        if parts.isEmpty { return ["starting"] }
        return parts.filter(\.stopsProcess).map { $0.line(nowMs: atMs) }
    }

    /// Problems that need attention although the process works.
    public var notes: [String] {
        sortedParts.filter { $0.state != .ok && !$0.stopsProcess }.map { $0.line(nowMs: atMs) }
    }

    /// `/readyz`, contract section 9: one line per part, the worst first.
    public var lines: [String] {
        (isDraining ? ["draining"] : parts.isEmpty ? ["starting"] : []) + sortedParts.map { $0.line(nowMs: atMs) }
    }

    /// `/statusz`.
    public var json: [UInt8] {
        var writer = JSONWriter(reservingCapacity: 2048)
        writer.beginObject()
        let missing = missing
        writer.member("ready", missing.isEmpty)
        writer.member("draining", isDraining)
        writer.member("health", health.rawValue)
        writer.member("headline", ifPresent: headline)
        writer.key("parts")
        writer.beginArray()
        for part in parts {
            writer.beginObject()
            writer.member("part", part.title)
            writer.member("state", part.state.rawValue)
            writer.key("reasons")
            writer.beginArray()
            for reason in part.reasons { writer.string(reason) }
            writer.endArray()
            writer.key("alerts")
            writer.beginArray()
            for alert in part.alerts { writer.string(alert) }
            writer.endArray()
            writer.endObject()
        }
        writer.endArray()
        writer.key("missing")
        writer.beginArray()
        for text in missing { writer.string(text) }
        writer.endArray()
        writer.key("notes")
        writer.beginArray()
        for text in notes { writer.string(text) }
        writer.endArray()
        writer.member("kafka_library", KafkaConfiguration.libraryVersion)
        writeEndToEnd(to: &writer)
        writer.key("waiting")
        waiting.write(to: &writer)
        writer.key("apps")
        writer.beginArray()
        for app in apps { app.write(to: &writer) }
        writer.endArray()
        writer.key("shards")
        writer.beginArray()
        for shard in shards { shard.write(to: &writer) }
        writer.endArray()
        writer.endObject()
        return writer.bytes
    }

    private func writeEndToEnd(to writer: inout JSONWriter) {
        func write(_ cells: [Histogram]) {
            writer.member("count", Int64(clamping: cells.reduce(UInt64(0)) { $0 &+ $1.count }))
            for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)] as [(StaticString, Double)] {
                guard let seconds = Histogram.quantile(quantile, of: cells) else { continue }
                writer.key(name)
                writer.double((seconds * 1_000_000).rounded() / 1000)
            }
        }
        writer.key("end_to_end_ms")
        writer.beginObject()
        write(shards.flatMap(\.endToEnd))
        writer.key("lanes")
        writer.beginObject()
        for lane in PushLane.allCases {
            let cells = shards.compactMap { $0.endToEnd.dropFirst(Int(lane.rawValue)).first }
            guard cells.contains(where: { $0.count > 0 }) else { continue }
            writer.key(lane.name)
            writer.beginObject()
            write(cells)
            writer.endObject()
        }
        writer.endObject()
        writer.endObject()
    }

    // MARK: Parts
    // The state of each part.

    static func parts(of shards: [ShardStatus]) -> [ProcessPart] {
        shards.isEmpty ? [] : [kafka(shards), redis(shards)] + apps(shards) + clock(shards)
    }

    /// Only while the clock is off.
    private static func clock(_ shards: [ShardStatus]) -> [ProcessPart] {
        guard let note = shards.compactMap(\.clock).max(by: { $0.skewMs.magnitude < $1.skewMs.magnitude }) else {
            return []
        }
        var part = ProcessPart(.clock)
        let skew = "\(note.skewMs.magnitude / 1000) s \(note.skewMs > 0 ? "ahead of" : "behind") \(note.reference)"
        part.add(
            note.isStopped ? .down : .degraded,
            "this machine's clock is \(skew)" + (note.isStopped ? ": reading has stopped, and nothing expires" : ""),
            alert: note.isStopped ? "CarillonClockWrong" : "CarillonClockOff")
        return [part]
    }

    /// None where nothing is wrong.
    static func configuration(_ isReloadRefused: Bool, _ lacksZones: Bool) -> [ProcessPart] {
        var part = ProcessPart(.configuration)
        if isReloadRefused {
            part.add(
                .degraded,
                "the file cannot be used, the one before stays: a restart would fail; the log names each problem",
                alert: "CarillonReloadRefused")
        }
        if lacksZones { part.add(.degraded, SystemZones.absence) }
        return part.reasons.isEmpty ? [] : [part]
    }

    /// Down means: no partition of any topic is assigned, the group has not assigned some topic since the start, or no
    /// broker answers. If a rollout continued before everything is assigned, the group would have to rebalance again.
    private static func kafka(_ shards: [ShardStatus]) -> ProcessPart {
        var part = ProcessPart(.kafka)
        var awaited: [String] = []
        for topic in shards.flatMap(\.awaitedTopics) where !awaited.contains(topic) { awaited.append(topic) }
        var unreadable: [String] = []
        for text in shards.flatMap(\.unreadableTopics) where !unreadable.contains(text) { unreadable.append(text) }
        for text in unreadable { part.add(.down, text, alert: "CarillonNoAssignment") }
        if let denial = shards.lazy.compactMap(\.writeDenial).first {
            part.add(
                .down,
                "may write no record: \(denial); grant Write on the output topics, before Kafka 2.8 also IdempotentWrite on the "
                    + "cluster: nothing is read until then", alert: "CarillonRecordsRefused")
        }
        let isUnreachable = shards.allSatisfy { $0.kafkaReach == .none }
        let hasPartition = shards.contains { $0.heldPartitions > 0 }
        if isUnreachable {
            // The cause alone.
            let effect = hasPartition ? "" : ", so no partition is assigned"
            part.add(.down, "no broker answers\(effect)", alert: "CarillonNoAssignment")
        } else if !hasPartition {
            part.add(.down, "no partition is assigned", alert: "CarillonNoAssignment")
        } else if !awaited.isEmpty {
            part.add(
                .down, "not shared out yet by the group: \(awaited.joined(separator: ", "))",
                alert: "CarillonNoAssignment")
        }
        if !isUnreachable, shards.contains(where: { $0.kafkaReach == .none || $0.kafkaReach == .partial }) {
            part.add(.degraded, "brokers do not answer about every partition", alert: "CarillonNoAssignment")
        }
        for refused in shards.flatMap(\.refusedTopics) {
            part.add(
                .degraded, "refuses records of \(refused.topic): \(refused.why); they are sent again",
                alert: "CarillonRecordsRefused")
        }
        for text in shards.flatMap(\.kafkaNotes) { part.add(.degraded, text) }
        var restarted: [String] = []
        for topic in shards.flatMap(\.restartedTopics) where !restarted.contains(topic) { restarted.append(topic) }
        if !restarted.isEmpty {
            part.add(
                .degraded,
                "began again at a lower offset, and is read from there: \(restarted.joined(separator: ", "))",
                alert: "CarillonPartitionRestarted")
        }
        let held = Set(shards.flatMap(\.heldTopics)).sorted()
        if !held.isEmpty {
            part.add(
                .degraded,
                "records of a later version wait unread: \(held.joined(separator: ", ")); start workers of that version"
            )
        }
        return part
    }

    private static func redis(_ shards: [ShardStatus]) -> ProcessPart {
        var part = ProcessPart(.redis)
        // Usually all shards have the same problem: it is one.
        var known: [(problem: ProcessPart.Problem, shards: [String])] = []
        for shard in shards {
            for problem in redisProblems(shard) {
                let place = known.firstIndex { $0.problem == problem } ?? known.count
                if place == known.count { known.append((problem, [])) }
                known[place].shards.append(String(shard.index))
            }
        }
        for (problem, those) in known {
            let place = those.count == shards.count ? "" : "shard \(those.joined(separator: ", ")): "
            part.add(problem.state, place + problem.text, alert: problem.alert)
        }
        return part
    }

    private static func redisProblems(_ shard: ShardStatus) -> [ProcessPart.Problem] {
        var problems: [ProcessPart.Problem] = []
        func add(_ state: ProcessPart.State, _ text: String, _ alert: String) {
            problems.append(ProcessPart.Problem(state: state, text: text, alert: alert))
        }
        if shard.hasLostTokens {
            add(
                .down,
                "Redis lost its tokens, and reading has stopped: restore the keys, and it resumes by itself; only if they are "
                    + "lost for good: carillon tokens accept", "CarillonTokenLoss")
        }
        if let time = shard.olderData {
            add(
                shard.goesOnWithOlderData ? .degraded : .down,
                "Redis has data of \(time), older than before: user state since then is being applied again; to go on without "
                    + "it: carillon tokens accept", "CarillonRedisOlderData")
        }
        if let policy = shard.evictingPolicy {
            add(.degraded, "Redis may evict state: maxmemory-policy is \(policy); set noeviction", "CarillonTokenLoss")
        }
        if let group = shard.otherGroup {
            add(
                .down,
                "workers of the consumer group \(group) use the same Redis: nothing is read, and this worker ends",
                "CarillonRedisDown")
        }
        if !shard.isRedisReady {
            add(.down, "no connection to Redis" + (shard.redisFault.map { ": \($0)" } ?? ""), "CarillonRedisDown")
        } else if let why = shard.redisRefusal {
            add(
                .down, "Redis refuses writes: \(why); pushes go without a badge, and user state waits",
                "CarillonRedisRefusesWrites")
        }
        return problems
    }

    /// An app with a problem is `degraded`, because the others work. If no app can push anywhere, APNs itself is
    /// unreachable: then each is `down`, except apps with a refused credential, which is their own problem and remains
    /// `degraded`.
    private static func apps(_ shards: [ShardStatus]) -> [ProcessPart] {
        let clients = Dictionary(grouping: shards.flatMap(\.clients)) {
            ProcessPart.Name.app($0.app, environment: $0.environment)
        }
        // A paused credential concerns only its app.
        let isAPNsAway = !clients.values.contains { $0.contains(where: \.canPush) }
        var parts: [ProcessPart] = []
        for (name, clients) in clients {
            var part = ProcessPart(name)
            part.isUntried = clients.allSatisfy(\.isUntried)
            let paused = clients.compactMap(\.pausedBecause)
            let isWanted = clients.contains { $0.isWanted }
            let isDown = isAPNsAway && paused.isEmpty && isWanted
            for why in paused {
                part.add(
                    .degraded, "APNs refuses the credential: \(why); the app's pushes wait",
                    alert: "CarillonAuthRejected")
            }
            let lacking = isWanted ? clients.filter(\.lacksCredential) : []
            if let client = lacking.first {
                part.add(
                    lacking.count == clients.count ? .down : .degraded,
                    "a credential cannot be used: \(client.refusedCredential ?? "its files are being read"); pushes wait for it",
                    alert: "CarillonCredentialRefused", isOwn: true)
            }
            if let why = clients.lazy.filter({ !$0.lacksCredential }).compactMap(\.refusedCredential).first {
                part.add(
                    .degraded, "a changed credential is not in use, the one before stays: \(why)",
                    alert: "CarillonCredentialRefused")
            }
            if paused.isEmpty, clients.contains(where: \.isBreakerOpen) {
                part.add(
                    isDown ? .down : .degraded, "APNs reports that it is unavailable", alert: "CarillonBreakerOpen")
            } else if paused.isEmpty, isWanted, lacking.count < clients.count, !clients.contains(where: \.isUsable) {
                let why = clients.lazy.compactMap(\.unusableBecause).first
                if clients.contains(where: \.isStalled) {
                    // APNs is there: the trouble is this app's connections.
                    part.add(
                        .degraded, "connections to APNs carry no push: \(why ?? "they are stuck")",
                        alert: "CarillonNoStreams")
                } else {
                    part.add(
                        isDown ? .down : .degraded, "no connection to APNs" + (why.map { ": \($0)" } ?? ""),
                        alert: "CarillonApnsUnreachable")
                }
            }
            if clients.contains(where: \.isDefault), case .app(let id, _) = name { addNotes(&part, id, shards) }
            parts.append(part)
        }
        return parts.sorted { $0.title < $1.title }
    }

    /// Problems of an app as a whole; reported for its own environment.
    private static func addNotes(_ part: inout ProcessPart, _ app: String, _ shards: [ShardStatus]) {
        if shards.contains(where: { $0.overShare.contains(app) }) {
            part.add(.degraded, "over its share of the bound; further events are parked")
        }
        for brake in shards.flatMap(\.brakes) where brake.app == app {
            part.add(
                .degraded, "removal of dead tokens is stopped, too many by one cause: \(brake.cause)",
                alert: "CarillonRemovalBrake")
        }
    }
}

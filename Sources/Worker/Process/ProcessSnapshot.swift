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
    func turned(secondsAgo: Double) -> ProcessSnapshot {
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
    var sortedParts: [ProcessPart] {
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
}

import JSON
import Kafka
import Telemetry

/// What a process has and lacks at one moment.
public struct ProcessSnapshot: Sendable {
    public var shards: [ShardStatus]

    public init(shards: [ShardStatus] = []) {
        self.shards = shards
    }

    /// Each app's numbers over all shards, by id.
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

    /// In words, what keeps the process from doing its work; empty: it is ready.
    ///
    /// Ready is: some partition is assigned, Redis answers every shard, and some app has a connection somewhere. One app's
    /// trouble is among `notes`: the others go on.
    public var missing: [String] {
        guard !shards.isEmpty else { return ["starting"] }
        var missing: [String] = []
        if shards.allSatisfy({ $0.assignedPartitions == 0 }) { missing.append("no Kafka partition is assigned") }
        for shard in shards {
            if shard.hasLostTokens {
                missing.append(
                    "shard \(shard.index): Redis lost its tokens, reading has stopped; to go on without them: "
                        + "carillon tokens accept")
            }
            if !shard.isRedisReady {
                let why = shard.redisFault.map { ": \($0)" } ?? ""
                missing.append("shard \(shard.index): no connection to Redis\(why)")
            } else if let why = shard.redisRefusal {
                missing.append("shard \(shard.index): Redis takes no writes: \(why)")
            }
        }
        let troubles = troubles
        if troubles.count == Set(shards.flatMap(\.clients).map(\.app)).count, troubles.allSatisfy({ !$0.isPaused }) {
            for trouble in troubles { missing.append("app \(trouble.app): \(trouble.why)") }
        }
        return missing
    }

    /// Apps that cannot push anywhere.
    private var troubles: [(app: String, why: String, isPaused: Bool)] {
        var usable: [String: Bool] = [:]
        var paused: [String: String] = [:]
        for client in shards.flatMap(\.clients) {
            usable[client.app, default: false] = usable[client.app, default: false] || client.isUsable
            if let why = client.pausedBecause { paused[client.app] = why }
        }
        return usable.filter { !$0.value }.map(\.key).sorted().map { app in
            let why = paused[app].map { "APNs refuses the credential: \($0)" } ?? "no connection to APNs"
            return (app, why, paused[app] != nil)
        }
    }

    /// What somebody should look at although the process does its work.
    public var notes: [String] {
        var notes: [String] = []
        for trouble in troubles { notes.append("app \(trouble.app): degraded: \(trouble.why)") }
        for app in Set(shards.flatMap(\.overShare)).sorted() {
            notes.append("app \(app): degraded: over its share of the work in hand, what comes more is parked")
        }
        for brake in shards.flatMap(\.brakes) {
            let note = "app \(brake.app): dead tokens are kept, too many by one cause: \(brake.cause)"
            if !notes.contains(note) { notes.append(note) }
        }
        return notes
    }

    /// `/statusz`.
    public var json: [UInt8] {
        var writer = JSONWriter(reservingCapacity: 2048)
        writer.beginObject()
        let missing = missing
        writer.member("ready", missing.isEmpty)
        writer.key("missing")
        writer.beginArray()
        for text in missing { writer.string(text) }
        writer.endArray()
        writer.key("notes")
        writer.beginArray()
        for text in notes { writer.string(text) }
        writer.endArray()
        writer.member("kafka_library", KafkaConfiguration.libraryVersion)
        writer.key("end_to_end_ms")
        writer.beginObject()
        let cells = shards.map(\.endToEnd)
        writer.member("count", Int64(clamping: cells.reduce(UInt64(0)) { $0 &+ $1.count }))
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)] as [(StaticString, Double)] {
            guard let seconds = Histogram.quantile(quantile, of: cells) else { continue }
            writer.key(name)
            writer.double((seconds * 1_000_000).rounded() / 1000)
        }
        writer.endObject()
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
}

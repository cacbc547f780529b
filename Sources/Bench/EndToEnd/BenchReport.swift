// SPDX-License-Identifier: Apache-2.0
import JSON

/// The results of a bench, as text for people and as one JSON object.
struct BenchReport {
    var settings: BenchSettings
    var bindsPerSecond: Double = 0
    var throughput: [ThroughputPhase.Outcome] = []
    /// One more than rounds: before the first round and after each.
    var h2load: [H2LoadPhase.Outcome] = []
    var latency: LatencyPhase.Outcome?
    var memory: MemoryPhase.Outcome?

    /// CPU per push of the worker divided by that of h2load: the median of the rounds.
    var ratio: Double? { Self.median(ratios) }

    private var ratios: [Double] {
        throughput.indices.compactMap { round in h2loadMicros(round).map { throughput[round].workerMicros / $0 } }
    }

    /// h2load's CPU per request for a round: the mean of the runs before and after it, because the machine's speed
    /// drifts.
    func h2loadMicros(_ round: Int) -> Double? {
        guard h2load.indices.contains(round + 1) else { return nil }
        let mean = (h2load[round].micros + h2load[round + 1].micros) / 2
        return mean > 0 ? mean : nil
    }

    /// Time by stage; empty if not requested.
    var stages: StageTable { StageTable(throughput.compactMap(\.stages)) }

    /// Every message was pushed once.
    var isComplete: Bool {
        throughput.allSatisfy(isComplete)
    }

    private func isComplete(_ outcome: ThroughputPhase.Outcome) -> Bool {
        outcome.pushes == settings.pushes && outcome.acceptedByServer == settings.pushes
    }

    static func median(_ values: [Double]) -> Double? {
        guard !values.isEmpty else { return nil }
        let sorted = values.sorted()
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }

    // MARK: - Text

    var text: String {
        var text = "\nbinds        \(Self.whole(bindsPerSecond)) records/s (\(settings.users) users)\n"
        text += throughputText
        if !stages.isEmpty { text += stages.text(per: settings.sendsNothing ? "member" : "push") }
        if let ratio { text += "\nworker / h2load   \(Self.tenths(ratio))\(Self.each(ratios))\n" }
        if h2load.isEmpty { text += "\nh2load is not installed (nghttp2-client): no ratio\n" }
        if let latency { text += Self.text(latency) }
        if let memory {
            text += "\nmemory       \(Self.megabytes(memory.bytes))"
            text += " with \(memory.held) of \(memory.waiting) pushes held;"
            text += " \(Self.megabytes(memory.idleBytes)) idle"
            if let each = memory.bytesEach { text += "; \(Self.whole(each)) bytes each" }
            text += "\n"
        }
        return text
    }

    private static func text(_ latency: LatencyPhase.Outcome) -> String {
        func ms(_ value: Double?) -> String { value.map { "\(tenths($0)) ms" } ?? "none" }
        return """

            latency      \(ms(latency.p50Ms)) p50, \(ms(latency.p99Ms)) p99, \(ms(latency.p999Ms)) p99.9
              from Kafka's timestamp to APNs' answer, \(latency.pushes) pushes at \(whole(latency.perSecond))/s; \
            worker \(tenths(latency.workerMicros)) µs CPU per push

            """
    }

    /// The median of several rounds, followed by each round's value.
    private var throughputText: String {
        let what = settings.sendsNothing ? "member" : "push"
        let rate = Self.median(throughput.map(\.perSecond)) ?? 0
        var text = "\nthroughput   \(Self.whole(rate)) \(what)\(settings.sendsNothing ? "s" : "es")/s"
        text += " (\(throughput.map { Self.tenths($0.seconds) }.joined(separator: ", ")) s"
        text += " for \(settings.recipients)\(settings.group.map { " in groups of \($0)" } ?? ""))\n"
        text += "  CPU per \(what), µs\(throughput.count > 1 ? ", median of \(throughput.count) rounds" : "")\n"
        if let scope = settings.scope { text += "  (\(scope))\n" }
        text += Self.row("worker", throughput.map(\.workerMicros))
        for name in threadNames {
            let micros = throughput.map { $0.threadMicros(name) }
            if Self.median(micros) ?? 0 >= 0.05 { text += Self.row("  " + name, micros) }
        }
        text += Self.row("redis-server", throughput.map { $0.micros($0.redisNanos) })
        text += Self.row("simulator", throughput.map { $0.micros($0.simulatorNanos) })
        text += Self.row("h2load", throughput.indices.compactMap(h2loadMicros))
        let peak = throughput.map(\.peakBytes).max() ?? 0
        text += "  worker's memory, peak: \(Self.megabytes(peak))\n"
        for outcome in throughput where !isComplete(outcome) {
            text += "  ✗ \(settings.pushes) pushes expected, \(outcome.pushes) accepted, "
            text += "\(outcome.acceptedByServer) at the server\n"
        }
        return text
    }

    /// In the first round's order, the busiest first.
    private var threadNames: [String] { throughput.first?.workerThreads.map(\.name) ?? [] }

    private static func row(_ name: String, _ rounds: [Double]) -> String {
        guard let median = median(rounds) else { return "" }
        let number = tenths(median)
        return "    " + name + String(repeating: " ", count: max(1, 24 - name.count))
            + String(repeating: " ", count: max(0, 7 - number.count)) + number + each(rounds) + "\n"
    }

    /// The text after a median: each round's value. Empty for a single round.
    private static func each(_ rounds: [Double]) -> String {
        rounds.count > 1 ? "    " + rounds.map(tenths).joined(separator: " ") : ""
    }

    static func tenths(_ value: Double) -> String {
        let scaled = (value * 100).rounded() / 100
        return "\(scaled)"
    }

    /// The number with so many digits after the point; "-" for not-a-number.
    static func fixed(_ value: Double, digits: Int) -> String {
        var scale = 1
        for _ in 0..<digits { scale *= 10 }
        let scaled = (value * Double(scale)).rounded()
        guard scaled.magnitude < 1e15 else { return "-" }
        let (whole, rest) = Int(scaled.magnitude).quotientAndRemainder(dividingBy: scale)
        guard digits > 0 else { return "\(whole)" }
        let tail = "\(rest)"
        return (scaled < 0 ? "-" : "") + "\(whole)." + String(repeating: "0", count: digits - tail.count) + tail
    }

    static func whole(_ value: Double) -> String { "\(Int(value.rounded()))" }

    static func megabytes(_ bytes: Int) -> String { "\(tenths(Double(bytes) / 1_048_576)) MiB" }

    // MARK: - JSON

    var json: String {
        var writer = JSONWriter(reservingCapacity: 2048)
        writer.beginObject()
        writer.member("events", Int64(settings.events))
        writer.member("users", Int64(settings.users))
        writer.member("shards", Int64(settings.shards))
        if let group = settings.group { writer.member("group", Int64(group)) }
        writer.member("muted", settings.isMuted)
        writer.member("unsent", settings.isUnsent)
        writer.member("in_flight", Int64(settings.inFlight))
        writer.member("results", settings.results)
        writer.member("complete", isComplete)
        writer.key("binds_per_s")
        writer.double(bindsPerSecond.rounded())
        writer.key("throughput")
        writer.beginArray()
        for outcome in throughput { Self.write(outcome, to: &writer) }
        writer.endArray()
        writer.key("h2load")
        writer.beginArray()
        for outcome in h2load {
            Self.write(
                [
                    ("requests", Double(outcome.requests)), ("per_s", outcome.perSecond), ("cpu_us", outcome.micros),
                    ("simulator_cpu_us", outcome.simulatorMicros),
                ], to: &writer)
        }
        writer.endArray()
        Self.write("worker_per_h2load", ratio, to: &writer)
        if !stages.isEmpty {
            writer.key("where")
            writer.beginObject()
            stages.write(to: &writer)
            writer.endObject()
        }
        if let latency {
            writer.key("latency")
            Self.write(
                [
                    ("pushes", Double(latency.pushes)), ("per_s", latency.perSecond), ("p50_ms", latency.p50Ms),
                    ("p99_ms", latency.p99Ms), ("p999_ms", latency.p999Ms), ("worker_cpu_us", latency.workerMicros),
                ], to: &writer)
        }
        if let memory {
            writer.key("memory")
            Self.write(
                [
                    ("waiting", Double(memory.waiting)), ("held", Double(memory.held)),
                    ("bytes", Double(memory.bytes)), ("idle_bytes", Double(memory.idleBytes)),
                    ("bytes_each", memory.bytesEach),
                ], to: &writer)
        }
        writer.endObject()
        return String(decoding: writer.bytes, as: UTF8.self) + "\n"
    }

    static func write(_ outcome: ThroughputPhase.Outcome, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("pushes", Int64(outcome.pushes))
        writer.member("recipients", Int64(outcome.recipients))
        writer.member("accepted_by_server", Int64(outcome.acceptedByServer))
        write("seconds", outcome.seconds, to: &writer)
        write("per_s", outcome.perSecond, to: &writer)
        write("worker_cpu_us", outcome.workerMicros, to: &writer)
        write("redis_cpu_us", outcome.micros(outcome.redisNanos), to: &writer)
        write("simulator_cpu_us", outcome.micros(outcome.simulatorNanos), to: &writer)
        writer.member("worker_peak_bytes", Int64(outcome.peakBytes))
        writer.key("worker_threads_cpu_us")
        writer.beginObject()
        for thread in outcome.workerThreads {
            writer.key(escaping: thread.name)
            writer.double((outcome.micros(thread.nanos) * 1000).rounded() / 1000)
        }
        writer.endObject()
        writer.endObject()
    }

    static func write(_ members: [(StaticString, Double?)], to writer: inout JSONWriter) {
        writer.beginObject()
        for (name, value) in members { write(name, value, to: &writer) }
        writer.endObject()
    }

    static func write(_ name: StaticString, _ value: Double?, to writer: inout JSONWriter) {
        guard let value else { return }
        writer.key(name)
        writer.double((value * 1000).rounded() / 1000)
    }
}

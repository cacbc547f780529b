// SPDX-License-Identifier: Apache-2.0
import JSON
import Recording

/// The results of a bench, as text for people and as one JSON object.
struct BenchReport: JudgedReport {
    var settings: BenchSettings
    var origin: ReportOrigin?
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
    var succeeded: Bool { throughput.allSatisfy(isComplete) }

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
        var text = "\nbinds        \(BenchText.rounded(bindsPerSecond)) records/s (\(settings.users) users)\n"
        text += throughputText
        if !stages.isEmpty { text += stages.text(per: settings.sendsNothing ? "member" : "push") }
        if let ratio { text += "\nworker / h2load   \(BenchText.tenths(ratio))\(Self.each(ratios))\n" }
        if h2load.isEmpty { text += "\nh2load is not installed (nghttp2-client): no ratio\n" }
        if let latency { text += Self.text(latency) }
        if let memory {
            text += "\nmemory       \(BenchText.megabytes(memory.bytes))"
            text += " with \(memory.held) of \(memory.waiting) pushes held;"
            text += " \(BenchText.megabytes(memory.idleBytes)) idle"
            if let each = memory.bytesEach { text += "; \(BenchText.rounded(each)) bytes each" }
            text += "\n"
        }
        return text
    }

    private static func text(_ latency: LatencyPhase.Outcome) -> String {
        func ms(_ value: Double?) -> String { value.map { "\(BenchText.tenths($0)) ms" } ?? "none" }
        return """

            latency      \(ms(latency.p50Ms)) p50, \(ms(latency.p99Ms)) p99, \(ms(latency.p999Ms)) p99.9
              from Kafka's timestamp to APNs' answer, \(latency.pushes) pushes at \(BenchText.rounded(latency.perSecond))/s; \
            worker \(BenchText.tenths(latency.workerMicros)) µs CPU per push

            """
    }

    /// The median of several rounds, followed by each round's value.
    private var throughputText: String {
        let what = settings.sendsNothing ? "member" : "push"
        let rate = Self.median(throughput.map(\.perSecond)) ?? 0
        var text = "\nthroughput   \(BenchText.rounded(rate)) \(what)\(settings.sendsNothing ? "s" : "es")/s"
        text += " (\(throughput.map { BenchText.tenths($0.seconds) }.joined(separator: ", ")) s"
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
        text += "  worker's memory, peak: \(BenchText.megabytes(peak))\n"
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
        let number = BenchText.tenths(median)
        return "    " + BenchText.name(name, 24) + BenchText.column(number, 7) + each(rounds) + "\n"
    }

    /// The text after a median: each round's value. Empty for a single round.
    private static func each(_ rounds: [Double]) -> String {
        rounds.count > 1 ? "    " + rounds.map(BenchText.tenths).joined(separator: " ") : ""
    }

    // MARK: - JSON

    var json: String {
        JSONWriter.line { writer in
            origin?.write(to: &writer)
            writer.load(settings)
            writer.member("unsent", settings.isUnsent)
            writer.count("in_flight", settings.inFlight)
            writer.member("results", settings.results)
            writer.member("complete", succeeded)
            writer.figure("binds_per_s", bindsPerSecond.rounded())
            writer.objects("throughput", throughput) { $1.write(to: &$0) }
            writer.objects("h2load", h2load) { writer, outcome in
                writer.figures([
                    ("requests", Double(outcome.requests)), ("per_s", outcome.perSecond), ("cpu_us", outcome.micros),
                    ("simulator_cpu_us", outcome.simulatorMicros),
                ])
            }
            writer.figure("worker_per_h2load", ratio)
            if !stages.isEmpty { writer.object("where") { stages.write(to: &$0) } }
            if let latency { writer.object("latency") { latency.write(to: &$0) } }
            if let memory { writer.object("memory") { memory.write(to: &$0) } }
        }
    }
}

extension LatencyPhase.Outcome {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.figures([
            ("pushes", Double(pushes)), ("per_s", perSecond), ("p50_ms", p50Ms), ("p99_ms", p99Ms),
            ("p999_ms", p999Ms), ("worker_cpu_us", workerMicros),
        ])
    }
}

extension MemoryPhase.Outcome {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.figures([
            ("waiting", Double(waiting)), ("held", Double(held)), ("bytes", Double(bytes)),
            ("idle_bytes", Double(idleBytes)), ("bytes_each", bytesEach),
        ])
    }
}

extension ThroughputPhase.Outcome {
    func write(to writer: inout JSONWriter) {
        writer.count("pushes", pushes)
        writer.count("recipients", recipients)
        writer.count("accepted_by_server", acceptedByServer)
        writer.figures([
            ("seconds", seconds), ("per_s", perSecond), ("worker_cpu_us", workerMicros),
            ("redis_cpu_us", micros(redisNanos)), ("simulator_cpu_us", micros(simulatorNanos)),
        ])
        writer.count("worker_peak_bytes", peakBytes)
        writer.object("worker_threads_cpu_us") { writer in
            for thread in workerThreads {
                writer.key(escaping: thread.name)
                writer.figure(micros(thread.nanos))
            }
        }
    }
}

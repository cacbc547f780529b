// SPDX-License-Identifier: Apache-2.0
import Glibc
import JSON
import Processes

/// A `carillon run` in a process of its own, observed through its operator's pages.
final class BenchWorker {
    let process: ServerProcess
    private let port: UInt16

    /// Starts a worker and waits until it is ready: it has partitions, and Redis and APNs answer. The embedded broker
    /// may make a group wait longer than one session timeout.
    static func start(
        _ program: String? = nil, configuration path: String, timesStages: Bool = false
    ) async throws -> BenchWorker {
        let worker = try BenchWorker(program, configuration: path, timesStages: timesStages)
        for _ in 0..<2_400 {
            if try worker.page("/readyz").status == 200 { return worker }
            try await Task.sleep(for: .milliseconds(50), tolerance: .zero)
        }
        throw SetupFault("the worker did not become ready: \(try worker.page("/readyz").text)")
    }

    /// Starts it and returns when its pages answer. It may not be connected to anything yet.
    ///
    /// - Parameter program: the path of a carillon executable; nil for this program.
    init(_ program: String? = nil, configuration path: String, timesStages: Bool = false) throws {
        process = try ServerProcess(
            try program ?? Self.ownPath(), ["run", "--config", path] + (timesStages ? ["--stage-times"] : []),
            readyLine: "\"started\"")
        port = try process.number(after: "\"http\":\"http://127.0.0.1:")
    }

    static func ownPath() throws(SetupFault) -> String {
        var path = [CChar](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &path, path.count)
        guard count > 0 else { throw SetupFault("cannot find this program's own file") }
        return String(decoding: path[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    var usage: ProcessUsage { ProcessUsage(pid: process.pid) }

    var memory: (now: Int, peak: Int) { ProcessUsage.memory(pid: process.pid) ?? (0, 0) }

    func metrics() throws -> MetricsText { MetricsText(try page("/metrics").text) }

    func status() throws -> JSONTree { try JSONTree(parsing: try page("/statusz").body) }

    private func page(_ path: String) throws(SetupFault) -> HTTPClient.Answer {
        // Keeps reading, so that the pipe does not fill up.
        let output = process.takeOutput()
        guard process.isRunning else { throw SetupFault("the worker ended: \(output.suffix(1000))") }
        return try HTTPClient.get(port: port, path)
    }

    /// Drains the worker. Throws if it does not end with exit code 0.
    func stop() throws(SetupFault) {
        guard process.stop(graceMs: 20_000) else {
            throw SetupFault("the worker did not end in order: \(process.takeOutput().suffix(1000))")
        }
    }

    /// Ends it at once, with unfinished work.
    func kill() { process.stop(graceMs: 0) }
}

extension MetricsText {
    var consumed: Int { Int(sum("carillon_events_consumed_total")) }
    /// Verdicts of recipients and devices.
    var decided: Int { Int(sum("carillon_decisions_total")) }
    var settled: Int { Int(sum("carillon_events_settled_total")) }
    /// Recipients that wait for no answer from Redis; 0 while any is asked for.
    var atRest: Int {
        sum("carillon_redis_pipeline_depth") == 0 ? Int(sum("carillon_pending_recipients")) : 0
    }
    var accepted: Int { Int(sum("carillon_decisions_total", "verdict=\"accepted\"")) }
}

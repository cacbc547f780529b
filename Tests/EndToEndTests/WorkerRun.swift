// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import LocalServers
import Processes
import Support

/// A worker as a process of its own, by the built binary: what a test kills, and asks by the operator's pages.
final class WorkerRun: Sendable {
    /// Where the operator's pages are.
    let port: UInt16
    private let world: LocalCluster
    private let process: ServerProcess
    private let logFile: String
    /// Of both input topics.
    private let partitions: Double

    /// Starts `carillon run` in a stage's world, and returns when it has started.
    ///
    /// - Parameters:
    ///   - defect: a `TestBreak` to run with; empty: none.
    ///   - option: of the command, beside its configuration; empty: none.
    ///   - preload: a library to load first; empty: none.
    init(_ stage: Stage, defect: String = "", option: String = "", preload: String = "") async throws {
        let world = stage.world
        let configuration = try world.writeConfiguration()
        let logFile = world.folder.file("run-\(UInt64.random(in: 0 ... .max)).log")
        // Its log goes to a file: nobody reads the pipe of a child that lives for minutes.
        let script =
            #"exec 2>"$2"; echo begun; export CARILLON_TEST_BREAK="$3" CARILLON__LOG__LEVEL=info; "#
            + #"[ -z "$5" ] || export LD_PRELOAD="$5"; exec "$0" run --config "$1" $4"#
        let words = ["-c", script, CommandRun.binary.path, configuration, logFile, defect, option, preload]
        let process = try await offPool { try ServerProcess("sh", words, readyLine: "begun") }
        var port: UInt16?
        try await until("the worker has started") {
            guard process.isRunning else { throw SetupFault("the worker ended at once: \(try Self.text(logFile))") }
            port = try Self.port(Self.text(logFile))
            return port != nil
        }
        guard let port else { throw SetupFault("the worker has no port") }
        self.port = port
        partitions = Double(2 * world.settings.partitions)
        self.world = world
        self.process = process
        self.logFile = logFile
    }

    /// The log so far.
    var logText: String { get throws { try Self.text(logFile) } }

    var isRunning: Bool { process.isRunning }

    /// Its exit code once it has ended; nil while it runs, and after a signal.
    var exitCode: Int32? { process.exitCode }

    /// Resident memory now and at its highest, in bytes; nil if it has ended.
    var memory: (now: Int, peak: Int)? { ProcessUsage.memory(pid: process.pid) }

    /// Waits until its consumers have all partitions, and all user state that was written before its start is applied and
    /// committed.
    ///
    /// The number of settled records does not tell that: after a rebalance some are read again, and count twice. While one of
    /// its consumers has no partitions yet, a rebalance is to come, and the mock takes no commits during one.
    func awaitState() async throws {
        let (port, partitions) = (port, partitions)
        try await world.whileGroupForms {
            try await until("it has all partitions and has applied all user state") {
                let isReady = try await offPool { try HTTPClient.get(port: port, "/readyz").status == 200 }
                let text = try await self.metricsText()
                return isReady && MetricsText(text).sum("carillon_kafka_assigned_partitions") == partitions
                    && text.contains(#"carillon_kafka_lag_records{topic="im.user-state"} 0\#n"#)
            }
        }
    }

    func metrics() async throws -> MetricsText { MetricsText(try await metricsText()) }

    /// The status of an operator's page.
    func answers(_ path: String) async throws -> Int {
        let port = port
        return try await offPool { try HTTPClient.get(port: port, path).status }
    }

    private func metricsText() async throws -> String {
        let port = port
        return try await offPool { try HTTPClient.get(port: port, "/metrics").text }
    }

    func kill() async {
        process.send(SIGKILL)
        let process = process
        _ = try? await offPool { process.stop() }
    }

    /// The order to drain; it does not wait.
    func terminate() { process.send(SIGTERM) }

    /// Drains and waits for the end; gives the exit code.
    func drain() async throws -> Int32? {
        terminate()
        try await until("the worker has ended") { !process.isRunning }
        return process.exitCode
    }

    private static func text(_ file: String) throws -> String { String(decoding: try readFile(file), as: UTF8.self) }

    /// From the line that tells of the start.
    private static func port(_ log: String) -> UInt16? {
        guard let line = log.split(separator: "\n").first(where: { $0.contains(#""msg":"started""#) }),
            let place = line.firstRange(of: "127.0.0.1:")
        else { return nil }
        return UInt16(line[place.upperBound...].prefix { $0.isNumber })
    }
}

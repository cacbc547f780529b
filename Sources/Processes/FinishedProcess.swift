// SPDX-License-Identifier: Apache-2.0
import Glibc

/// A program that has ended: its output and its cost.
public struct FinishedProcess: Sendable {
    /// The exit code; nil after a signal.
    public var exitCode: Int32?
    /// Standard output and error together.
    public var output: String
    /// CPU time of all its threads, as the kernel reports it at the end.
    public var userSeconds: Double
    public var systemSeconds: Double

    public var cpuSeconds: Double { userSeconds + systemSeconds }

    /// - Returns: whether a program of that name can be started.
    public static func isOnPath(_ program: String) -> Bool { Spawn.pathOf(program) != nil }

    /// Runs a program and blocks until its end. A cancelled task, or `timeoutSeconds`, ends it early.
    public static func run(
        _ program: String, _ arguments: [String], timeoutSeconds: Int = 120
    ) throws(SetupFault) -> FinishedProcess {
        let child = try Spawn.start(program, arguments)
        defer { close(child.output) }
        var bytes: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 65_536)
        var poller = pollfd(fd: child.output, events: Int16(POLLIN), revents: 0)
        let lookMs: Int32 = 100
        var looksLeft = timeoutSeconds * 1000 / Int(lookMs)
        while true {
            let code = poll(&poller, 1, lookMs)
            if code == 0 { looksLeft -= 1 }
            if Task.isCancelled || looksLeft <= 0 {
                kill(child.pid, SIGKILL)
                break
            }
            guard code > 0 else { continue }
            let count = Glibc.read(child.output, &block, block.count)
            guard count > 0 else { break }
            bytes.append(contentsOf: block[..<count])
        }
        var status: Int32 = 0
        var usage = rusage()
        guard wait4(child.pid, &status, 0, &usage) == child.pid else { throw SetupFault("\(program) was lost") }
        return FinishedProcess(
            exitCode: status & 0x7F == 0 ? status >> 8 & 0xFF : nil, output: String(decoding: bytes, as: UTF8.self),
            userSeconds: seconds(usage.ru_utime), systemSeconds: seconds(usage.ru_stime))
    }

    private static func seconds(_ time: timeval) -> Double {
        Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000
    }
}

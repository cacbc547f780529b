// SPDX-License-Identifier: Apache-2.0
import Glibc
import Telemetry

/// A child process: started, awaited by a line of its output, ended by its id.
public final class ServerProcess: Sendable {
    public let pid: Int32
    private let output: Int32
    private let isEnded = Guarded(false)
    /// The end of its output.
    private let log: Guarded<String>

    private static let logBytesMax = 16_384
    /// Maximum time without output before it is ready.
    private static let readyWithinMs: Int32 = 90_000

    /// Starts a program from PATH and returns when its output contains `readyLine`.
    public init(_ program: String, _ arguments: [String], readyLine: String) throws(SetupFault) {
        let child = try Spawn.start(program, arguments)
        pid = child.pid
        output = child.output
        let seen = Self.read(output, until: readyLine)
        log = Guarded(seen.text)
        if seen.isReady { return }
        stop()
        throw SetupFault("\(program) ended before it was ready: \(seen.text.suffix(600))")
    }

    deinit {
        stop()
        close(output)
    }

    /// Asks the process to end, kills it after `graceMs`, and waits for it. Returns true if it ended by itself with
    /// code 0.
    @discardableResult
    public func stop(graceMs: Int32 = 5000) -> Bool {
        isEnded.withLock { isEnded in
            guard !isEnded else { return false }
            isEnded = true
            kill(pid, SIGCONT)
            kill(pid, SIGTERM)
            // The pipe's end shows the process's end. A time limit protects the parent from a process that does not
            // end.
            var poller = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            var block = [UInt8](repeating: 0, count: 4096)
            while poll(&poller, 1, graceMs) > 0 {
                let count = Glibc.read(output, &block, block.count)
                guard count > 0 else { break }
                // Its last output, for `takeOutput`.
                log.withLock { log in
                    log += String(decoding: block[..<count], as: UTF8.self)
                    if log.utf8.count > 2 * Self.logBytesMax { log = String(log.suffix(Self.logBytesMax)) }
                }
            }
            kill(pid, SIGKILL)
            var status: Int32 = 0
            waitpid(pid, &status, 0)
            return status == 0
        }
    }

    /// Sends a signal.
    public func send(_ signal: Int32) {
        isEnded.withLock { isEnded in
            if !isEnded { kill(pid, signal) }
        }
    }

    /// The newest output, up to about 16 KB. Empties the pipe, so that a child with much output never blocks.
    public func takeOutput() -> String {
        log.withLock { log in
            var poller = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            var block = [UInt8](repeating: 0, count: 4096)
            while poll(&poller, 1, 0) > 0 {
                let count = Glibc.read(output, &block, block.count)
                guard count > 0 else { break }
                log += String(decoding: block[..<count], as: UTF8.self)
                if log.utf8.count > 2 * Self.logBytesMax { log = String(log.suffix(Self.logBytesMax)) }
            }
            return log
        }
    }

    /// The process exists and was not asked to end.
    public var isRunning: Bool {
        isEnded.withLock { isEnded in
            guard !isEnded else { return false }
            var facts = siginfo_t()
            // Checks without reaping, because `stop` waits for the process later.
            let code = waitid(P_PID, id_t(pid), &facts, WEXITED | WNOHANG | WNOWAIT)
            return code == 0 && facts.si_signo == 0
        }
    }

    /// The process's exit code; nil while it runs, after a signal, and after `stop` has waited for it.
    public var exitCode: Int32? {
        isEnded.withLock { isEnded -> Int32? in
            guard !isEnded else { return nil }
            var facts = siginfo_t()
            let code = waitid(P_PID, id_t(pid), &facts, WEXITED | WNOHANG | WNOWAIT)
            guard code == 0, facts.si_signo != 0, facts.si_code == CLD_EXITED else { return nil }
            return facts._sifields._sigchld.si_status
        }
    }

    /// Reads until the line appears, the output ends, or the time limit passes without output.
    private static func read(_ fd: Int32, until line: String) -> (text: String, isReady: Bool) {
        var seen = ""
        var block = [UInt8](repeating: 0, count: 4096)
        var poller = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        while !seen.contains(line) {
            guard poll(&poller, 1, readyWithinMs) > 0 else { return (seen, false) }
            let count = Glibc.read(fd, &block, block.count)
            guard count > 0 else { return (seen, false) }
            seen += String(decoding: block[..<count], as: UTF8.self)
        }
        return (seen, true)
    }
}

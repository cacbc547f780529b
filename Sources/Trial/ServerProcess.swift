import Glibc

/// A child process that a trial starts, waits for by a line of its output, and ends by its id.
public final class ServerProcess: Sendable {
    public let pid: Int32
    private let output: Int32
    private let isEnded = Guarded(false)

    /// Starts a program found on PATH and returns when its standard output or error holds `readyLine`.
    public init(_ program: String, _ arguments: [String], readyLine: String) throws(TrialFault) {
        var pipes: [Int32] = [-1, -1]
        guard pipe(&pipes) == 0 else { throw TrialFault("cannot make a pipe") }
        // Other children must not inherit either end, or this one's end would go unseen.
        for end in pipes { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, pipes[1], 1)
        posix_spawn_file_actions_adddup2(&actions, pipes[1], 2)
        // Dispatch's threads block signals and a child inherits that: it would never see SIGTERM.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var words: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) }
        words.append(nil)
        var child = pid_t()
        let code = posix_spawnp(&child, program, &actions, &attributes, &words, environ)
        for word in words { free(word) }
        posix_spawn_file_actions_destroy(&actions)
        posix_spawnattr_destroy(&attributes)
        close(pipes[1])
        guard code == 0 else {
            close(pipes[0])
            throw TrialFault("cannot start \(program): errno \(code)")
        }
        pid = child
        output = pipes[0]
        guard let seen = Self.read(output, until: readyLine) else { return }
        stop()
        throw TrialFault("\(program) ended before it was ready: \(seen.suffix(300))")
    }

    deinit {
        stop()
        close(output)
    }

    /// Asks the process to end, makes it end after five seconds, and waits for it.
    public func stop() {
        isEnded.withLock { isEnded in
            guard !isEnded else { return }
            isEnded = true
            kill(pid, SIGCONT)
            kill(pid, SIGTERM)
            // The pipe's end tells the process's end; a limit keeps a stubborn one from hanging the trial.
            var poller = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            var block = [UInt8](repeating: 0, count: 4096)
            while poll(&poller, 1, 5000) > 0, Glibc.read(output, &block, block.count) > 0 {}
            kill(pid, SIGKILL)
            var status: Int32 = 0
            waitpid(pid, &status, 0)
        }
    }

    /// Sends a signal.
    public func send(_ signal: Int32) {
        isEnded.withLock { isEnded in
            if !isEnded { kill(pid, signal) }
        }
    }

    /// Reads until the line is there; else gives what was read before the end or thirty seconds' silence.
    private static func read(_ fd: Int32, until line: String) -> String? {
        var seen = ""
        var block = [UInt8](repeating: 0, count: 4096)
        var poller = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        while !seen.contains(line) {
            guard poll(&poller, 1, 30_000) > 0 else { return seen }
            let count = Glibc.read(fd, &block, block.count)
            guard count > 0 else { return seen }
            seen += String(decoding: block[..<count], as: UTF8.self)
        }
        return nil
    }
}

import Glibc

/// Starts programs whose standard output and error come back together over one pipe.
enum Spawn {
    /// The caller owns both: the process, to be waited for, and the descriptor, to be closed.
    static func start(
        _ program: String, _ arguments: [String]
    ) throws(TrialFault) -> (pid: Int32, output: Int32) {
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
        // A group of its own: ctrl-C at the terminal is for the parent, which ends its children in order.
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
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
            throw TrialFault("cannot start \(program): \(String(cString: strerror(code)))")
        }
        return (child, pipes[0])
    }
}

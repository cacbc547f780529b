// SPDX-License-Identifier: Apache-2.0
import CSpawn
import Glibc
import Telemetry

/// The thread that starts one child process and stays until that child has ended.
///
/// `@unchecked Sendable`: `child` and `code` are written before the semaphore is signalled and read after the wait.
final class ChildKeeper: @unchecked Sendable {
    private let words: [String]
    private let output: Int32
    private var child = pid_t()
    private var code: Int32 = 0
    private let isStarted: UnsafeMutablePointer<sem_t>

    /// - Parameter output: the descriptor for standard output and error.
    init(words: [String], output: Int32) {
        self.words = words
        self.output = output
        isStarted = .allocate(capacity: 1)
        sem_init(isStarted, 0, 0)
    }

    deinit {
        sem_destroy(isStarted)
        isStarted.deallocate()
    }

    /// Starts the thread, which starts the child. Returns the child's process id.
    func start() throws(SetupFault) -> pid_t {
        var thread = pthread_t()
        let context = Unmanaged.passRetained(self)
        let failed = pthread_create(
            &thread, nil,
            { context in
                if let context { Unmanaged<ChildKeeper>.fromOpaque(context).takeRetainedValue().keep() }
                return nil
            }, context.toOpaque())
        guard failed == 0 else {
            context.release()
            throw SetupFault("no thread for it")
        }
        pthread_detach(thread)
        while sem_wait(isStarted) != 0 {}
        guard code == 0 else { throw SetupFault(String(cString: strerror(code))) }
        return child
    }

    private func keep() {
        code = spawn()
        let (pid, code) = (child, code)
        sem_post(isStarted)
        guard code == 0 else { return }
        // Leaves the child to be reaped by its owner. If the owner was first, there is nothing to wait for.
        var facts = siginfo_t()
        while waitid(P_PID, id_t(pid), &facts, WEXITED | WNOWAIT) != 0, errno == EINTR {}
    }

    private func spawn() -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, output, 1)
        posix_spawn_file_actions_adddup2(&actions, output, 2)
        // Here and not only at the exec, which closes them after `posix_spawnp` has returned.
        posix_spawn_file_actions_addclosefrom_np(&actions, 3)
        // Dispatch's threads block signals, and a child inherits the mask. Without this reset it would never see
        // SIGTERM.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        // Its own process group, so that ctrl-C at the terminal reaches only the parent, which ends its children in
        // order.
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
        arguments.append(nil)
        defer { for argument in arguments { free(argument) } }
        return ChildStart.lock.withLock { _ in
            posix_spawnp(&child, words[0], &actions, &attributes, &arguments, environ)
        }
    }
}

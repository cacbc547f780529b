// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Starts programs with standard output and error on one common pipe.
///
/// A child never outlives this process, however this process ends: the kernel kills the child with the thread that
/// started it (prctl(2), PR_SET_PDEATHSIG, set by util-linux' setpriv). So each child has a thread that lives as long.
enum Spawn {
    struct Child {
        let pid: Int32
        let output: Int32
    }

    /// The caller owns both: the process, which it must wait for, and the descriptor, which it must close.
    static func start(_ program: String, _ arguments: [String]) throws(SetupFault) -> Child {
        guard let path = pathOf(program) else { throw SetupFault("cannot start \(program): not found on PATH") }
        var pipes: [Int32] = [-1, -1]
        guard pipe(&pipes) == 0 else { throw SetupFault("cannot make a pipe") }
        // Other children must not inherit either end, or the end of this pipe would not be noticed.
        for end in pipes { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(pipes[1]) }
        let keeper = ChildKeeper(words: ["setpriv", "--pdeathsig", "KILL", "--", path] + arguments, output: pipes[1])
        do throws(SetupFault) {
            return Child(pid: try keeper.start(), output: pipes[0])
        } catch {
            close(pipes[0])
            throw SetupFault("cannot start \(program): \(error)")
        }
    }

    /// The program's path, found like in a shell; nil if it cannot be started.
    static func pathOf(_ program: String) -> String? {
        if program.contains("/") { return access(program, X_OK) == 0 ? program : nil }
        let folders = getenv("PATH").map { String(cString: $0) } ?? ""
        return folders.split(separator: ":").lazy.map { "\($0)/\(program)" }.first { access($0, X_OK) == 0 }
    }
}

// SPDX-License-Identifier: Apache-2.0
import Glibc
import Processes
import Telemetry

/// Ends the process if its orderly end hangs. It has its own thread, so that no loop can delay it.
public enum EndWatchdog {
    /// Extra time for an end that is nearly complete at its time limit.
    private static let graceSeconds = 0.5

    /// Calls `expire` once when `seconds` have passed, on another thread; it ends the process as a rule.
    public static func arm(seconds: Double, expire: @escaping @Sendable () -> Void) {
        _ = runDetached {
            sleep(seconds + graceSeconds)
            expire()
        }
    }

    /// Ends the process with a code, and nothing is waited for.
    public static func end(_ code: ExitCode) -> Never {
        TemporaryFolder.removeLiving()
        _exit(code.rawValue)
    }

    private static func sleep(_ seconds: Double) {
        let nanos = Int(max(seconds, 0) * 1_000_000_000)
        var wait = timespec(tv_sec: nanos / 1_000_000_000, tv_nsec: nanos % 1_000_000_000)
        var left = timespec()
        while nanosleep(&wait, &left) != 0, errno == EINTR { wait = left }
    }
}

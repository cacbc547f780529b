// SPDX-License-Identifier: Apache-2.0
import Console
import Support
import Testing

@Suite(.timeLimit(.minutes(1))) struct EndWatchdogTests {
    /// The thread that armed it is held up: the watchdog has one of its own.
    @Test func anEndThatHangsIsCutShort() async throws {
        let ends = Facts<Bool>()
        EndWatchdog.arm(seconds: 0.1) { ends.record(true) }
        _ = try await ends.first { $0 }
    }
}

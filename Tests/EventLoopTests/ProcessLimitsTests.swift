// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Glibc
import Testing

struct ProcessLimitsTests {
    @Test func afterItsWordTheProcessLeavesNoCoreAndNobodyReadsItsMemory() async {
        await #expect(processExitsWith: .success) {
            guard !ProcessLimits.dumpsAreForbidden else { exit(1) }
            ProcessLimits.forbidDumps()
            exit(ProcessLimits.dumpsAreForbidden ? 0 : 2)
        }
    }

    @Test func theSoftLimitOfDescriptorsIsRaisedToTheHardOne() async {
        await #expect(processExitsWith: .success) {
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            limit.rlim_cur = 256
            limit.rlim_max = min(limit.rlim_max, 70_000)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            exit(ProcessLimits.raiseDescriptors() == min(Int(limit.rlim_max), 65_536) ? 0 : 1)
        }
    }
}

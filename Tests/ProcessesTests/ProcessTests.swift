// SPDX-License-Identifier: Apache-2.0
import Glibc
import Testing

@testable import Processes

@Suite struct ProcessTests {
    @Test func aThreadNameMayHoldParenthesesAndBlanks() {
        let stat = "77 (rdk:(a) b) S 1 77 77 0 -1 4194304 85 0 0 0 12 30 0 0 20 0 1 0"
        let exact = ProcessUsage.thread(77, stat: stat, schedstat: "604830946 218830694 413\n")
        #expect(exact == ProcessUsage.Thread(id: 77, name: "rdk:(a) b", cpuNanos: 604_830_946, delayNanos: 218_830_694))
    }

    @Test func withoutSchedstatTicksOfUserAndSystemTimeCount() {
        let stat = "77 (shard-0) S 1 77 77 0 -1 4194304 85 0 0 0 12 30 0 0 20 0 1 0"
        let coarse = ProcessUsage.thread(77, stat: stat, schedstat: nil)
        #expect(coarse?.cpuNanos == 420_000_000)
        #expect(ProcessUsage.thread(77, stat: "77 (shard", schedstat: nil) == nil)
        #expect(ProcessUsage.thread(77, stat: "77 (shard) S 1", schedstat: "") == nil)
    }

    @Test func usageIsTakenBetweenTwoLooksAndSummedByName() {
        func usage(_ threads: [(Int32, String, UInt64)]) -> ProcessUsage {
            ProcessUsage(threads: threads.map { ProcessUsage.Thread(id: $0.0, name: $0.1, cpuNanos: $0.2) })
        }
        let before = usage([(1, "a", 100), (2, "b", 50), (3, "gone", 9)])
        let after = usage([(1, "a", 130), (2, "b", 90), (4, "b", 25)])
        let sums = after.sinceByName(before)
        #expect(sums.map(\.name) == ["b", "a"])
        #expect(sums.map(\.nanos) == [65, 30])
    }

    @Test func ownThreadsAndMemoryAreSeen() throws {
        let usage = ProcessUsage(pid: getpid())
        #expect(!usage.threads.isEmpty)
        let memory = try #require(ProcessUsage.memory(pid: getpid()))
        #expect(memory.now > 0 && memory.peak >= memory.now)
        #expect(ProcessUsage.kilobytes("VmRSS", in: "VmHWM:\t  12 kB\nVmRSS:\t    7 kB\n") == 7)
        #expect(ProcessUsage.memory(pid: -1) == nil)
    }

    @Test func metricsAreSummedOverSeriesOfTheNameAndLabelAlone() {
        let metrics = MetricsText(
            """
            # HELP a_total something
            a_total{app="x",verdict="accepted"} 3
            a_total{app="y",verdict="accepted"} 4
            a_total{app="y",verdict="rejected"} 8
            a_total_more 100
            b 2.5
            """)
        #expect(metrics.sum("a_total", "verdict=\"accepted\"") == 7)
        #expect(metrics.sum("a_total") == 15)
        #expect(metrics.sum("b") == 2.5)
        #expect(metrics.sum("c") == 0)
    }

    @Test func aFoldersEntriesAreReadWhateverTheLengthOfTheirNames() throws {
        let folder = try TemporaryFolder()
        let names = (1...255).map { String(repeating: "n", count: $0) }
        for name in names { try folder.write([], to: name) }
        let entries = try #require(FolderEntry.all(in: folder.path))
        #expect(entries.map(\.name).sorted() == names)
        #expect(entries.allSatisfy { !$0.isFolder })
        #expect(FolderEntry.all(in: folder.file("missing")) == nil)
    }

    @Test func anEndedProcessReportsOutputExitCodeAndTime() throws {
        let process = try FinishedProcess.run("sh", ["-c", "echo out; echo err >&2; exit 3"])
        #expect(process.exitCode == 3)
        #expect(process.output == "out\nerr\n")
        #expect(process.cpuSeconds > 0 && process.cpuSeconds < 10)
        #expect(FinishedProcess.isOnPath("sh"))
        #expect(!FinishedProcess.isOnPath("no-such-program-here"))
        #expect(throws: SetupFault.self) { try FinishedProcess.run("no-such-program-here", []) }
    }
}

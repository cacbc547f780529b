// SPDX-License-Identifier: Apache-2.0
import Foundation
import Processes
import Testing

@testable import Worker

/// The processors that a process may use, from the files of a made-up system.
@Suite struct ProcessorCountTests {
    private static let unified = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw"
    private static let legacy = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct"

    private static func count(
        allowed: String = "0-7", groups: String = "0::/\n", mounts: String = unified, _ files: [String: String] = [:]
    ) throws -> ProcessorCount {
        let folder = try TemporaryFolder()
        let all = files.merging([
            "/proc/self/status":
                "Name:\tcarillon\nCpus_allowed:\tff\nCpus_allowed_list:\t\(allowed)\nMems_allowed:\t1\n",
            "/proc/self/cgroup": groups, "/proc/self/mountinfo": mounts + "\n",
        ]) { $1 }
        for (path, text) in all {
            let url = URL(filePath: folder.path + path)
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: url)
        }
        return ProcessorCount.read(root: folder.path)
    }

    @Test(arguments: [("0", 1), ("0-1", 2), ("0-3,8,10-11", 7), ("5", 1), ("0-127", 128)])
    func affinityIsWhatTasksetAllows(list: String, count: Int) throws {
        let found = try Self.count(allowed: list)
        #expect(found.available == count && found.words == "\(count) by affinity, no CPU quota")
    }

    @Test(arguments: [
        ("150000 100000", 2), ("100000 100000", 1), ("20000 100000", 1), ("max 100000", 8), ("1600000 100000", 8),
        ("broken", 8), ("0 0", 8), ("100000 0", 8),
    ])
    func aQuotaIsRoundedUpAndBoundByAffinity(quota: String, count: Int) throws {
        let found = try Self.count(groups: "0::/a\n", ["/sys/fs/cgroup/a/cpu.max": quota + "\n"])
        #expect(found.available == count)
    }

    @Test func theSmallestQuotaOfAllGroupsAroundCounts() throws {
        let found = try Self.count(
            groups: "0::/system.slice/carillon.service\n",
            [
                "/sys/fs/cgroup/system.slice/cpu.max": "250000 100000",
                "/sys/fs/cgroup/system.slice/carillon.service/cpu.max": "400000 100000",
            ])
        #expect(found.available == 3)
        #expect(found.words == "8 by affinity, a CPU quota of 2.5 in /sys/fs/cgroup/system.slice/cpu.max")
    }

    @Test func theFirstVersionOfGroupsHasItsQuotaInTwoFiles() throws {
        func count(_ quota: String, groups: String = "4:cpu,cpuacct:/a/b\n0::/\n", mount: String = Self.legacy) throws
            -> Int
        {
            try Self.count(
                groups: groups, mounts: mount,
                ["/a/b", ""].reduce(into: [:]) { files, group in
                    files["/sys/fs/cgroup/cpu\(group)/cpu.cfs_quota_us"] =
                        group.isEmpty == (mount == Self.legacy) ? "-1" : quota
                    files["/sys/fs/cgroup/cpu\(group)/cpu.cfs_period_us"] = "50000\n"
                }
            ).available
        }
        #expect(try count("75000") == 2)
        #expect(try count("-1") == 8)
        // A container sees its own group at the mount point, and names it from the machine's root.
        let inner = Self.legacy.replacing(" / /sys", with: " /docker/1 /sys")
        #expect(try count("75000", groups: "4:cpu,cpuacct:/docker/1\n", mount: inner) == 2)
        // Another controller says nothing.
        #expect(try count("75000", groups: "4:memory:/a/b\n") == 8)
    }

    @Test func aSystemThatSaysNothingHasAtLeastOneProcessor() throws {
        let folder = try TemporaryFolder()
        #expect(ProcessorCount.read(root: folder.path).available >= 1)
        #expect(ProcessorCount.present.available >= 1)
    }
}

// SPDX-License-Identifier: Apache-2.0
import Digits
import Glibc
import Telemetry

/// Processors that this process may use: those of its affinity, and no more than the CPU quota of its control group.
public struct ProcessorCount: Equatable, Sendable {
    /// Processors in the affinity mask, which also has the group's `cpuset`.
    public let affinity: Int
    /// The smallest quota of the group and the groups around it, in processors; nil without one.
    public let quota: Quota?

    public struct Quota: Equatable, Sendable {
        public let processors: Double
        /// The file that has it.
        public let path: String
    }

    /// A quota of a part of a processor counts as a whole one: at least one shard must run.
    public var available: Int {
        guard let quota, quota.processors < Double(affinity) else { return affinity }
        return max(1, Int(quota.processors.rounded(.up)))
    }

    /// In words, for operators.
    public var words: String {
        let mask = "\(affinity) by affinity"
        guard let quota else { return "\(mask), no CPU quota" }
        let count = (quota.processors * 100).rounded() / 100
        return "\(mask), a CPU quota of \(Int(exactly: count).map { String($0) } ?? String(count)) in \(quota.path)"
    }

    /// As of the first use: shards keep their number until a restart.
    public static let present = read(root: "")

    /// - Parameter root: a folder in place of `/`, for tests.
    static func read(root: String) -> ProcessorCount {
        ProcessorCount(
            affinity: affinity(root), quota: groups(root).compactMap(\.quota).min { $0.processors < $1.processors })
    }

    /// `Cpus_allowed_list:	0-3,8` (proc(5)).
    private static func affinity(_ root: String) -> Int {
        let name = "Cpus_allowed_list:"
        let line = text(root + "/proc/self/status").split(separator: "\n").first { $0.hasPrefix(name) } ?? ""
        let ranges = line.dropFirst(name.count).split { $0 == "," || $0.isWhitespace }
        let count = ranges.reduce(0) { sum, range in
            let ends = range.split(separator: "-").compactMap { UInt16($0) }
            guard let first = ends.first, let last = ends.last, last >= first else { return sum }
            return sum + Int(last - first) + 1
        }
        return count > 0 ? count : max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
    }

    // MARK: - Control groups (cgroups(7))

    /// One hierarchy with the CPU controller: where it is mounted, and the process's place in it.
    private struct Group {
        let root: String
        let mount: String
        /// The names from the mount point to the process's own group.
        let names: [Substring]
        let isUnified: Bool

        /// The smallest quota on the way from the mount point to the group. A group's processes share the quota of each group
        /// around it.
        var quota: Quota? {
            (0...names.count).compactMap { depth in
                let folder = ([mount] + names.prefix(depth).map(String.init)).joined(separator: "/")
                return isUnified ? unified(folder) : legacy(folder)
            }.min { $0.processors < $1.processors }
        }

        /// `max 100000`, or `150000 100000`: microseconds of work in each period.
        private func unified(_ folder: String) -> Quota? {
            let path = "\(folder)/cpu.max"
            let words = text(root + path).split(whereSeparator: \.isWhitespace)
            guard words.count == 2 else { return nil }
            return quota(words[0], words[1], path)
        }

        /// A quota of -1 is none.
        private func legacy(_ folder: String) -> Quota? {
            let path = "\(folder)/cpu.cfs_quota_us"
            let period = text(root + "\(folder)/cpu.cfs_period_us")
            return quota(text(root + path).split(whereSeparator: \.isWhitespace).first ?? "", period[...], path)
        }

        private func quota(_ micros: Substring, _ period: Substring, _ path: String) -> Quota? {
            guard let micros = Double(micros), micros > 0,
                let period = period.split(whereSeparator: \.isWhitespace).first.flatMap({ Double($0) }), period > 0
            else { return nil }
            return Quota(processors: micros / period, path: path)
        }
    }

    private static func text(_ path: String) -> String {
        guard case .bytes(let bytes) = SmallFile.read(path) else { return "" }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func groups(_ root: String) -> [Group] {
        let mounts = text(root + "/proc/self/mountinfo").split(separator: "\n").compactMap(Mount.init)
        return text(root + "/proc/self/cgroup").split(separator: "\n").flatMap { line -> [Group] in
            // `4:cpu,cpuacct:/a/b`, or `0::/a/b` of the unified hierarchy.
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard parts.count == 3 else { return [] }
            let isUnified = parts[1].isEmpty
            guard isUnified || parts[1].split(separator: ",").contains("cpu") else { return [] }
            return mounts.filter { $0.isUnified == isUnified }.compactMap { mount in
                mount.names(of: parts[2]).map {
                    Group(root: root, mount: mount.point, names: $0, isUnified: isUnified)
                }
            }
        }
    }

    /// A line of `/proc/self/mountinfo` (proc(5)): `32 31 0:29 /docker/1 /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu`.
    private struct Mount {
        /// The group that is mounted there: in a container its own one, elsewhere the topmost.
        let group: Substring
        let point: String
        let isUnified: Bool

        init?(_ line: Substring) {
            let words = line.split(separator: " ")
            guard let dash = words.firstIndex(of: "-"), dash >= 6, words.count > dash + 3 else { return nil }
            let type = words[dash + 1]
            guard type == "cgroup2" || type == "cgroup" && words[dash + 3].split(separator: ",").contains("cpu") else {
                return nil
            }
            isUnified = type == "cgroup2"
            group = words[3]
            point = String(words[4])
        }

        /// The names from the mount point to a group; nil if the group is not below it.
        func names(of path: Substring) -> [Substring]? {
            let own = group.split(separator: "/"), names = path.split(separator: "/")
            // With a namespace of its own the process sees the mounted group as the topmost.
            if own.isEmpty || own.contains("..") || path == "/" { return names.contains("..") ? [] : names }
            return names.starts(with: own) ? Array(names.dropFirst(own.count)) : nil
        }
    }
}

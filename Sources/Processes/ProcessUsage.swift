// SPDX-License-Identifier: Apache-2.0
import Glibc
import Telemetry

/// Resources that a process has used so far, by thread, from `/proc`.
public struct ProcessUsage: Sendable, Equatable {
    public struct Thread: Sendable, Equatable {
        public var id: Int32
        public var name: String
        /// Time on a processor, in nanoseconds.
        public var cpuNanos: UInt64
        /// Time in which it was runnable but not running; 0 if the kernel does not report it.
        public var delayNanos: UInt64

        public init(id: Int32, name: String, cpuNanos: UInt64, delayNanos: UInt64 = 0) {
            self.id = id
            self.name = name
            self.cpuNanos = cpuNanos
            self.delayNanos = delayNanos
        }
    }

    public var threads: [Thread]

    public init(threads: [Thread]) {
        self.threads = threads
    }

    /// Reads a process's threads; empty if there is no such process.
    ///
    /// Nanoseconds come from `schedstat`. A kernel without it gives only the hundredths of a second of `stat`.
    public init(pid: Int32) {
        threads = []
        for entry in FolderEntry.all(in: "/proc/\(pid)/task") ?? [] {
            guard let id = Int32(entry.name), let stat = Self.text("/proc/\(pid)/task/\(id)/stat"),
                let thread = Self.thread(id, stat: stat, schedstat: Self.text("/proc/\(pid)/task/\(id)/schedstat"))
            else { continue }
            threads.append(thread)
        }
    }

    /// The texts of one thread's `stat` and `schedstat`.
    static func thread(_ id: Int32, stat: String, schedstat: String?) -> Thread? {
        // The name is in parentheses and may contain parentheses.
        guard let open = stat.firstIndex(of: "("), let close = stat.lastIndex(of: ")"), open < close else { return nil }
        let name = String(stat[stat.index(after: open)..<close])
        let told = schedstat?.split(whereSeparator: \.isWhitespace) ?? []
        if let first = told.first, let nanos = UInt64(first) {
            return Thread(
                id: id, name: name, cpuNanos: nanos, delayNanos: told.dropFirst().first.flatMap { UInt64($0) } ?? 0)
        }
        let fields = stat[stat.index(after: close)...].split(separator: " ")
        // After the name: state is field 3 of proc(5), utime 14, stime 15.
        guard fields.count > 12, let user = UInt64(fields[11]), let system = UInt64(fields[12]) else { return nil }
        let perTick = 1_000_000_000 / UInt64(max(1, sysconf(Int32(_SC_CLK_TCK))))
        return Thread(id: id, name: name, cpuNanos: (user &+ system) &* perTick)
    }

    public var cpuNanos: UInt64 { threads.reduce(0) { $0 &+ $1.cpuNanos } }

    public var delayNanos: UInt64 { threads.reduce(0) { $0 &+ $1.delayNanos } }

    /// Time used since `earlier`, summed by thread name. Threads that have ended are missing.
    public func sinceByName(_ earlier: ProcessUsage) -> [(name: String, nanos: UInt64)] {
        var before: [Int32: UInt64] = [:]
        for thread in earlier.threads { before[thread.id] = thread.cpuNanos }
        var sums: [String: UInt64] = [:]
        for thread in threads {
            let start = before[thread.id] ?? 0
            sums[thread.name, default: 0] &+= thread.cpuNanos > start ? thread.cpuNanos - start : 0
        }
        return sums.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { (name: $0.key, nanos: $0.value) }
    }

    /// `VmRSS` and `VmHWM` of a process in bytes; nil if there is no such process.
    public static func memory(pid: Int32) -> (now: Int, peak: Int)? {
        guard let text = text("/proc/\(pid)/status") else { return nil }
        guard let now = kilobytes("VmRSS", in: text), let peak = kilobytes("VmHWM", in: text) else { return nil }
        return (now << 10, peak << 10)
    }

    static func kilobytes(_ key: String, in status: String) -> Int? {
        for line in status.split(separator: "\n") where line.hasPrefix(key + ":") {
            return line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }
        }
        return nil
    }

    private static func text(_ path: String) -> String? {
        guard case .bytes(let bytes) = SmallFile.read(path), !bytes.isEmpty else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }
}

// SPDX-License-Identifier: Apache-2.0
internal import Glibc

/// The kernel's figures for this process at one moment.
public struct ProcessSample: Sendable {
    /// User and system time of all threads.
    public var cpuSeconds: Double
    /// Resident memory.
    public var residentBytes: UInt64
    /// Address space.
    public var virtualBytes: UInt64
    /// File descriptors in use.
    public var openFDs: Int
    /// The soft limit of file descriptors.
    public var maxFDs: UInt64
    public var threads: Int
    /// Unix time of the process' start.
    public var startSeconds: Double

    /// Reads `/proc/self`; nil if it does not exist. Takes about ten microseconds: for scrapes and reports.
    public static func read() -> ProcessSample? {
        guard let stat = file("/proc/self/stat"), let close = stat.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        // proc(5): the second field is the program's name, which may contain spaces and parentheses. Count the fields
        // after it.
        let fields = stat[(close + 1)...].split(separator: UInt8(ascii: " ")).map { number($0) }
        guard fields.count > 21 else { return nil }
        let ticks = max(1, sysconf(Int32(_SC_CLK_TCK)))
        let pages = UInt64(max(1, sysconf(Int32(_SC_PAGESIZE))))
        var limit = rlimit()
        _ = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        var cpu = timespec()
        _ = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu)
        return ProcessSample(
            cpuSeconds: Double(cpu.tv_sec) + Double(cpu.tv_nsec) * 1e-9,
            residentBytes: fields[21].multipliedReportingOverflow(by: pages).partialValue,
            virtualBytes: fields[20],
            openFDs: descriptors(),
            maxFDs: UInt64(limit.rlim_cur),
            threads: Int(truncatingIfNeeded: fields[17]),
            startSeconds: bootSeconds() + Double(fields[19]) / Double(ticks))
    }

    /// The `process_*` family that every Prometheus client exposes.
    var exposition: String {
        func family(_ name: String, _ kind: String, _ help: String, _ value: Double) -> String {
            "# HELP \(name) \(help)\n# TYPE \(name) \(kind)\n\(name) \(MetricText.number(value))\n"
        }
        return family("process_cpu_seconds_total", "counter", "User and system CPU time.", cpuSeconds)
            + family("process_max_fds", "gauge", "Limit of open file descriptors.", Double(maxFDs))
            + family("process_open_fds", "gauge", "Open file descriptors.", Double(openFDs))
            + family("process_resident_memory_bytes", "gauge", "Resident memory.", Double(residentBytes))
            + family("process_start_time_seconds", "gauge", "Start of the process, Unix time.", startSeconds)
            + family("process_threads", "gauge", "Threads of the process.", Double(threads))
            + family("process_virtual_memory_bytes", "gauge", "Address space.", Double(virtualBytes))
    }

    private static func bootSeconds() -> Double {
        guard let stat = file("/proc/stat") else { return 0 }
        let key = Array("btime ".utf8)
        for line in stat.split(separator: UInt8(ascii: "\n")) where line.starts(with: key) {
            return Double(number(line.dropFirst(key.count)))
        }
        return 0
    }

    private static func descriptors() -> Int {
        guard let directory = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(directory) }
        // ".", ".." and the descriptor of this directory itself are listed too.
        var count = -3
        while readdir(directory) != nil { count += 1 }
        return max(0, count)
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> UInt64 {
        var value: UInt64 = 0
        for digit in digits {
            guard (48...57).contains(digit) else { break }
            value = value &* 10 &+ UInt64(digit &- 48)
        }
        return value
    }

    private static func file(_ path: String) -> [UInt8]? {
        guard case .bytes(let bytes) = SmallFile.read(path) else { return nil }
        return bytes
    }
}

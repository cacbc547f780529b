// SPDX-License-Identifier: Apache-2.0
import Glibc

/// CPU time of the whole machine, to see how much other processes used during a measurement.
public struct MachineUsage: Sendable, Equatable {
    /// Sum over all processors in nanoseconds, including time that the host took.
    public var busyNanos: UInt64
    /// Wall time times processors.
    public var wallNanos: UInt64

    public init(busyNanos: UInt64, wallNanos: UInt64) {
        self.busyNanos = busyNanos
        self.wallNanos = wallNanos
    }

    /// The first line of `/proc/stat` (proc(5)): user nice system idle iowait irq softirq steal, in ticks.
    public init?(stat: String, ticksPerSecond: Int) {
        guard let line = stat.split(separator: "\n").first, line.hasPrefix("cpu "), ticksPerSecond > 0 else {
            return nil
        }
        let ticks = line.split(separator: " ").dropFirst().prefix(8).compactMap { UInt64($0) }
        guard ticks.count == 8 else { return nil }
        let perTick = 1_000_000_000 / UInt64(ticksPerSecond)
        let all = ticks.reduce(0, &+)
        self.init(busyNanos: (all &- ticks[3] &- ticks[4]) &* perTick, wallNanos: all &* perTick)
    }

    /// The present values; nil if the kernel does not report them.
    public static func now() -> MachineUsage? {
        let fd = open("/proc/stat", O_RDONLY | O_CLOEXEC)
        guard fd >= 0 else { return nil }
        defer { close(fd) }
        var block = [UInt8](repeating: 0, count: 1024)
        let count = read(fd, &block, block.count)
        guard count > 0 else { return nil }
        return MachineUsage(
            stat: String(decoding: block[..<count], as: UTF8.self), ticksPerSecond: sysconf(Int32(_SC_CLK_TCK)))
    }

    /// The part of the machine, in percent, used by others than the processes that used `ownNanos` since `earlier`.
    public func othersPercent(since earlier: MachineUsage, ownNanos: UInt64) -> Double {
        let wall = Double(wallNanos &- earlier.wallNanos)
        guard wallNanos > earlier.wallNanos else { return 0 }
        return max(0, Double(busyNanos &- earlier.busyNanos) - Double(ownNanos)) / wall * 100
    }
}

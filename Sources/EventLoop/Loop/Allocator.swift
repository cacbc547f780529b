// SPDX-License-Identifier: Apache-2.0
import CLibevent
import Glibc

/// The C library allocator's treatment of freed memory.
public enum Allocator {
    /// Keeps up to 64 MiB of freed memory per thread's heap for the next burst instead of returning it at once.
    ///
    /// Work comes and goes by megabytes a hundred times a second. By default each decrease shrinks the heap, and each
    /// increase grows it again by a system call and a fault per page: a tenth of a busy shard's time. For long-lived
    /// processes; call it before threads start.
    public static func keepFreed() {
        // The first call disables the second threshold's adaptation: it would stay at 128 KiB, with a mapping for each
        // larger buffer.
        set_malloc_thresholds(64 << 20, 4 << 20)
    }

    /// With jemalloc: freed memory goes back to the system after a second instead of ten.
    ///
    /// A burst's records are in the heap of librdkafka's thread; the pushes made from them are in the shard's heap. While APNs
    /// is away, both would be resident for ten seconds: 17 MB for 40 000 records. Memory that is used again within a second
    /// stays. An operator's `MALLOC_CONF` replaces this. Call it before threads start: their heaps take the value over.
    public static func returnFreedSoon() {
        guard getenv("MALLOC_CONF") == nil, let control else { return }
        var afterMs = 1_000
        // 0 is the heap of the threads so far; the other name is for heaps to come.
        for name in ["arenas.dirty_decay_ms", "arena.0.dirty_decay_ms"] {
            _ = control(name, nil, nil, &afterMs, MemoryLayout<Int>.size)
        }
    }

    /// The version of the jemalloc that replaces the C library's allocator; nil without jemalloc.
    public static var version: String? {
        guard let control else { return nil }
        var text: UnsafePointer<CChar>?
        var size = MemoryLayout.size(ofValue: text)
        guard control("version", &text, &size, nil, 0) == 0 else { return nil }
        return text.map { String(cString: $0) }
    }

    /// Number of allocations by all threads, from jemalloc; those in a thread's cache may be missing. Nil without
    /// jemalloc.
    public static var requests: UInt64? {
        guard let control else { return nil }
        // Statistics are updated only when the epoch changes (jemalloc(3)).
        var epoch: UInt64 = 1
        guard control("epoch", nil, nil, &epoch, MemoryLayout<UInt64>.size) == 0 else { return nil }
        var sum: UInt64 = 0
        // 4096 means all arenas.
        for name in ["stats.arenas.4096.small.nrequests", "stats.arenas.4096.large.nrequests"] {
            var count: UInt64 = 0
            var size = MemoryLayout<UInt64>.size
            guard control(name, &count, &size, nil, 0) == 0 else { return nil }
            sum &+= count
        }
        return sum
    }

    private typealias Control =
        @convention(c) (
            UnsafePointer<CChar>, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int>?, UnsafeMutableRawPointer?, Int
        ) -> Int32

    private static var control: Control? {
        dlsym(nil, "mallctl").map { unsafeBitCast($0, to: Control.self) }
    }
}

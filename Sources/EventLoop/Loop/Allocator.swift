import CLibevent
import Glibc

/// How the C library's allocator treats what is freed.
public enum Allocator {
    /// Keeps up to 64 MiB of freed memory per thread's heap for the next burst rather than giving it back at once.
    ///
    /// Work in hand comes and goes by megabytes a hundred times a second. By default each ebb of a heap shrinks it, and
    /// each flow grows it again by a system call and a fault per page: a tenth of a busy shard's time. For processes that
    /// live long; call it before threads start.
    public static func keepFreed() {
        // The second is what the first turns off: by itself it would have stayed at 128 KiB, a mapping for each larger
        // buffer.
        set_malloc_thresholds(64 << 20, 4 << 20)
    }

    /// Of the jemalloc that stands in for the C library's allocator; nil: none does.
    public static var version: String? {
        guard let control else { return nil }
        var text: UnsafePointer<CChar>?
        var size = MemoryLayout.size(ofValue: text)
        guard control("version", &text, &size, nil, 0) == 0 else { return nil }
        return text.map { String(cString: $0) }
    }

    /// How many pieces of memory jemalloc was asked for, by all threads; what lies in a thread's cache may be missing. Nil:
    /// nobody counts.
    public static var requests: UInt64? {
        guard let control else { return nil }
        // Statistics are as old as the last change of the epoch (jemalloc(3)).
        var epoch: UInt64 = 1
        guard control("epoch", nil, nil, &epoch, MemoryLayout<UInt64>.size) == 0 else { return nil }
        var sum: UInt64 = 0
        // 4096 stands for all arenas.
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

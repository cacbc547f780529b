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
        typealias Control =
            @convention(c) (
                UnsafePointer<CChar>, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int>?, UnsafeMutableRawPointer?,
                Int
            ) -> Int32
        guard let symbol = dlsym(nil, "mallctl") else { return nil }
        let control = unsafeBitCast(symbol, to: Control.self)
        var text: UnsafePointer<CChar>?
        var size = MemoryLayout.size(ofValue: text)
        guard control("version", &text, &size, nil, 0) == 0 else { return nil }
        return text.map { String(cString: $0) }
    }
}

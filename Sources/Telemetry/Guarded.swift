internal import Glibc

/// A value behind a pthread lock.
///
/// In place of `Synchronization.Mutex`, which is slow when contended and whose contended path the thread sanitizer cannot
/// see: it would report races that are none. Never on the hot path. `@unchecked Sendable`: the value is touched only between lock and unlock.
public final class Guarded<Value>: @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private var value: Value

    public init(_ value: Value) {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        self.value = value
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Runs a closure with the value; nothing else has it meanwhile.
    public func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}

// SPDX-License-Identifier: Apache-2.0
internal import Glibc

/// A value behind a pthread lock.
///
/// Replaces `Synchronization.Mutex`, which is slow under contention, and which causes false race reports because the
/// thread sanitizer cannot see its contended path. Never on the hot path. `@unchecked Sendable`: the value is accessed
/// only between lock and unlock.
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

    /// Runs a closure with exclusive access to the value.
    public func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value)
    }
}

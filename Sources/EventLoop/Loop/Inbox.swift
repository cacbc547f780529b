// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Work from other threads for the loop, in order of arrival.
///
/// The loop takes the whole list in one swap, so a sender holds the lock only for one append. The emptied list is
/// reused: no allocation once both have grown. The lock is pthread's, because the `Mutex` of Swift 6.3.1 is slow under
/// contention and the thread sanitizer does not understand it.
///
/// `@unchecked Sendable`: every access to `work` and `isAsleep` is between `lock()` and `unlock()`.
final class Inbox: @unchecked Sendable {
    /// One piece of work: a job of an actor, or a posted closure.
    enum Work {
        case job(UnownedJob)
        case body(@Sendable () -> Void)
    }

    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private var work: [Work] = []
    /// True only while the loop may be blocked in the kernel. The first sender then wakes it.
    private var isAsleep = false

    init() {
        mutex = .allocate(capacity: 1)
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    /// Adds work. Returns true if the caller must wake the loop.
    func append(_ new: Work) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        work.append(new)
        guard isAsleep else { return false }
        isAsleep = false
        return true
    }

    /// Marks the loop as about to block. Returns false if work has arrived, so that it must not block.
    func prepareToSleep() -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        isAsleep = work.isEmpty
        return isAsleep
    }

    /// Swaps the waiting work with an empty list.
    func take(into batch: inout [Work]) {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        isAsleep = false
        swap(&work, &batch)
    }
}

import Synchronization

/// What other threads left for the loop, in order of arrival.
///
/// The loop takes the whole list in one swap, so a sender holds the lock only for one append. The emptied list goes
/// back as the next one: no allocation once both have grown.
struct Inbox: ~Copyable {
    /// One piece of work: a job of an actor, or a posted closure.
    enum Work {
        case job(UnownedJob)
        case body(@Sendable () -> Void)
    }

    // Not private: 6.3.1 fails on a generic layout over a private type of another file.
    struct State {
        var work: [Work] = []
        /// True only while the loop may be blocked in the kernel; then the first sender wakes it.
        var isAsleep = false
    }

    private let state = Mutex(State())

    /// Adds work; true means that the caller must wake the loop.
    func append(_ work: Work) -> Bool {
        state.withLock { state in
            state.work.append(work)
            defer { state.isAsleep = false }
            return state.isAsleep
        }
    }

    /// Marks the loop as about to block; false where work has come meanwhile, so that it must not.
    func prepareToSleep() -> Bool {
        state.withLock { state in
            state.isAsleep = state.work.isEmpty
            return state.isAsleep
        }
    }

    /// Swaps the waiting work with an empty list.
    func take(into batch: inout [Work]) {
        state.withLock { state in
            state.isAsleep = false
            swap(&state.work, &batch)
        }
    }
}

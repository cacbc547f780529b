// SPDX-License-Identifier: Apache-2.0
import CLibevent

/// A one-shot timer of a loop that can be armed again at any time, also inside its own callback.
///
/// Moving the deadline later, or cancelling, is one store: the entry remains in libevent's heap and is put back for the
/// rest of the time when it comes up. So a deadline that moves with every message costs almost nothing. Never fires
/// early.
public final class LoopTimer {
    private let loop: Loop
    private let fire: () -> Void
    private var handle: UnsafeMutablePointer<event>?
    /// Due time of the callback; 0 if not armed.
    private var deadlineNanos: UInt64 = 0
    /// Time of libevent's next check; 0 if not in the heap.
    private var scheduledNanos: UInt64 = 0

    /// Creates an unarmed timer. `fire` runs on the loop. Capture the owner `unowned` or `weak`, because the owner
    /// keeps the timer.
    public init(loop: Loop, _ fire: @escaping () -> Void) {
        loop.assertOnLoop()
        self.loop = loop
        self.fire = fire
        if loop.system != nil { return }
        let context = Unmanaged.passUnretained(self).toOpaque()
        handle = event_new(
            loop.base, -1, 0,
            { _, _, context in
                guard let context else { return }
                Unmanaged<LoopTimer>.fromOpaque(context).takeUnretainedValue().comeUp()
            }, context)
    }

    deinit {
        loop.assertReleasable()
        if let handle { event_free(handle) }
        loop.system?.forget(self, of: loop)
    }

    /// Whether the callback is still due.
    public var isArmed: Bool { deadlineNanos != 0 }

    /// Sets the deadline relative to this turn's time, in place of any earlier one.
    public func arm(afterNanos: UInt64) {
        loop.assertOnLoop()
        let (sum, overflow) = loop.nowNanos.addingReportingOverflow(afterNanos)
        deadlineNanos = overflow ? .max : sum
        if scheduledNanos == 0 || deadlineNanos < scheduledNanos { schedule(afterNanos: afterNanos) }
    }

    /// Removes the deadline.
    public func cancel() {
        loop.assertOnLoop()
        deadlineNanos = 0
    }

    private func schedule(afterNanos: UInt64) {
        if let system = loop.system {
            scheduledNanos = deadlineNanos
            return system.schedule(self, of: loop, atNanos: deadlineNanos)
        }
        // A year is practically infinite here, and keeps the sum inside libevent's time_t.
        let nanos = min(afterNanos, 365 * 86_400 * 1_000_000_000)
        let micros = (nanos + 999) / 1000
        var interval = timeval(tv_sec: Int(micros / 1_000_000), tv_usec: Int(micros % 1_000_000))
        guard let handle, event_add(handle, &interval) == 0 else { return }
        scheduledNanos = deadlineNanos
    }

    /// The time of the next check has come.
    package func comeUp() {
        scheduledNanos = 0
        guard deadlineNanos != 0 else { return }
        // libevent uses the coarse clock, so it may come up to a tick early. Or the deadline has moved.
        let now = loop.freshNanos
        if now < deadlineNanos { return schedule(afterNanos: deadlineNanos - now) }
        deadlineNanos = 0
        fire()
    }
}

// SPDX-License-Identifier: Apache-2.0
import CLibevent
import Glibc

/// Calls back on the loop when the process receives a signal, instead of the signal's default action.
///
/// libevent supports signals in one base per process, so create all watchers on one loop.
public final class SignalWatcher {
    private let loop: Loop
    private let onSignal: () -> Void
    private var handle: UnsafeMutablePointer<event>?

    /// Starts watching at once. Several signals in a short time may cause one call.
    public init(loop: Loop, signal: Int32, onSignal: @escaping () -> Void) throws(LoopFault) {
        loop.assertOnLoop()
        self.loop = loop
        self.onSignal = onSignal
        let context = Unmanaged.passUnretained(self).toOpaque()
        handle = event_new(
            loop.base, signal, Int16(EV_SIGNAL | EV_PERSIST),
            { _, _, context in
                guard let context else { return }
                Unmanaged<SignalWatcher>.fromOpaque(context).takeUnretainedValue().arrived()
            }, context)
        guard let handle, event_add(handle, nil) == 0 else {
            throw LoopFault(.signal, "cannot watch signal \(signal): \(systemErrorText(errno))")
        }
    }

    deinit {
        loop.assertReleasable()
        if let handle { event_free(handle) }
    }

    /// Stops watching and restores the signal's previous action.
    public func cancel() {
        loop.assertOnLoop()
        if let handle { event_free(handle) }
        handle = nil
    }

    private func arrived() {
        _ = loop.nowNanos
        onSignal()
    }
}

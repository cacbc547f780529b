// SPDX-License-Identifier: Apache-2.0
import CLibevent
import Glibc

/// Calls back on the loop while a descriptor is readable. The descriptor's owner keeps it.
///
/// Level-triggered: the callback comes every turn until the descriptor is empty. Close the descriptor only after the
/// watcher is released or cancelled.
public final class FDWatcher {
    private let loop: Loop
    private let onReadable: () -> Void
    private var handle: UnsafeMutablePointer<event>?
    /// Neither suspended nor cancelled.
    package private(set) var isWatching = true

    /// Starts watching at once.
    public init(loop: Loop, fd: Int32, onReadable: @escaping () -> Void) throws(LoopFault) {
        loop.assertOnLoop()
        self.loop = loop
        self.onReadable = onReadable
        if let system = loop.system {
            system.watch(self, of: loop, fd: fd)
            return
        }
        let context = Unmanaged.passUnretained(self).toOpaque()
        handle = event_new(
            loop.base, fd, Int16(EV_READ | EV_PERSIST),
            { _, _, context in
                guard let context else { return }
                Unmanaged<FDWatcher>.fromOpaque(context).takeUnretainedValue().comeUp()
            }, context)
        guard let handle, event_add(handle, nil) == 0 else {
            throw LoopFault(.resources, "cannot watch descriptor \(fd): \(systemErrorText(errno))")
        }
    }

    deinit {
        loop.assertReleasable()
        if let handle { event_free(handle) }
        loop.system?.forget(self, of: loop)
    }

    /// Stops the callbacks until `resume`, for an owner that will not read the descriptor for now.
    public func suspend() {
        loop.assertOnLoop()
        isWatching = false
        if let handle { event_del(handle) }
    }

    /// Watches again. A descriptor that became readable in between is reported at once. Harmless while watching.
    public func resume() {
        loop.assertOnLoop()
        isWatching = true
        if let handle { event_add(handle, nil) }
    }

    /// Stops watching. No callback follows.
    public func cancel() {
        loop.assertOnLoop()
        if let handle { event_free(handle) }
        handle = nil
        isWatching = false
        loop.system?.forget(self, of: loop)
    }

    /// The descriptor is readable.
    package func comeUp() {
        _ = loop.nowNanos
        onReadable()
    }
}

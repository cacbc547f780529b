// SPDX-License-Identifier: Apache-2.0
public import EventLoop
import Glibc
import Processes

/// SIGTERM and SIGINT: the first requests an orderly end, the second ends the process at once. SIGHUP requests a reload
/// and never ends the process.
public final class EndSignals: Sendable {
    private let loop: Loop
    private let watcher: SignalActor

    /// Catches the signals from now on, so that none is lost before a handler is set.
    public init() throws(LoopFault) {
        loop = try Loop(name: "signals")
        loop.start()
        watcher = SignalActor(loop: loop)
        let watcher = watcher
        loop.post { watcher.assumeIsolated { $0.watch() } }
    }

    /// Calls `action` at the first signal, or at once if one has arrived already.
    public func onFirst(_ action: @escaping @Sendable () -> Void) {
        let watcher = watcher
        loop.post { watcher.assumeIsolated { $0.setAction(action) } }
    }

    /// Calls `action` at each SIGHUP from now on. Several signals in a short time may cause one call.
    public func onHangUp(_ action: @escaping @Sendable () -> Void) {
        let watcher = watcher
        loop.post { watcher.assumeIsolated { $0.watchHangUp(action) } }
    }

    /// Ends the process at once. Its children end with it (`Spawn`).
    public static func endAtOnce() -> Never {
        TemporaryFolder.removeLiving()
        _exit(1)
    }

    /// Waits for the first signal.
    public func first() async {
        await withCheckedContinuation { continuation in onFirst { continuation.resume() } }
    }
}

private actor SignalActor {
    private nonisolated let loop: Loop
    private var watchers: [SignalWatcher] = []
    private var action: (@Sendable () -> Void)?
    private var count = 0

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(loop: Loop) {
        self.loop = loop
    }

    func watch() {
        for signal in [SIGTERM, SIGINT] {
            guard let watcher = try? SignalWatcher(loop: loop, signal: signal, onSignal: { self.came() }) else {
                continue
            }
            watchers.append(watcher)
        }
    }

    func watchHangUp(_ action: @escaping @Sendable () -> Void) {
        if let watcher = try? SignalWatcher(loop: loop, signal: SIGHUP, onSignal: action) { watchers.append(watcher) }
    }

    func setAction(_ action: @escaping @Sendable () -> Void) {
        self.action = action
        if count > 0 { action() }
    }

    private func came() {
        count += 1
        if count > 1 { EndSignals.endAtOnce() }
        action?()
    }
}

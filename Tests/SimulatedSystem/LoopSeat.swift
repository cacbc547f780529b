// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// The place of one loop in the world: what is ready for its next turn.
final class LoopSeat {
    let loop: Loop
    unowned let process: SimulatedProcess
    private unowned let system: SimulatedSystem
    private var isTurnDue = false
    private var isInTurn = false
    private var timers: [ObjectIdentifier: TimerEntry] = [:]
    private var due: [TimerEntry] = []
    private var watchers: [WatcherEntry] = []
    private var ends: [LinkEnd] = []
    /// Results of names and connections, and accepted connections, in the order in which they came.
    private var arrivals: [() -> Void] = []

    final class TimerEntry {
        unowned let timer: LoopTimer
        var atNanos: UInt64 = 0
        /// Of the last `schedule`.
        var generation: UInt64 = 0
        var isGone = false

        init(_ timer: LoopTimer) { self.timer = timer }
    }

    final class WatcherEntry {
        unowned let watcher: FDWatcher
        let id: ObjectIdentifier
        let fd: Int32
        var isGone = false

        init(_ watcher: FDWatcher, fd: Int32) {
            self.watcher = watcher
            id = ObjectIdentifier(watcher)
            self.fd = fd
        }
    }

    init(_ loop: Loop, of process: SimulatedProcess) {
        self.loop = loop
        self.process = process
        system = process.system
    }

    // MARK: What becomes ready

    func schedule(_ timer: LoopTimer, atNanos: UInt64) {
        let entry = timers[ObjectIdentifier(timer)] ?? TimerEntry(timer)
        timers[ObjectIdentifier(timer)] = entry
        entry.atNanos = atNanos
        arm(entry)
    }

    private func arm(_ entry: TimerEntry) {
        entry.generation += 1
        let generation = entry.generation
        // The seat lives as long as its system. A weak reference would make each count of its references slow.
        system.at(process.worldNanos(atNanos: entry.atNanos)) { [self] in
            guard !entry.isGone, entry.generation == generation else { return }
            due.append(entry)
            wake()
        }
    }

    func forget(_ timer: LoopTimer) {
        timers.removeValue(forKey: ObjectIdentifier(timer))?.isGone = true
    }

    func rescheduleTimers() {
        for entry in timers.values.sorted(by: { ($0.atNanos, $0.generation) < ($1.atNanos, $1.generation) }) {
            arm(entry)
        }
    }

    func watch(_ watcher: FDWatcher, fd: Int32) {
        watchers.append(WatcherEntry(watcher, fd: fd))
        wake()
    }

    func forget(_ watcher: FDWatcher) {
        watchers.removeAll { entry in
            guard entry.id == ObjectIdentifier(watcher) else { return false }
            entry.isGone = true
            return true
        }
    }

    func add(_ end: LinkEnd) { ends.append(end) }

    func remove(_ end: LinkEnd) { ends.removeAll { $0 === end } }

    func arrive(_ body: @escaping () -> Void) {
        arrivals.append(body)
        wake()
    }

    // MARK: Turns

    /// The loop has its next turn soon.
    func wake() {
        guard !isTurnDue, !isInTurn, !process.isDead else { return }
        isTurnDue = true
        system.at(max(system.nowNanos &+ system.turnDelayNanos(), process.pausedUntilNanos)) { [self] in turn() }
    }

    private func turn() {
        isTurnDue = false
        guard !process.isDead else { return }
        guard process.pausedUntilNanos <= system.nowNanos else { return wake() }
        let ready = takeReady()
        run {
            for one in ready { one() }
        }
    }

    func run(_ body: () -> Void) {
        guard !process.isDead else { return }
        isInTurn = true
        system.turnBegins()
        var isBusy = false
        process.aroundTurn { isBusy = loop.runTurn(nowNanos: process.nowNanos, wallMs: process.wallMs, body) }
        isInTurn = false
        system.note(turnOf: loop.name)
        if process.isDead {
            process.die()
            return process.didEnd()
        }
        if isBusy || hasReady { wake() }
    }

    private var hasReady: Bool {
        !due.isEmpty || !arrivals.isEmpty || ends.contains { $0.isReady }
            || watchers.contains { $0.watcher.isWatching && system.isReadable($0.fd) }
    }

    /// All that is ready, or a part of it, in any order. What one callback changes may make another void.
    private func takeReady() -> [() -> Void] {
        var ready: [() -> Void] = []
        for entry in due {
            let generation = entry.generation
            ready.append { if !entry.isGone, entry.generation == generation { entry.timer.comeUp() } }
        }
        due = []
        for entry in watchers where entry.watcher.isWatching && system.isReadable(entry.fd) {
            ready.append { if !entry.isGone, entry.watcher.isWatching { entry.watcher.comeUp() } }
        }
        for end in ends where end.isReady { ready.append { end.comeUp() } }
        ready.shuffle(using: &system.random)
        // Of one listener or name, what came first is told first.
        let first = arrivals
        arrivals = []
        return first + ready
    }

    /// The process has ended.
    func end() {
        let left = ends
        ends = []
        for end in left { end.processEnded() }
        timers = [:]
        due = []
        watchers = []
        arrivals = []
        system.remove(self)
    }
}

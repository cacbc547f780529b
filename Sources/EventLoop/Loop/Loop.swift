// SPDX-License-Identifier: Apache-2.0
import CLibevent
import Glibc
import Synchronization
import Telemetry

/// One thread with one libevent base: the executor of a shard's actor and the owner of everything bound to it.
///
/// An actor with this loop as its `unownedExecutor` owns links, timers and clients as plain non-Sendable objects. C
/// callbacks run on the same thread, so they enter the actor with `assumeIsolated`. A turn: wait for the kernel, run
/// the ready callbacks, run one batch of jobs, then send the links' collected output. The thread keeps the loop alive
/// until `stop()`.
///
/// `@unchecked Sendable`: `inbox`, `life` and the atomics are safe from any thread. Other threads touch `base` and
/// `wake` only through `event_active`, which libevent locks. Every other field is used on the loop's thread only.
public final class Loop: SerialExecutor, @unchecked Sendable {
    private enum Life {
        case new
        case running(pthread_t)
        case ended
    }

    /// The name of the loop and of its thread (the first 15 bytes).
    public let name: String

    let base: OpaquePointer
    /// The links' read buffer. One per loop is enough, because bytes are consumed before the callback returns.
    let scratch: UnsafeMutableRawBufferPointer

    private let wake: UnsafeMutablePointer<event>
    private let inbox = Inbox()
    private let life = Guarded(Life.new)
    private let threadID = Atomic<UInt>(0)
    private let isStopping = Atomic<Bool>(false)
    private let longestTurnNanos = Atomic<UInt64>(0)
    /// In place of the kernel and the clocks, in tests.
    let system: (any VirtualSystem)?

    // Only on the loop's thread.
    /// This turn's time, after its first use. A test may set it for the rest of the turn.
    @usableFromInline var turnNanos: UInt64 = 0
    private var turnWallMs: Int64 = 0
    /// Unix ms at 0 of the monotonic clock, for `unixMs`.
    public var unixOriginMs: Int64?
    private var batch: [Inbox.Work] = []
    private var pending = TurnWork()
    private var spare = TurnWork()
    /// Work that runs once for everything that the turn brought.
    private var ends: [() -> Void] = []
    /// Receives the thread's stages; nil if nobody measures.
    public var stageClock: StageClock?

    /// Maximum bytes that a link reads in one turn, so that one busy peer cannot starve the others.
    static let readBudget = 256 * 1024

    /// Creates a loop that does not run yet.
    public convenience init(name: String) throws(LoopFault) { try self.init(name: name, system: nil) }

    /// Creates a loop without a thread; the system runs its turns.
    package init(name: String, system: (any VirtualSystem)?) throws(LoopFault) {
        _ = Self.libeventIsReady
        guard let base = event_base_new() else {
            throw LoopFault(.resources, "cannot make an event base: \(systemErrorText(errno))")
        }
        // A persistent event without descriptor or timeout. Only `event_active` fires it, to leave the kernel's wait.
        guard let wake = event_new(base, -1, Int16(EV_PERSIST), { _, _, _ in }, nil) else {
            event_base_free(base)
            throw LoopFault(.resources, "cannot make the loop's wake event")
        }
        self.name = name
        self.base = base
        self.wake = wake
        self.system = system
        scratch = .allocate(byteCount: Self.readBudget, alignment: 64)
        // It rests until the first work.
        if system != nil { _ = inbox.prepareToSleep() }
    }

    deinit {
        // The thread keeps the loop alive while it runs, so here it has ended or is about to return.
        if case .running(let thread) = life.withLock({ $0 }) { pthread_detach(thread) }
        event_free(wake)
        event_base_free(base)
        scratch.deallocate()
    }

    /// Starts the thread, which runs until `stop()`. A second call does nothing.
    ///
    /// Traps if the system gives no thread: the shard cannot exist without it, and no work is lost yet.
    public func start() {
        precondition(system == nil, "a virtual loop has no thread")
        life.withLock { life in
            guard case .new = life else { return }
            var thread = pthread_t()
            let context = Unmanaged.passRetained(self)
            let code = pthread_create(
                &thread, nil,
                { context in
                    guard let context else { return nil }
                    Unmanaged<Loop>.fromOpaque(context).takeRetainedValue().run()
                    return nil
                }, context.toOpaque())
            precondition(code == 0, "cannot start the thread of loop \(name): \(systemErrorText(code))")
            life = .running(thread)
        }
    }

    /// Ends the loop after the queued work. From any thread; waits for the end unless called on the loop.
    ///
    /// Later jobs never run, so stop a loop only when nothing awaits its actor any more. Afterwards objects bound to
    /// the loop may be released on any thread.
    public func stop() {
        isStopping.store(true, ordering: .releasing)
        wakeUp()
        guard !isCurrent else { return }
        let thread: pthread_t? = life.withLock { life in
            defer { life = .ended }
            if case .running(let thread) = life { return thread }
            return nil
        }
        if let thread { pthread_join(thread, nil) }
    }

    /// Whether the caller runs on the loop's thread.
    public var isCurrent: Bool { threadID.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// Traps when called from another thread, which is our own mistake, never an outside event's.
    public func assertOnLoop() {
        precondition(isCurrent, "not on the thread of loop \(name)")
    }

    /// Debug check for `deinit`: the last reference must go on the loop, or after it has ended.
    func assertReleasable() {
        assert(
            isCurrent || threadID.load(ordering: .acquiring) == 0,
            "an object of loop \(name) was released on another thread while the loop runs")
    }

    // MARK: Time

    /// CLOCK_MONOTONIC in nanoseconds, read once per turn. From another thread, a new reading.
    public var nowNanos: UInt64 {
        guard isCurrent else { return system?.nowNanos(of: self) ?? Self.monotonicNanos() }
        if turnNanos == 0 { turnNanos = Self.monotonicNanos() }
        return turnNanos
    }

    /// The same for a caller that is always on the loop's thread: within a turn, one field.
    @inlinable public var turnTimeNanos: UInt64 { turnNanos == 0 ? nowNanos : turnNanos }

    /// CLOCK_REALTIME in Unix milliseconds, read once per turn. From another thread, a new reading.
    public var wallMs: Int64 {
        guard isCurrent else { return system?.wallMs(of: self) ?? Self.wallMs() }
        if turnWallMs == 0 { turnWallMs = Self.wallMs() }
        return turnWallMs
    }

    /// From now on `unixMs` goes by the machine's present time, until the owner knows better.
    package func takeWallClock() { unixOriginMs = wallMs &- Int64(truncatingIfNeeded: nowNanos / 1_000_000) }

    /// The Unix time that objects of the loop go by where their owner knows it better than the machine's clock; else `wallMs`.
    public var unixMs: Int64 {
        unixOriginMs.map { $0 &+ Int64(truncatingIfNeeded: nowNanos / 1_000_000) } ?? wallMs
    }

    /// A seed for a generator of the loop's objects: all that is random on the loop begins here.
    public func makeSeed() -> UInt64 { system?.makeSeed(of: self) ?? .random(in: 0 ... .max) }

    /// CLOCK_REALTIME in Unix milliseconds, read now.
    public static func wallMs() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) &* 1000 &+ Int64(time.tv_nsec) / 1_000_000
    }

    /// CLOCK_MONOTONIC in nanoseconds, read now.
    public static func monotonicNanos() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    /// The processor time of the present thread.
    public static func threadNanos() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    /// The longest turn since the last call in nanoseconds: the longest wait of a ready event. From any thread.
    public func takeLongestTurnNanos() -> UInt64 {
        longestTurnNanos.exchange(0, ordering: .relaxed)
    }

    // MARK: Work from other threads

    /// Runs a closure on the loop soon, after earlier queued work. From any thread.
    ///
    /// Many posts before the loop handles them cost one wake-up. The queue is unbounded, so a caller that posts per
    /// message must bound its posts.
    public func post(_ body: @escaping @Sendable () -> Void) {
        if inbox.append(.body(body)) { wakeUp() }
    }

    public func enqueue(_ job: consuming ExecutorJob) {
        if inbox.append(.job(UnownedJob(job))) { wakeUp() }
    }

    private func wakeUp() {
        if let system { return system.wake(self) }
        event_active(wake, Int32(EV_READ), 0)
    }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    public func checkIsolated() { assertOnLoop() }

    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    /// Runs a closure that may block, such as one that reads files, on a thread of its own. A virtual loop runs it at once.
    ///
    /// - Returns: false if no thread can be had; then it does not run.
    public func runApart(_ body: @escaping @Sendable () -> Void) -> Bool {
        guard system != nil else { return runDetached(body) }
        body()
        return true
    }

    // MARK: Work for the end of the turn (on the loop)

    /// Sends the link's collected output at the end of this turn.
    func flushAtEndOfTurn(_ link: Link) { pending.flushes.append(link) }

    /// Lets the link continue to read in the next turn, for bytes that the kernel no longer reports.
    func readNextTurn(_ link: Link) { pending.reads.append(link) }

    /// Runs a closure after this turn's callbacks, outside of all of them: for rare events, not per message.
    func afterCallbacks(_ body: @escaping () -> Void) { pending.bodies.append(body) }

    /// Runs a closure after this turn's events and before the collected output is sent. Its own requests of this kind
    /// still run in this turn.
    ///
    /// For work that is better done once per turn: its code is fetched once, not per message. Ask at most once per
    /// turn, or the turn does not end.
    public func atEndOfTurn(_ body: @escaping () -> Void) { ends.append(body) }

    // MARK: The thread

    private func run() {
        threadID.store(UInt(pthread_self()), ordering: .releasing)
        // The kernel cuts the name after 15 bytes.
        name_current_thread(name)

        let once = EVLOOP_ONCE | EVLOOP_NO_EXIT_ON_EMPTY
        while !isStopping.load(ordering: .acquiring) {
            let mayBlock = pending.isEmpty && ends.isEmpty && inbox.prepareToSleep()
            let code = event_base_loop(base, mayBlock ? once : once | EVLOOP_NONBLOCK)
            // Only our own mistake, a descriptor closed while an event uses it, makes the wait fail. Continuing would
            // spin.
            precondition(code >= 0, "loop \(name) cannot wait: \(systemErrorText(errno))")
            finishTurn()
        }
        // Work queued before the stop still runs, and also the work that it queues, within limits.
        for _ in 0..<64 where !pending.isEmpty || !ends.isEmpty || !inbox.prepareToSleep() { finishTurn() }
        threadID.store(0, ordering: .releasing)
    }

    private func finishTurn() {
        let began = nowNanos
        stageClock?.enter(.other)
        inbox.take(into: &batch)
        let executor = asUnownedSerialExecutor()
        for work in batch {
            switch work {
            case .job(let job): job.runSynchronously(on: executor)
            case .body(let body): body()
            }
        }
        batch.removeAll(keepingCapacity: true)

        // Swapped first: work scheduled by these calls belongs to the next turn, after another look at the kernel.
        swap(&pending, &spare)
        for body in spare.bodies { body() }
        for link in spare.reads { link.resumeRead() }
        runEnds()
        for link in spare.flushes { link.flush() }
        // Output written by all of the above is sent now, not one kernel wait later.
        if !pending.flushes.isEmpty {
            spare.flushes.removeAll(keepingCapacity: true)
            swap(&pending.flushes, &spare.flushes)
            for link in spare.flushes { link.flush() }
        }
        spare.removeAll()

        let took = system == nil ? Self.monotonicNanos() &- began : 0
        if took > longestTurnNanos.load(ordering: .relaxed) { longestTurnNanos.store(took, ordering: .relaxed) }
        turnNanos = 0
        turnWallMs = 0
        stageClock?.enter(.idle)
    }

    /// One turn of a virtual loop: these callbacks, then the work that they leave.
    ///
    /// - Returns: whether there is work for another turn. If not, `wake` reports later work to the system.
    package func runTurn(nowNanos: UInt64, wallMs: Int64, _ callbacks: () -> Void) -> Bool {
        threadID.store(UInt(pthread_self()), ordering: .releasing)
        turnNanos = nowNanos
        turnWallMs = wallMs
        callbacks()
        finishTurn()
        let isBusy = !pending.isEmpty || !ends.isEmpty || !inbox.prepareToSleep()
        threadID.store(0, ordering: .releasing)
        return isBusy
    }

    /// CLOCK_MONOTONIC, read now. On the loop.
    package var freshNanos: UInt64 { system == nil ? Self.monotonicNanos() : turnNanos }

    /// The thread's processor time; in virtual time the turn's.
    package var workNanos: UInt64 { system == nil ? Self.threadNanos() : turnNanos }

    private func runEnds() {
        var next = 0
        while next < ends.count {
            let body = ends[next]
            next += 1
            body()
        }
        ends.removeAll(keepingCapacity: true)
    }

    /// Once per process, before the first base: locks for libevent, and a broken pipe as an error instead of a signal.
    private static let libeventIsReady: Bool = {
        signal(SIGPIPE, SIG_IGN)
        return evthread_use_pthreads() == 0
    }()
}

/// Work for the end of a turn, in three lists that keep their memory.
private struct TurnWork {
    var bodies: [() -> Void] = []
    var reads: [Link] = []
    var flushes: [Link] = []

    var isEmpty: Bool { bodies.isEmpty && reads.isEmpty && flushes.isEmpty }

    mutating func removeAll() {
        bodies.removeAll(keepingCapacity: true)
        reads.removeAll(keepingCapacity: true)
        flushes.removeAll(keepingCapacity: true)
    }
}

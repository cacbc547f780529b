// SPDX-License-Identifier: Apache-2.0
import CostCounting
package import EventLoop

/// A world of processes and a network in virtual time, on one thread. The seed decides every order that is left open.
package final class SimulatedSystem: VirtualSystem {
    /// The world's time, monotonic.
    package private(set) var nowNanos: UInt64 = 1_000_000_000
    package var random: SmallRandom
    package private(set) lazy var network = SimulatedNetwork(self)
    /// The longest time from an event to the turn that handles it.
    package var turnDelayMaxNanos: UInt64 = 200_000
    /// A hash of all turns and bytes so far: equal for equal runs.
    package private(set) var fingerprint: UInt64 = 0xcbf2_9ce4_8422_2325
    package private(set) var turns = 0
    /// Receives each turn of a loop with the bytes that it wrote to links.
    package var didTurn: ((_ name: String, _ bytes: Int) -> Void)?
    private var turnBytes = 0
    /// A part of the world with events of its own: when the next is due, and what runs those that are.
    package var part: (nextNanos: () -> UInt64?, run: (UInt64) -> Void)?
    private var events = EventHeap()
    private var seats: [ObjectIdentifier: LoopSeat] = [:]
    private var readable: Set<Int32> = []
    private var watchedBy: [Int32: LoopSeat] = [:]
    private var descriptors: Int32 = 1 << 24
    /// Unix ms at the world's time 0.
    package let originMs: Int64

    package init(seed: UInt64, originMs: Int64 = 1_800_000_000_000) {
        random = SmallRandom(seed: seed)
        self.originMs = originMs
    }

    /// The true wall clock.
    package var wallMs: Int64 { originMs &+ leaptMs &+ Int64(nowNanos / 1_000_000) }

    private var leaptMs: Int64 = 0

    /// All wall clocks go forward at once, as if nothing had happened for so long.
    package func leap(ms: Int64) { leaptMs &+= ms }

    package func makeProcess(_ name: String, host: String) -> SimulatedProcess {
        SimulatedProcess(
            name, host: host, system: self, steadyBaseNanos: random.next() % 1_000_000_000_000 + 1_000_000_000)
    }

    // MARK: Running

    /// Runs a closure at that time.
    package func at(_ atNanos: UInt64, _ body: @escaping () -> Void) {
        events.add(atNanos: max(atNanos, nowNanos), order: random.next(), body)
    }

    package func after(nanos: UInt64, _ body: @escaping () -> Void) { at(nowNanos &+ nanos, body) }

    /// Runs the next event. Returns false if there is none before that time, which is then the present.
    package func step(untilNanos: UInt64) -> Bool {
        if let part, let next = part.nextNanos(), next <= untilNanos, next <= events.nextNanos ?? .max {
            nowNanos = max(nowNanos, next)
            part.run(nowNanos)
            return true
        }
        guard let next = events.nextNanos, next <= untilNanos, let event = events.takeFirst() else {
            nowNanos = max(nowNanos, untilNanos)
            return false
        }
        nowNanos = max(nowNanos, event.atNanos)
        event.run()
        return true
    }

    /// Runs for that long, or until the condition holds, which is asked after each event.
    ///
    /// - Returns: whether it holds.
    @discardableResult
    package func run(nanos: UInt64, until isOver: () -> Bool = { false }) -> Bool {
        let end = nowNanos &+ nanos
        if isOver() { return true }
        while step(untilNanos: end) { if isOver() { return true } }
        return isOver()
    }

    /// Frees what waits, which refers to the world.
    package func end() {
        events.removeAll()
        network.end()
        (part, didTurn) = (nil, nil)
        seats = [:]
        watchedBy = [:]
    }

    /// A number between the two, both included.
    package func number(_ range: ClosedRange<UInt64>) -> UInt64 { random.next(in: range) }

    /// One of `count` cases, from 0.
    package func choice(_ count: Int) -> Int { Int(random.next() % UInt64(max(1, count))) }

    /// True in that many of a thousand cases.
    package func chance(perMille: Int) -> Bool { random.next() % 1000 < UInt64(max(0, perMille)) }

    func turnDelayNanos() -> UInt64 { random.next() % max(1, turnDelayMaxNanos) }

    // MARK: The fingerprint

    func turnBegins() { turnBytes = 0 }

    func note(turnOf name: String) {
        turns += 1
        didTurn?(name, turnBytes)
        mix(nowNanos)
        for byte in name.utf8 { mix(UInt64(byte)) }
    }

    func note(_ bytes: UnsafeRawBufferPointer) {
        turnBytes += bytes.count
        var hash = fingerprint
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        fingerprint = hash
    }

    private func mix(_ value: UInt64) { fingerprint = (fingerprint ^ value) &* 0x100_0000_01b3 }

    // MARK: Descriptors

    /// A number that no descriptor of the system has.
    package func makeDescriptor() -> Int32 {
        descriptors += 1
        return descriptors
    }

    package func setReadable(_ fd: Int32, _ isReadable: Bool) {
        if isReadable {
            if readable.insert(fd).inserted { watchedBy[fd]?.wake() }
        } else {
            readable.remove(fd)
        }
    }

    func isReadable(_ fd: Int32) -> Bool { readable.contains(fd) }

    // MARK: Loops

    func add(_ seat: LoopSeat) { seats[ObjectIdentifier(seat.loop)] = seat }
    func remove(_ seat: LoopSeat) { seats[ObjectIdentifier(seat.loop)] = nil }
    func seat(of loop: Loop) -> LoopSeat? { seats[ObjectIdentifier(loop)] }

    package func nowNanos(of loop: Loop) -> UInt64 { seat(of: loop)?.process.nowNanos ?? nowNanos }
    package func wallMs(of loop: Loop) -> Int64 { seat(of: loop)?.process.wallMs ?? wallMs }
    package func makeSeed(of loop: Loop) -> UInt64 { random.next() }
    package func wake(_ loop: Loop) { Counting.outside { seat(of: loop)?.wake() } }

    package func schedule(_ timer: LoopTimer, of loop: Loop, atNanos: UInt64) {
        Counting.outside { seat(of: loop)?.schedule(timer, atNanos: atNanos) }
    }

    package func forget(_ timer: LoopTimer, of loop: Loop) { Counting.outside { seat(of: loop)?.forget(timer) } }

    package func watch(_ watcher: FDWatcher, of loop: Loop, fd: Int32) {
        guard let seat = seat(of: loop) else { return }
        watchedBy[fd] = seat
        seat.watch(watcher, fd: fd)
    }

    package func forget(_ watcher: FDWatcher, of loop: Loop) { seat(of: loop)?.forget(watcher) }

    package func resolve(_ host: String, for link: Link, of loop: Loop) {
        guard let seat = seat(of: loop) else { return }
        network.resolve(host, for: link, seat)
    }

    package func connect(_ link: Link, of loop: Loop, to address: String) -> any VirtualStream {
        network.connect(link, seat(of: loop), to: address)
    }

    package func listen(_ listener: Listener, of loop: Loop, host: String, port: UInt16) -> UInt16? {
        seat(of: loop).flatMap { network.listen(listener, $0, host: host, port: port) }
    }

    package func forget(_ listener: Listener, of loop: Loop) { network.forget(listener) }
}

// SPDX-License-Identifier: Apache-2.0
package import EventLoop

/// A process of the world: its loops, its clocks, and what keeps it from running.
package final class SimulatedProcess {
    package let name: String
    /// The host from which it connects.
    package let host: String
    unowned let system: SimulatedSystem
    var seats: [LoopSeat] = []
    /// Runs no more turns, and nothing that it did after its end leaves it.
    package private(set) var isDead = false
    /// Runs no turn before this time.
    private(set) var pausedUntilNanos: UInt64 = 0
    /// Calls that still leave the process, such as writes to a link; nil: all. Its end lies between two of them.
    private var effectsLeft: Int?
    /// It ends here, in the middle of a turn: nothing that the turn still does leaves it.
    package var didStop: () -> Void = {}
    /// Runs each turn of its loops; a test may count what a turn costs.
    package var aroundTurn: (() -> Void) -> Void = { $0() }
    /// The turn in which it has ended is over.
    package var didEnd: () -> Void = {}

    // The clocks, as functions of the world's time.
    private var steadySinceNanos: UInt64 = 0
    private var steadyBaseNanos: UInt64
    /// Parts per million by which its clocks are fast.
    private var driftPPM: Int64 = 0
    /// Its wall clock minus the world's.
    package private(set) var wallAheadMs: Int64 = 0

    init(_ name: String, host: String, system: SimulatedSystem, steadyBaseNanos: UInt64) {
        self.name = name
        self.host = host
        self.system = system
        self.steadyBaseNanos = steadyBaseNanos
        steadySinceNanos = system.nowNanos
    }

    /// A loop of the process, without a thread.
    package func makeLoop(_ name: String) throws(LoopFault) -> Loop {
        let loop = try Loop(name: name, system: system)
        let seat = LoopSeat(loop, of: self)
        seats.append(seat)
        system.add(seat)
        return loop
    }

    /// Runs a closure in a turn of the loop, now.
    package func run(on loop: Loop, _ body: () -> Void) { system.seat(of: loop)?.run(body) }

    /// What a closure gives in a turn of the loop, now.
    package func result<Value>(on loop: Loop, _ body: () throws -> Value) throws -> Value {
        var result: Result<Value, any Error>?
        run(on: loop) { result = Result { try body() } }
        guard let result else { preconditionFailure("the process of \(name) has ended") }
        return try result.get()
    }

    // MARK: Clocks

    /// CLOCK_MONOTONIC of the process.
    package var nowNanos: UInt64 {
        let passed = Int64(system.nowNanos &- steadySinceNanos)
        return steadyBaseNanos &+ UInt64(passed &+ passed / 1_000_000 &* driftPPM)
    }

    /// CLOCK_REALTIME of the process.
    package var wallMs: Int64 { system.wallMs &+ wallAheadMs }

    /// The world's time at which its monotonic clock reaches that.
    func worldNanos(atNanos: UInt64) -> UInt64 {
        let now = nowNanos
        guard atNanos > now else { return system.nowNanos }
        let left = Int64(clamping: min(atNanos &- now, 1 << 60))
        return system.nowNanos &+ UInt64(left &- left / 1_000_000 &* driftPPM) &+ 1
    }

    /// The clocks run fast by that from now on; negative: slow.
    package func setDrift(ppm: Int64) {
        steadyBaseNanos = nowNanos
        steadySinceNanos = system.nowNanos
        driftPPM = ppm
        for seat in seats { seat.rescheduleTimers() }
    }

    /// The wall clock is ahead of the world's by that from now on; negative: behind.
    package func setWall(aheadMs: Int64) { wallAheadMs = aheadMs }

    // MARK: Faults

    /// Runs no turn for that long, as a machine that swaps or is suspended.
    package func pause(nanos: UInt64) { pausedUntilNanos = max(pausedUntilNanos, system.nowNanos &+ nanos) }

    package var isPaused: Bool { pausedUntilNanos > system.nowNanos }

    /// Ends now, or after that many calls of its next turns.
    package func kill(afterEffects count: Int) { effectsLeft = count }

    /// Whether a call still leaves the process. The last one that does not ends it.
    package func takeEffect() -> Bool {
        guard !isDead else { return false }
        guard let left = effectsLeft else { return true }
        guard left > 0 else {
            isDead = true
            didStop()
            return false
        }
        effectsLeft = left - 1
        return true
    }

    /// The kernel closes what the process had open.
    package func die() {
        isDead = true
        for seat in seats { seat.end() }
        seats = []
    }
}

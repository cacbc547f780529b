// SPDX-License-Identifier: Apache-2.0
import EventLoop

/// Decides when the next connect may begin: at intervals in normal operation, with full-jitter back-off after failures.
/// While pushes wait the back-off has a lower cap, so that a recovered endpoint is found soon.
///
/// Apple treats quick connects and disconnects as an attack, and a flaky network once made a client reconnect ten
/// thousand times within seconds. All connects of a client pass through this gate.
struct ConnectPacer: Equatable {
    private(set) var failures = 0
    /// Earliest time of the next connect while nothing waits.
    private var idleNanos: UInt64 = 0
    /// The same while pushes wait; never later.
    private var waitingNanos: UInt64 = 0
    private let spacingNanos: UInt64
    private let refillSpacingNanos: UInt64
    private let backoff: Backoff
    private let waitingBackoff: Backoff
    /// Connects left in the present burst; one is added per `refillNanos`.
    private var left: Int
    private var filledNanos: UInt64 = 0
    private var beganNanos: UInt64 = 0
    private let burst: Int
    private let refillNanos: UInt64

    /// - Parameters:
    ///   - refillSpacingNanos: interval between connects that replace connections lost a moment ago.
    ///   - waitingCapNanos: cap of the back-off while pushes wait.
    init(
        spacingNanos: UInt64, refillSpacingNanos: UInt64, burst: Int, refillNanos: UInt64, backoff: Backoff,
        waitingCapNanos: UInt64
    ) {
        self.spacingNanos = spacingNanos
        self.refillSpacingNanos = min(refillSpacingNanos, spacingNanos)
        self.backoff = backoff
        waitingBackoff = backoff.capped(atNanos: waitingCapNanos)
        self.burst = burst
        self.refillNanos = max(refillNanos, 1)
        left = burst
    }

    /// Earliest time of the next connect.
    func notBeforeNanos(pushesWait: Bool) -> UInt64 { pushesWait ? waitingNanos : idleNanos }

    func mayConnect(pushesWait: Bool = false, nowNanos: UInt64) -> Bool {
        nowNanos >= notBeforeNanos(pushesWait: pushesWait)
    }

    /// A connect begins. The next one keeps its distance, jittered so that shards do not act in step.
    mutating func began(isRefill: Bool = false, nowNanos: UInt64, random: inout SmallRandom) {
        refill(nowNanos)
        let spacing = left == 0 ? max(spacingNanos, refillNanos) : isRefill ? refillSpacingNanos : spacingNanos
        left = max(left - 1, 0)
        beganNanos = nowNanos
        let gap = random.next(in: spacing / 2...max(spacing, spacing / 2))
        idleNanos = max(idleNanos, nowNanos &+ gap)
        waitingNanos = max(waitingNanos, nowNanos &+ gap)
    }

    private mutating func refill(_ nowNanos: UInt64) {
        let earned = (nowNanos &- filledNanos) / refillNanos
        guard earned > 0 else { return }
        left = min(burst, left &+ Int(min(earned, UInt64(burst))))
        filledNanos = nowNanos
    }

    /// A connection failed before it became ready.
    mutating func failed(nowNanos: UInt64, random: inout SmallRandom) {
        failures += 1
        let idle = backoff.delayNanos(failures: failures, random: &random)
        let waiting = waitingBackoff.delayNanos(failures: failures, random: &random)
        idleNanos = max(idleNanos, nowNanos &+ max(idle, waiting))
        waitingNanos = max(waitingNanos, nowNanos &+ waiting)
    }

    /// The peer ended a useful connection normally. Its successor is not a retry, so its connect is returned to the
    /// burst. A server that ends every connection after a thousand requests is thus followed at its pace.
    mutating func served() {
        left = min(burst, left + 1)
        guard failures == 0 else { return }
        // The wait after the last connect of a burst does not apply here.
        let soon = beganNanos &+ refillSpacingNanos
        idleNanos = min(idleNanos, soon)
        waitingNanos = min(waitingNanos, soon)
    }

    /// A connection carried an accepted push: the endpoint works.
    ///
    /// Not at SETTINGS already: an endpoint that greets and then hangs up must not be redialled at full pace.
    mutating func proved() { failures = 0 }
}

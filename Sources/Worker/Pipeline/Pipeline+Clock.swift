import EventLoop
import Kafka
import Redis
import Telemetry

/// A worker with a wrong clock reads nothing: messages would expire, or stay, by that clock.
extension Pipeline {
    var isStoppedByClock: Bool { clockVerdict == .wrong }

    /// How far the clock is off, where an operator is to see it.
    var clockNote: ShardStatus.ClockNote? {
        guard clockVerdict == .off || clockVerdict == .wrong, let worst = shard.worstClock else { return nil }
        return ShardStatus.ClockNote(
            reference: worst.reference == .redis ? "Redis" : "the brokers", skewMs: worst.skewMs,
            isStopped: isStoppedByClock)
    }

    /// Once a second. The heartbeat says the time too; where it does not, Redis is asked each five seconds, each second while the
    /// clock is not known to be right.
    func lookAtClock() {
        applyClock()
        let sinceNanos = shard.nowNanos &- (timeAskedNanos ?? 0)
        guard shard.store.client.isReady else { return }
        if clockVerdict == .right, sinceNanos < Self.timeEveryNanos { return }
        if sinceNanos > Self.timeAgainNanos { askTime() }
    }

    /// The server that gives the time to compare with.
    var timeServer: Int {
        let servers = shard.store.client.tagNumbers(StateStore.serverWord)
        return servers.isEmpty ? 0 : servers[timeTurn % servers.count]
    }

    /// A heartbeat said the time of that server.
    func didBeatAtTime(_ beat: StateStore.Beat) {
        guard beat.isServerTime else { return clockVerdict == .unknown ? askTime() : () }
        timeAskedNanos = beatNanos
        shard.clockWatch.answered(ms: beat.nowMs, askedNanos: beatNanos, nowNanos: shard.nowNanos)
        applyClock()
    }

    func askTime() {
        guard !isTimeAsked else { return }
        isTimeAsked = true
        timeAskedNanos = shard.nowNanos
        do throws(RedisFault) {
            try shard.store.time(server: timeServer, tag: Tag(.none, .time).bits)
        } catch {
            didFailToAskTime(error)
        }
    }

    func didReadTime(_ ms: Int64?) {
        isTimeAsked = false
        if let ms {
            shard.clockWatch.answered(ms: ms, askedNanos: timeAskedNanos ?? shard.nowNanos, nowNanos: shard.nowNanos)
        } else {
            shard.clockWatch.refused()
        }
        applyClock()
    }

    /// A server that never says the time has no say; one that is away is asked again.
    func didFailToAskTime(_ fault: RedisFault) {
        isTimeAsked = false
        switch fault.code {
        case .noPermission, .refused, .unsupported, .scriptFailed: didReadTime(nil)
        // Another node of a cluster may answer.
        default: timeTurn = (timeTurn + 1) & 0xFFFF
        }
    }

    /// Nothing is read before the time is known, nor while the clock is wrong.
    private func applyClock() {
        let verdict = shard.lookAtClock()
        guard verdict != clockVerdict else { return }
        let before = clockVerdict
        clockVerdict = verdict
        for intake in intakes { intake.block(.clock, verdict == .unknown || verdict == .wrong) }
        let worst = shard.worstClock
        let fields: KeyValuePairs<StaticString, LogValue> = [
            "reference": .string(worst?.reference.rawValue ?? ""), "skew_ms": .int(Int(clamping: worst?.skewMs ?? 0)),
        ]
        switch verdict {
        case .wrong: shard.log.error("this machine's clock is wrong: reading has stopped, and nothing expires", fields)
        case .off: shard.log.warning("this machine's clock is off", fields)
        case .right where before == .off || before == .wrong:
            shard.log.info("this machine's clock is right again", fields)
        case .right, .unknown: break
        }
        shard.requestTurn()
    }

    private static let timeEveryNanos: UInt64 = 5_000_000_000
    /// Longer than the pause between two heartbeats.
    private static let timeAgainNanos: UInt64 = 1_500_000_000
}

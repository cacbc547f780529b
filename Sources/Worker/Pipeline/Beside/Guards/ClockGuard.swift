// SPDX-License-Identifier: Apache-2.0
import EventLoop
import Kafka
import Redis
import Telemetry

/// Compares this machine's clock with the servers' (`ClockWatch`). A worker with a wrong clock reads nothing: messages would
/// expire, or stay, by that clock.
final class ClockGuard {
    private let shard: ShardContext
    private let intakes: [Intake]
    private(set) var verdict = ClockWatch.Verdict.unknown
    /// When Redis was asked for the time last, monotonic, and whether the answer is outstanding.
    private var askedNanos: UInt64?
    private var isAsked = false
    /// Which of a cluster's servers is asked.
    private var turn = 0

    /// - Parameter intakes: they do not read before the time is known, nor while the clock is wrong.
    init(_ shard: ShardContext, _ intakes: [Intake]) {
        self.shard = shard
        self.intakes = intakes
    }

    var isStopped: Bool { verdict == .wrong }

    /// How far the clock is off, where an operator is to see it.
    var note: ShardStatus.ClockNote? {
        guard verdict == .off || verdict == .wrong, let worst = shard.worstClock else { return nil }
        return ShardStatus.ClockNote(
            reference: worst.reference == .redis ? "Redis" : "the brokers", skewMs: worst.skewMs,
            isStopped: isStopped)
    }

    /// Once a second. The heartbeat says the time too; where it does not, Redis is asked each five seconds, each second while the
    /// clock is not known to be right.
    func compareWhenDue() {
        apply()
        let sinceNanos = shard.nowNanos &- (askedNanos ?? 0)
        if !shard.store.client.isReady { return }
        if verdict == .right, sinceNanos < Self.everyNanos { return }
        if sinceNanos > Self.againNanos { ask() }
    }

    /// The server that gives the time to compare with.
    private var server: Int {
        let servers = shard.store.client.tagNumbers(StateStore.serverWord)
        return servers.isEmpty ? 0 : servers[turn % servers.count]
    }

    /// A server's heartbeat was answered.
    ///
    /// - Parameter sentNanos: when it was sent, monotonic; nil if a later heartbeat was sent since.
    func didBeat(_ server: Int, _ beat: StateStore.Beat, sentNanos: UInt64?) {
        shard.redisIsAt(ms: beat.nowMs)
        guard let sentNanos else { return shard.noteLate() }
        guard server == self.server else { return }
        guard beat.isServerTime else { return verdict == .unknown ? ask() : () }
        askedNanos = sentNanos
        shard.clockWatch.answered(ms: beat.nowMs, askedNanos: sentNanos, nowNanos: shard.nowNanos)
        apply()
    }

    func didFailToBeat(_ server: Int) {
        if server == self.server { ask() }
    }

    private func ask() {
        if isAsked { return }
        isAsked = true
        askedNanos = shard.nowNanos
        do throws(RedisFault) {
            try shard.store.time(server: server, tag: Tag(.none, .time).bits)
        } catch {
            didFailToAsk(error)
        }
    }

    func didRead(_ ms: Int64?) {
        isAsked = false
        if let ms {
            shard.clockWatch.answered(ms: ms, askedNanos: askedNanos ?? shard.nowNanos, nowNanos: shard.nowNanos)
        } else {
            shard.clockWatch.refused()
        }
        apply()
    }

    /// A server that never says the time has no say; one that is away is asked again.
    func didFailToAsk(_ fault: RedisFault) {
        isAsked = false
        switch fault.code {
        case .noPermission, .refused, .unsupported, .scriptFailed: didRead(nil)
        // Another node of a cluster may answer.
        default: turn = (turn + 1) & 0xFFFF
        }
    }

    /// Nothing is read before the time is known, nor while the clock is wrong.
    private func apply() {
        let before = verdict
        verdict = shard.lookAtClock()
        if verdict == before { return }
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

    private static let everyNanos: UInt64 = 5_000_000_000
    /// Longer than the pause between two heartbeats.
    private static let againNanos: UInt64 = 1_500_000_000
}

// SPDX-License-Identifier: Apache-2.0
import APNs
import EventLoop
import Glibc
import Processes

/// Keeps one client, with the client's default limits, full, or sends at an even pace. A push's tag is the time when it was sent. Loop-bound.
final class DisturbanceFeeder: PushFeeder {
    /// Prefix of tokens for which no push is ever accepted.
    static let badPrefix = "dead"

    var onEnd: ((LoadOutcome) -> Void)?
    private let plan: LoadPlan
    private let made: BenchPushes
    /// One per bad push, or so many that the client has forgotten the first when it is used again.
    private let badTokens: [DeviceToken]
    private static let badTokensMax = 100_000
    private var badSent = 0
    private let held: Int
    private var client: APNsClient?
    private var timer: LoopTimer?
    private var outcome = LoadOutcome()
    private var started: UInt64 = 0
    /// The usage and the number of ended pushes at the end of the warm-up.
    private var warm: (usage: Usage, ended: Int)?
    private var ready = 0

    private static let everyNanos: UInt64 = 2_000_000

    init(_ plan: LoadPlan, loop: Loop) throws {
        self.plan = plan
        made = try BenchPushes(
            users: 50_000, nowMs: Loop.wallMs(), payload: plan.payload, without: Self.badPrefix)
        badTokens = plan.badEvery == nil ? [] : (0..<Self.badTokensMax).compactMap { Self.badToken($0) }
        var limits = APNsLimits()
        limits.connectionsMax = plan.connections
        limits.streamsPerConnectionMax = plan.streams
        held = 2 * limits.inFlightMax
        client = try .forBench(
            loop: loop, endpoint: plan.endpoint, credentials: plan.credentials, limits: limits, delegate: self)
        timer = LoopTimer(loop: loop) { [unowned self] in self.tick() }
    }

    func begin() {
        started = Loop.monotonicNanos()
        tick()
    }

    func close() {
        timer?.cancel()
        client?.close()
    }

    private var elapsed: Double { Double(Loop.monotonicNanos() &- started) / 1e9 }

    private func tick() {
        guard let client else { return }
        let counts = client.connectionCounts
        outcome.connections = max(outcome.connections, counts.ready)
        // Fewer connections than a moment ago: APNs drained some.
        if counts.ready < ready { outcome.series.mark(atNanos: Loop.monotonicNanos() &- started) }
        ready = counts.ready
        isBadTime = plan.badStretches.map { Int(elapsed / $0) % 2 == 1 } ?? true
        if warm == nil, elapsed >= plan.warmSeconds { warm = (Usage(plan), outcome.ended) }
        feed()
        endWhereDone()
        if onEnd != nil { timer?.arm(afterNanos: Self.everyNanos) }
    }

    /// CPU time of this process, of the simulator and of the machine.
    private struct Usage {
        let client: UInt64
        let simulator: UInt64
        let machine: MachineUsage?

        init(_ plan: LoadPlan) {
            client = ProcessUsage(pid: getpid()).cpuNanos
            simulator = ProcessUsage(pid: plan.simulator).cpuNanos
            machine = MachineUsage.now()
        }
    }

    /// Sends as many pushes as the pace asks for, or as fill the client.
    private func feed() {
        let seconds = elapsed
        guard seconds < plan.seconds else { return }
        let due = plan.perSecond.map { Int(seconds * Double($0)) } ?? (outcome.ended + held)
        while outcome.sent < min(due, plan.pushes), sendNext() {}
    }

    private func sendNext() -> Bool {
        let number = outcome.sent
        let isBad = isBadTime && plan.badEvery.map { number % $0 == $0 - 1 } ?? false
        guard let client else { return false }
        let push = made.push(
            number, tag: Loop.monotonicNanos(), to: isBad ? badTokens[badSent % badTokens.count] : nil,
            isSuspect: isBad && plan.marksBad)
        guard client.send(push) == .taken else { return false }
        outcome.sent += 1
        if isBad { badSent += 1 }
        return true
    }

    /// Updated on ticks, not per push.
    private var isBadTime = true

    /// A different token for each number.
    private static func badToken(_ number: Int) -> DeviceToken? {
        let digits = String(number, radix: 16)
        return DeviceToken(Self.badPrefix + String(repeating: "0", count: 60 - digits.count) + digits)
    }

    func apns(_ client: APNsClient, didFinish tag: UInt64, outcome end: PushOutcome, attempts: Int) {
        let now = Loop.monotonicNanos()
        switch end {
        case .accepted: outcome.accepted += 1
        case .rejected: outcome.rejected += 1
        default: outcome.other += 1
        }
        outcome.nanosMax = max(outcome.nanosMax, now &- tag)
        if attempts > 1 {
            outcome.resent += 1
            outcome.resentNanosMax = max(outcome.resentNanosMax, now &- tag)
        }
        outcome.series.count(atNanos: now &- started)
        if plan.memoryEvery > 0, outcome.ended.isMultiple(of: plan.memoryEvery) {
            outcome.memory.append(ProcessUsage.memory(pid: getpid())?.now ?? 0)
        }
        if plan.perSecond == nil { feed() }
    }

    func apns(_ client: APNsClient, stateChanged event: APNsClientEvent) {}

    private func endWhereDone() {
        let seconds = elapsed
        guard outcome.sent >= plan.pushes || seconds >= plan.seconds, outcome.ended == outcome.sent, let onEnd else {
            return
        }
        self.onEnd = nil
        outcome.seconds = seconds
        outcome.warmSeconds = plan.warmSeconds
        outcome.series.cut(atSeconds: min(seconds, plan.seconds))
        if let warm { take(Usage(plan), since: warm.usage, pushes: outcome.ended - warm.ended) }
        onEnd(outcome)
    }

    private func take(_ usage: Usage, since earlier: Usage, pushes: Int) {
        let (client, simulator) = (usage.client &- earlier.client, usage.simulator &- earlier.simulator)
        outcome.clientMicros = Double(client) / 1000 / Double(max(1, pushes))
        outcome.simulatorMicros = Double(simulator) / 1000 / Double(max(1, pushes))
        guard let now = usage.machine, let before = earlier.machine else { return }
        outcome.othersPercent = now.othersPercent(since: before, ownNanos: client &+ simulator)
    }
}

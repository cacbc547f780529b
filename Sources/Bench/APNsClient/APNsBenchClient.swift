// SPDX-License-Identifier: Apache-2.0
import APNs
import Console
import EventLoop
import JSON

/// The client process of `bench --apns`: sends the given number of pushes through one APNs client, as fast as possible.
///
/// It is a process of its own, so that the kernel's figures for the process are the client's cost.
struct APNsBenchClient {
    var endpoint: String
    var credentials: String
    var pushes: Int
    var connections: Int
    var streams: Int

    func run() async throws -> ExitCode {
        Allocator.keepFreed()
        let outcome = try await PushLoad<Feeder>.play(self)
        Terminal.out(json: outcome.json)
        return outcome.accepted == pushes ? .done : .failed
    }

    struct Outcome: Sendable {
        var accepted = 0
        var attempts = 0
        var seconds: Double = 0

        var json: String {
            JSONWriter.line { writer in
                writer.count("accepted", accepted)
                writer.count("attempts", attempts)
                writer.figure("per_s", (Double(accepted) / max(seconds, 1e-9)).rounded())
            }
        }
    }
}

/// Sends the next push whenever one ends. Loop-bound.
private final class Feeder: PushFeeder {
    private var client: APNsClient?
    var onEnd: ((APNsBenchClient.Outcome) -> Void)?
    private let made: BenchPushes
    private let pushes: Int
    private let held: Int
    private var sent = 0
    private var ended = 0
    private var outcome = APNsBenchClient.Outcome()
    private var started: UInt64 = 0

    init(_ bench: APNsBenchClient, loop: Loop) throws {
        pushes = bench.pushes
        held = bench.connections * bench.streams * 2
        made = try BenchPushes(users: min(bench.pushes, 50_000), nowMs: Loop.wallMs())
        var limits = APNsLimits()
        limits.connectionsMin = bench.connections
        limits.connectionsMax = bench.connections
        limits.streamsPerConnectionMax = bench.streams
        limits.inFlightMax = bench.connections * bench.streams
        limits.pushesMax = max(limits.pushesMax, held)
        limits.answerNanos = 60_000_000_000
        limits.connectSpacingNanos = 1_000_000
        client = try .forBench(
            loop: loop, endpoint: bench.endpoint, credentials: bench.credentials, limits: limits, delegate: self)
    }

    func begin() {
        started = Loop.monotonicNanos()
        while sent < min(held, pushes) { sendNext() }
    }

    func close() { client?.close() }

    private func sendNext() {
        guard let client, sent < pushes else { return }
        let number = sent
        sent += 1
        if client.send(made.push(number, tag: UInt64(number))) != .taken { ended += 1 }
    }

    func apns(_ client: APNsClient, didFinish tag: UInt64, outcome: PushOutcome, attempts: Int) {
        ended += 1
        self.outcome.attempts += attempts
        if case .accepted = outcome { self.outcome.accepted += 1 }
        sendNext()
        guard ended == pushes else { return }
        self.outcome.seconds = Double(Loop.monotonicNanos() &- started) / 1e9
        onEnd?(self.outcome)
        onEnd = nil
    }
}

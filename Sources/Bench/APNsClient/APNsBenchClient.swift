// SPDX-License-Identifier: Apache-2.0
import APNs
import Console
import Crypto
import EventLoop
import Glibc
import JSON
import Simulator
import Telemetry

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
        let loop = try Loop(name: "client")
        loop.start()
        let load = APNsLoad(loop: loop)
        let outcome = try await load.run(self)
        await load.end()
        loop.stop()
        Terminal.out(json: outcome.json)
        return outcome.accepted == pushes ? .done : .failed
    }

    struct Outcome: Sendable {
        var accepted = 0
        var attempts = 0
        var seconds: Double = 0

        var json: String {
            var writer = JSONWriter()
            writer.beginObject()
            writer.member("accepted", Int64(accepted))
            writer.member("attempts", Int64(attempts))
            writer.key("per_s")
            writer.double((Double(accepted) / max(seconds, 1e-9)).rounded())
            writer.endObject()
            return String(decoding: writer.bytes, as: UTF8.self) + "\n"
        }
    }
}

/// Keeps one client full until all pushes have their outcome.
private actor APNsLoad {
    private nonisolated let loop: Loop
    private var feeder: Feeder?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(loop: Loop) {
        self.loop = loop
    }

    func run(_ bench: APNsBenchClient) async throws -> APNsBenchClient.Outcome {
        let feeder = try Feeder(bench, loop: loop)
        self.feeder = feeder
        return await withCheckedContinuation { continuation in
            feeder.onEnd = { continuation.resume(returning: $0) }
            feeder.begin()
        }
    }

    func end() {
        feeder?.client?.close()
        feeder = nil
    }
}

/// Sends the next push whenever one ends. Loop-bound.
private final class Feeder: APNsClientDelegate {
    var client: APNsClient?
    var onEnd: ((APNsBenchClient.Outcome) -> Void)?
    private let tokens: [DeviceToken]
    private let headers: PushHeaders
    private let payload = Array(BenchTraffic.samplePayload.utf8)
    private let pushes: Int
    private let held: Int
    private var sent = 0
    private var ended = 0
    private var outcome = APNsBenchClient.Outcome()
    private var started: UInt64 = 0

    init(_ bench: APNsBenchClient, loop: Loop) throws {
        pushes = bench.pushes
        held = bench.connections * bench.streams * 2
        let traffic = BenchTraffic(users: min(bench.pushes, 50_000), app: "im", topic: BenchServers.topic)
        tokens = (0..<traffic.users).compactMap { DeviceToken(traffic.token($0)) }
        headers = try PushHeaders(
            topic: BenchServers.topic, pushType: .alert, expirationSeconds: Loop.wallMs() / 1000 + 86_400,
            collapseID: Array("3b0c44298fc1c149afbf4c8996fb9242".utf8))
        var limits = APNsLimits()
        limits.connectionsMin = bench.connections
        limits.connectionsMax = bench.connections
        limits.streamsPerConnectionMax = bench.streams
        limits.inFlightMax = bench.connections * bench.streams
        limits.pushesMax = max(limits.pushesMax, held)
        limits.answerNanos = 60_000_000_000
        limits.connectSpacingNanos = 1_000_000
        client = try APNsClient(
            loop: loop, endpoint: try APNsEndpoint(url: bench.endpoint, caFile: bench.credentials + "/ca.pem"),
            credential: try .token(
                keyFile: bench.credentials + "/AuthKey_\(DemoCredentials.keyID).p8", keyID: DemoCredentials.keyID,
                teamID: DemoCredentials.teamID), limits: limits,
            metrics: APNsMetrics(registry: MetricsRegistry(), app: "im"), log: Log(level: .error), delegate: self)
    }

    func begin() {
        started = Loop.monotonicNanos()
        while sent < min(held, pushes) { sendNext() }
    }

    private func sendNext() {
        guard let client, sent < pushes else { return }
        let number = UInt64(sent)
        sent += 1
        let push = Push(
            tag: number, token: tokens[Int(number) % tokens.count], headers: headers,
            id: PushID(high: 0x5F0C_1E9A_8F65_4C3E, low: 0x9D3E_0000_0000_0000 &+ number &* 0x9E37_79B9_7F4A),
            payload: payload)
        if client.send(push) != .taken { ended += 1 }
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

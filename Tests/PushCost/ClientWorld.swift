// SPDX-License-Identifier: Apache-2.0
import APNs
import Bench
import CostCounting
import EventLoop
import SimulatedFleet
import SimulatedSystem
import Telemetry

/// A world in virtual time with the APNs client alone. It sends the next push whenever one ends.
final class ClientWorld: APNsClientDelegate {
    private let system = SimulatedSystem(seed: 1)
    private let apns: APNsSeat
    private let process: SimulatedProcess
    private let loop: Loop
    private var client: APNsClient?
    private let made: BenchPushes
    private let pushes: Int
    private var sent = 0
    private var accepted = 0
    private var isCounting = false
    private(set) var turns = 0

    private static let host = "127.0.1.1"
    private static let inFlightMax = 27

    init(_ shape: CostShape, folder: String) throws {
        pushes = shape.events
        let signing = try SimulatedKey(folder: folder)
        made = try BenchPushes(users: shape.users, nowMs: system.wallMs)
        system.network.path(from: Self.host, to: APNsSeat.address).shortReadsPerMille = 0
        apns = try APNsSeat(system, topics: [BenchPushes.topic], key: signing.key)
        process = system.makeProcess("client", host: Self.host)
        loop = try process.makeLoop("client")
        process.aroundTurn = { [unowned self] turn in
            guard isCounting else { return turn() }
            turns += 1
            Counting.turn(turn)
        }
        let endpoint = try APNsEndpoint(url: APNsSeat.endpoint, caFile: signing.authorityPath)
        client = try process.result(on: loop) {
            try APNsClient(
                loop: loop, endpoint: endpoint,
                credential: .token(keyFile: signing.path, keyID: SimulatedKey.keyID, teamID: SimulatedKey.teamID),
                limits: APNsLimits(), metrics: APNsMetrics(registry: MetricsRegistry(), app: "im"),
                log: Log(level: .error), delegate: self)
        }
    }

    /// - Returns: the pushes that were counted.
    func run() throws -> Int {
        // The connection exists, and each token was seen, before counting begins.
        for round in [false, true] {
            isCounting = round
            (sent, accepted) = (0, 0)
            process.run(on: loop) { while sent < Self.inFlightMax { sendNext() } }
            guard system.run(nanos: 60_000_000_000, until: { accepted == pushes }) else {
                throw SimulationFault("\(accepted) pushes of \(pushes)")
            }
        }
        return pushes
    }

    private func sendNext() {
        guard let client, sent < pushes else { return }
        let number = sent
        sent += 1
        _ = client.send(made.push(number, tag: UInt64(number)))
    }

    func apns(_ client: APNsClient, didFinish tag: UInt64, outcome: PushOutcome, attempts: Int) {
        if case .accepted = outcome { accepted += 1 }
        sendNext()
    }

    func end() {
        process.die()
        client = nil
        apns.end()
        system.end()
    }
}

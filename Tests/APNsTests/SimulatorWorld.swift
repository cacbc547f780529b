// SPDX-License-Identifier: Apache-2.0
import Crypto
import EventLoop
import Simulator
import Support

@testable import APNs

/// A client with its world, and the product's simulator on a loop of its own; `scenario` is a scenario file's text.
func withSimulator(
    scenario: String? = nil, limits: APNsLimits = World.quick,
    _ change: (inout SimulatorConfiguration) -> Void = { _ in },
    _ body: (TestLoop, World, SimulatorService) async throws -> Void
) async throws {
    let loop = try Loop(name: "simulator")
    loop.start()
    let simulator = SimulatorService(loop: loop)
    var configuration = SimulatorConfiguration()
    configuration.certificate = try Peer.certificate.get()
    configuration.topics = ["com.example.im"]
    configuration.ledger = .memory
    configuration.keys = [
        ProviderKey(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", publicKey: try World.key.get().publicKey())
    ]
    if let scenario { configuration.scenario = try Scenario(json: Array(scenario.utf8)) }
    change(&configuration)
    let port = try await simulator.start(configuration)
    let result: Result<Void, any Error>
    do {
        try await withWorld(limits: limits, port: port) { try await body($0, $1, simulator) }
        result = .success(())
    } catch {
        result = .failure(error)
    }
    await simulator.stop()
    loop.stop()
    try result.get()
}

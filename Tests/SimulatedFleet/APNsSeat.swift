// SPDX-License-Identifier: Apache-2.0
package import Crypto
import EventLoop
package import SimulatedSystem
package import Simulator

/// APNs of the world: the product's simulator, in a process of its own.
package final class APNsSeat {
    private static let host = "127.0.0.9"
    package static let address = "127.0.0.9:443"
    package static let endpoint = "https://apns.test"
    package let process: SimulatedProcess
    private let loop: Loop
    private var simulator: APNsSimulator?
    private var configuration: SimulatorConfiguration

    /// - Parameters:
    ///   - topics: the bundle ids that it knows.
    ///   - key: the provider key that it knows; see `SimulatedKey`.
    package init(
        _ system: SimulatedSystem, topics: [String], key: PrivateKey, scenario: Scenario = Scenario()
    ) throws {
        process = system.makeProcess("apns", host: Self.host)
        loop = try process.makeLoop("apns")
        configuration = SimulatorConfiguration()
        configuration.host = Self.host
        configuration.port = 443
        configuration.topics = topics
        configuration.keys = try SimulatedKey.keyIDs.map {
            ProviderKey(keyID: $0, teamID: SimulatedKey.teamID, publicKey: try key.publicKey())
        }
        configuration.ledger = .memory
        configuration.scenario = scenario
        system.network.names["apns.test"] = [Self.host]
        listen()
    }

    /// Listens with the first scenario and an empty ledger.
    package func listen() {
        process.run(on: loop) { simulator = try? APNsSimulator(loop: loop, configuration: configuration) }
    }

    /// Rules for the answers from now on.
    package func set(_ scenario: Scenario) { process.run(on: loop) { simulator?.setScenario(scenario) } }

    /// The id of a new broadcast channel of the app.
    package func makeChannel(of bundleID: String) -> String {
        var channel = ""
        process.run(on: loop) { channel = simulator?.makeChannel(of: bundleID) ?? "" }
        return channel
    }

    package func goAway() { process.run(on: loop) { simulator?.goAway() } }

    package var counters: SimulatorCounters { simulator?.counters ?? SimulatorCounters() }

    /// The requests since `listen` or `takeRequests`.
    package var requests: [LedgerEntry] { simulator?.entries ?? [] }

    /// The requests since the last call.
    package func takeRequests() -> [LedgerEntry] {
        var entries: [LedgerEntry] = []
        if requests.isEmpty { return entries }
        process.run(on: loop) { entries = simulator?.takeEntries() ?? [] }
        return entries
    }

    /// Connections end, and further ones are refused until `listen`.
    package func end() {
        process.run(on: loop) {
            simulator?.close()
            simulator = nil
        }
    }
}

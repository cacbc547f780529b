import Crypto
import EventLoop
import SimulatedSystem
import Simulator

/// APNs of the world: the product's simulator, in a process of its own.
final class APNsSeat {
    static let host = "127.0.0.9"
    static let address = "127.0.0.9:443"
    let process: SimulatedProcess
    private let loop: Loop
    private var simulator: APNsSimulator?
    private let system: SimulatedSystem

    init(_ system: SimulatedSystem, plan: Plan, key: PrivateKey) throws {
        self.system = system
        process = system.makeProcess("apns", host: Self.host)
        loop = try process.makeLoop("apns")
        var configuration = SimulatorConfiguration()
        configuration.host = Self.host
        configuration.port = 443
        configuration.topics = plan.apps.map { "com.example.\($0)" }
        configuration.keys = [
            ProviderKey(keyID: "ABC123DEFG", teamID: "DEF123GHIJ", publicKey: try key.publicKey())
        ]
        configuration.ledger = .memory
        process.run(on: loop) { simulator = try? APNsSimulator(loop: loop, configuration: configuration) }
        system.network.names["apns.test"] = [Self.host]
    }

    /// Rules for the answers from now on.
    func set(_ scenario: Scenario) { process.run(on: loop) { simulator?.setScenario(scenario) } }

    func goAway() { process.run(on: loop) { simulator?.goAway() } }

    /// The requests since the last call.
    func takeRequests() -> [LedgerEntry] {
        var entries: [LedgerEntry] = []
        process.run(on: loop) { entries = simulator?.takeEntries() ?? [] }
        return entries
    }

    func end() {
        process.run(on: loop) {
            simulator?.close()
            simulator = nil
        }
    }
}

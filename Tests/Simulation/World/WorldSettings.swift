// SPDX-License-Identifier: Apache-2.0
import Crypto
import SimulatedFleet
import Worker

/// What all worlds of a process share: the provider key and the configuration's files.
struct WorldSettings {
    private let signing: SimulatedKey
    var key: PrivateKey { signing.key }

    /// - Parameter folder: receives the key's file.
    init(folder: String) throws { signing = try SimulatedKey(folder: folder) }

    func configuration(_ plan: Plan) throws -> Configuration {
        var text = """
            kafka: {brokers: "127.0.0.6:9092", group: carillon}
            redis: {url: "redis://\(RedisSeat.address)"}
            state_results: true
            shards: 1
            planner: {direct_max: \(Plan.directMax)}
            window: {records: \(plan.windowRecords)}
            apps:

            """
        for app in plan.apps { text += app.text(signing) }
        switch Configuration.read(Array(text.utf8), source: "simulation") {
        case .success(let configuration): return configuration
        case .failure(let problems): throw SimulationFault("\(problems)")
        }
    }
}
